//! What a batch will do: every operation judged in its turn, every task written once.
//!
//! An operation is judged against the index and against what the operations before it in the same
//! batch will have done. Of several versions of a task only the last reaches the ledger.

use std::sync::Arc;

use outlast_engine::index::{Index, Room};
use outlast_engine::store::{Insert, Reason, Replace};
use outlast_engine::{Revision, StoreError, Task, TaskId};
use outlast_wire::Raw;

use super::op::{Op, Removal};
use crate::sqlite::row::{LAST_POSITION, RowId};
use crate::sqlite::spread::SpreadMap;
use crate::sqlite::unwritten::Stood;

/// What a batch will do.
#[derive(Debug)]
pub(super) struct Plan {
    /// One for each operation.
    pub(super) verdicts: Vec<Verdict>,
    /// One for each task that is touched.
    pub(super) changes: Vec<Planned>,
    by_task: SpreadMap<TaskId, usize>,
    /// How many more rows may be deleted.
    deletions: usize,
    writes_records: bool,
}

/// What becomes of an operation if the batch is committed. Numbers point into [`Plan::changes`].
#[derive(Debug)]
pub(super) enum Verdict {
    /// The task is added.
    Insert(usize),
    /// The owner used the request key before.
    Known(TaskId),
    /// The task is changed.
    Replace(usize),
    /// Of the first `seen` tasks, these are removed.
    Remove {
        seen: usize,
        gone: Vec<(TaskId, Revision)>,
    },
    /// It takes place, and there is nothing more to know.
    Done,
    /// It is not done.
    Refused(StoreError),
}

/// What becomes of a task.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) id: TaskId,
    /// How it stood before the batch, if it was there.
    pub(super) from: Option<Stood>,
    /// The row it will have.
    pub(super) row: RowId,
    /// The revision it will have, unless it will be gone.
    revision: Option<Revision>,
    /// The operation with its last version.
    latest: usize,
    /// The operation with its body, if one brings a body.
    body: Option<usize>,
}

impl Plan {
    /// Judges all operations. Room is held for the tasks that will be added.
    pub(super) fn of(ops: &mut [Op], index: &Index<RowId>) -> Self {
        let mut plan = Self {
            verdicts: Vec::with_capacity(ops.len()),
            changes: Vec::with_capacity(ops.len()),
            by_task: SpreadMap::with_capacity_and_hasher(ops.len(), Default::default()),
            deletions: DELETIONS,
            writes_records: false,
        };
        for (at, op) in ops.iter_mut().enumerate() {
            let verdict = match op {
                Op::Insert(insert, _) => plan.insert(at, insert, index),
                Op::Replace(replace, _) => plan.replace(at, replace, index),
                Op::Remove(removal) => plan.remove(removal, index),
                Op::Records(..) | Op::Forget(_) | Op::Settle(_) => Verdict::Done,
                Op::Close(_) => Verdict::Refused(StoreError::Unavailable(Reason::new("closing"))),
            };
            plan.writes_records |= verdict.is_done() && !op.records().is_empty();
            plan.verdicts.push(verdict);
        }
        plan
    }

    /// Whether anything reaches the ledger.
    pub(super) fn writes(&self) -> bool {
        self.writes_records || !self.changes.is_empty()
    }

    /// The task as a change leaves it, unless it is gone, and its body if the batch brings one.
    pub(super) fn version<'o>(
        &self,
        change: &Planned,
        ops: &'o [Op],
    ) -> Option<(&'o Arc<Task>, Option<&'o Raw>)> {
        change.revision?;
        let task = ops.get(change.latest)?.task()?;
        let body = change.body.and_then(|at| ops[at].body());
        Some((task, body))
    }

    /// Gives up the room that is held.
    pub(super) fn release(&self, ops: &[Op], index: &Index<RowId>) {
        for (op, verdict) in ops.iter().zip(&self.verdicts) {
            if let (Op::Insert(insert, _), Verdict::Insert(_)) = (op, verdict) {
                index.release(&insert.task);
            }
        }
    }
}

impl Plan {
    fn insert(&mut self, at: usize, insert: &Insert, index: &Index<RowId>) -> Verdict {
        let task = &insert.task;
        if self.by_task.contains_key(&task.id) {
            return Verdict::Refused(StoreError::Exists(task.id));
        }
        let position = match index.reserve(task, &insert.quota) {
            Ok(Room::Held(position)) => position,
            Ok(Room::Known(id)) => return Verdict::Known(id),
            Err(refused) => return Verdict::Refused(refused),
        };
        if position.0 > LAST_POSITION {
            index.release(task);
            let worn = "the file has numbered as many tasks as it can; begin a new one";
            return Verdict::Refused(StoreError::Unavailable(Reason::new(worn)));
        }
        Verdict::Insert(self.add(Planned {
            id: task.id,
            from: None,
            row: RowId::new(task.expires(), position),
            revision: Some(task.revision),
            latest: at,
            body: None,
        }))
    }

    fn replace(&mut self, at: usize, replace: &Replace, index: &Index<RowId>) -> Verdict {
        let next = &replace.next;
        let Some(number) = self.expect(next.id, replace.expected, index) else {
            return Verdict::Refused(StoreError::Conflict {
                id: next.id,
                expected: replace.expected,
            });
        };
        let change = &mut self.changes[number];
        change.revision = Some(next.revision);
        change.latest = at;
        if replace.body.is_some() {
            change.body = Some(at);
        }
        match change.from {
            None => change.row = change.row.expiring(next.expires()),
            Some(from) if next.state.ending().is_some() && !from.had_ended => {
                change.row = from.row.expiring(next.expires());
            }
            // An extension changes a column; the row moves when the task ends.
            Some(_) => {}
        }
        Verdict::Replace(number)
    }

    fn remove(&mut self, removal: &mut Removal, index: &Index<RowId>) -> Verdict {
        if !removal.sorted {
            let row = |(id, _): &(TaskId, Revision)| index.current(*id).map(|known| known.cold);
            removal.left.sort_by_cached_key(row);
            removal.sorted = true;
        }
        let seen = self.deletions.min(removal.left.len());
        self.deletions -= seen;
        let mut gone = removal.left[..seen].to_vec();
        gone.retain(|(id, revision)| {
            let number = self.expect(*id, *revision, index);
            number
                .inspect(|number| self.changes[*number].revision = None)
                .is_some()
        });
        Verdict::Remove { seen, gone }
    }

    /// The change of a task that is at `expected` by now.
    fn expect(&mut self, id: TaskId, expected: Revision, index: &Index<RowId>) -> Option<usize> {
        if let Some(number) = self.by_task.get(&id) {
            let matches = self.changes[*number].revision == Some(expected);
            return matches.then_some(*number);
        }
        let known = index.current(id)?;
        let matches = known.revision == expected;
        let from = Stood {
            row: known.cold,
            had_ended: known.has_ended,
        };
        matches.then(|| {
            self.add(Planned {
                id,
                from: Some(from),
                row: from.row,
                revision: Some(expected),
                latest: usize::MAX,
                body: None,
            })
        })
    }

    fn add(&mut self, change: Planned) -> usize {
        let number = self.changes.len();
        self.by_task.insert(change.id, number);
        self.changes.push(change);
        number
    }
}

impl Verdict {
    /// Whether the operation takes place.
    pub(super) fn is_done(&self) -> bool {
        !matches!(self, Self::Known(_) | Self::Refused(_))
    }
}

/// How many rows one commit deletes at most.
const DELETIONS: usize = 256;
