//! The requests and replies in the order in which they happened, and the check whether one order of
//! single steps explains them.

use std::collections::BTreeMap;

use outlast_engine::TaskId;
use parking_lot::Mutex;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use crate::spec::{OneTask, Op, OpResult};

/// Who acts: clients by their number, and the work of a task.
pub(crate) type Actor = u32;

/// The work while it asks.
pub(crate) const ASKER: Actor = 1_000;

/// The work when it ends.
pub(crate) const FINISHER: Actor = 1_001;

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Vec<(TaskId, Actor, HistoryEntry)>>);

#[derive(Clone, Debug)]
enum HistoryEntry {
    Requested(Op),
    Returned(OpResult),
}

impl History {
    /// Notes that `actor` begins something, before it does.
    pub(crate) fn requested(&self, task: TaskId, actor: Actor, op: Op) {
        self.note(task, actor, HistoryEntry::Requested(op));
    }

    /// Records the reply to `actor`, after it arrived.
    pub(crate) fn reply(&self, task: TaskId, actor: Actor, reply: OpResult) {
        self.note(task, actor, HistoryEntry::Returned(reply));
    }

    /// Checks every task by itself; returns how many steps were explained, or a history that cannot
    /// be.
    pub(crate) fn check(&self) -> Result<usize, String> {
        let events = self.0.lock();
        let mut testers = BTreeMap::new();
        for (task, actor, event) in events.iter() {
            let tester = testers
                .entry(*task)
                .or_insert_with(|| LinearizabilityTester::new(OneTask::Absent));
            match event.clone() {
                HistoryEntry::Requested(op) => tester.on_invoke(*actor, op)?,
                HistoryEntry::Returned(reply) => tester.on_return(*actor, reply)?,
            };
        }
        for (task, tester) in &testers {
            if !tester.is_consistent() {
                let its: Vec<_> = events.iter().filter(|(id, ..)| id == task).collect();
                return Err(format!(
                    "task {task}: no order of single steps explains {its:#?}"
                ));
            }
        }
        Ok(events.len())
    }

    fn note(&self, task: TaskId, actor: Actor, event: HistoryEntry) {
        let mut events = self.0.lock();
        events.push((task, actor, event));
    }
}
