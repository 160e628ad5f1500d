//! The operations and their results in the order in which they happened, and the check whether some
//! sequential order of the operations explains the results.

use std::collections::BTreeMap;

use outlast_engine::TaskId;
use parking_lot::Mutex;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use crate::spec::{OneTask, Op, OpResult};

/// The number of a client, or one of the two constants below for the work of a task.
pub(crate) type Actor = u32;

/// The work of a task while it makes an input request.
pub(crate) const WORK_WITH_INPUT_REQUEST: Actor = 1_000;

/// The work of a task when it ends.
pub(crate) const WORK_AT_ITS_END: Actor = 1_001;

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Vec<(TaskId, Actor, HistoryEntry)>>);

#[derive(Clone, Debug)]
enum HistoryEntry {
    Requested(Op),
    Returned(OpResult),
}

impl History {
    /// Records that `actor` begins an operation. Call it before the operation.
    pub(crate) fn requested(&self, task: TaskId, actor: Actor, op: Op) {
        self.note(task, actor, HistoryEntry::Requested(op));
    }

    /// Records the result of the operation of `actor`.
    pub(crate) fn reply(&self, task: TaskId, actor: Actor, reply: OpResult) {
        self.note(task, actor, HistoryEntry::Returned(reply));
    }

    /// Checks every task separately. Returns the number of entries, or a history that no sequential
    /// order explains.
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
                    "task {task}: no sequential order explains {its:#?}"
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
