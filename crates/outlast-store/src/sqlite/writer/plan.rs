//! What a batch does: every operation is checked in order, every task is written once.
//!
//! An operation is checked against the index and against the earlier operations of the batch. Of
//! several versions of a task only the last is written.

use std::collections::HashMap;

use outlast_engine::index::{Index, QuotaReservation};
use outlast_engine::store::{Insert, Position, Reason, Replace};
use outlast_engine::{Revision, StoreError, Task, TaskId};
use outlast_wire::Raw;

use super::operation::{Operation, Removal};
use crate::sqlite::row::{LAST_POSITION, RowId};

/// What a batch does.
#[derive(Debug)]
pub(super) struct Plan {
    /// One for each operation.
    pub(super) verdicts: Vec<Verdict>,
    /// One for each task that is touched.
    pub(super) changes: Vec<Planned>,
    by_task: HashMap<TaskId, usize>,
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
    /// Records are written or deleted.
    Records,
    /// It is not done.
    Refused(StoreError),
}

/// What becomes of a task.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) id: TaskId,
    /// The row it has in the file, if it is there.
    pub(super) from: Option<RowId>,
    /// The row it will have.
    pub(super) row: RowId,
    /// The revision it will have, unless it will be gone.
    pub(super) revision: Option<Revision>,
    /// Whether it had ended before the batch.
    pub(super) had_ended: bool,
    /// The operation with its last version.
    latest: usize,
    /// The operation with its body, if one brings a body.
    body: Option<usize>,
}

impl Plan {
    /// Plans all operations. Room in the index is reserved for the tasks that are added.
    pub(super) fn of(operations: &mut [Operation], index: &Index<RowId>) -> Self {
        let mut plan = Self {
            verdicts: Vec::with_capacity(operations.len()),
            changes: Vec::with_capacity(operations.len()),
            by_task: HashMap::with_capacity(operations.len()),
            deletions: DELETIONS,
            writes_records: false,
        };
        for (at, operation) in operations.iter_mut().enumerate() {
            let verdict = match operation {
                Operation::Insert(insert, _) => plan.insert(at, insert, index),
                Operation::Replace(replace, _) => plan.replace(at, replace, index),
                Operation::Remove(removal) => plan.remove(removal, index),
                Operation::Records(..) | Operation::ExpireRecords(_) => Verdict::Records,
                Operation::Close(_) => {
                    Verdict::Refused(StoreError::Unavailable(Reason::new("closing")))
                }
            };
            plan.writes_records |= matches!(operation, Operation::ExpireRecords(_))
                || verdict.is_done() && !operation.records().is_empty();
            plan.verdicts.push(verdict);
        }
        plan
    }

    /// Whether anything reaches the file.
    pub(super) fn writes(&self) -> bool {
        self.writes_records || !self.changes.is_empty()
    }

    /// The task as a change leaves it, unless it is gone, and its body if the batch brings one.
    pub(super) fn version<'o>(
        &self,
        change: &Planned,
        operations: &'o [Operation],
    ) -> Option<(&'o Task, Option<&'o Raw>)> {
        change.revision?;
        let task = operations.get(change.latest)?.task()?;
        let body = change.body.and_then(|at| operations[at].body());
        Some((task, body))
    }

    /// The last place in the order of creation that the batch gives out.
    pub(super) fn last_position(&self) -> Option<Position> {
        let new = self.changes.iter().filter(|change| change.from.is_none());
        new.map(|change| change.row.position()).max()
    }

    /// Gives up the reserved room.
    pub(super) fn release(&self, operations: &[Operation], index: &Index<RowId>) {
        for (operation, verdict) in operations.iter().zip(&self.verdicts) {
            if let (Operation::Insert(insert, _), Verdict::Insert(_)) = (operation, verdict) {
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
            Ok(QuotaReservation::Reserved(position)) => position,
            Ok(QuotaReservation::Existing(id)) => return Verdict::Known(id),
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
            had_ended: false,
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
            Some(from) if next.state.ending().is_some() && !change.had_ended => {
                change.row = from.expiring(next.expires());
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
        let row = known.cold;
        let matches = known.revision == expected;
        matches.then(|| {
            self.add(Planned {
                id,
                from: Some(row),
                row,
                revision: Some(expected),
                had_ended: known.has_ended,
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
