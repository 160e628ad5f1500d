//! The plan of a batch: every operation is checked in order, every task is written once.
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

/// The plan of a batch.
#[derive(Debug)]
pub(super) struct Plan {
    /// One per operation.
    pub(super) results: Vec<PlannedResult>,
    /// One per changed task.
    pub(super) changes: Vec<TaskChange>,
    by_task: HashMap<TaskId, usize>,
    /// How many more rows may be deleted.
    deletions: usize,
    writes_records: bool,
}

/// The result of an operation if the batch is committed. Numbers are indexes of [`Plan::changes`].
#[derive(Debug)]
pub(super) enum PlannedResult {
    /// The task is inserted.
    Insert(usize),
    /// The owner has this task with the same request key.
    Existing(TaskId),
    /// The task is changed.
    Replace(usize),
    /// The operation examines its first `seen` tasks and removes these of them.
    Remove {
        seen: usize,
        gone: Vec<(TaskId, Revision)>,
    },
    /// Records are written or deleted.
    Records,
    /// The operation is refused.
    Refused(StoreError),
}

/// The change of one task.
#[derive(Debug)]
pub(super) struct TaskChange {
    pub(super) id: TaskId,
    /// Its row in the file, if it has one.
    pub(super) from: Option<RowId>,
    /// Its new row.
    pub(super) row: RowId,
    /// Its new revision, or `None` if it is removed.
    pub(super) revision: Option<Revision>,
    /// Whether it had ended before the batch.
    pub(super) had_ended: bool,
    /// The operation with its newest version.
    latest: usize,
    /// The operation with its body, if there is one.
    body: Option<usize>,
}

impl Plan {
    /// Plans all operations. Reserves quota in the index for inserted tasks.
    pub(super) fn of(operations: &mut [Operation], index: &Index<RowId>) -> Self {
        let mut plan = Self {
            results: Vec::with_capacity(operations.len()),
            changes: Vec::with_capacity(operations.len()),
            by_task: HashMap::with_capacity(operations.len()),
            deletions: MAX_DELETIONS,
            writes_records: false,
        };
        for (at, operation) in operations.iter_mut().enumerate() {
            let verdict = match operation {
                Operation::Insert(insert, _) => plan.insert(at, insert, index),
                Operation::Replace(replace, _) => plan.replace(at, replace, index),
                Operation::Remove(removal) => plan.remove(removal, index),
                Operation::Records(..)
                | Operation::SwapRecord(..)
                | Operation::ExpireRecords(_) => PlannedResult::Records,
                Operation::Close(_) => {
                    PlannedResult::Refused(StoreError::Unavailable(Reason::new("closing")))
                }
            };
            plan.writes_records |= matches!(
                operation,
                Operation::ExpireRecords(_) | Operation::SwapRecord(..)
            ) || verdict.is_done() && !operation.records().is_empty();
            plan.results.push(verdict);
        }
        plan
    }

    /// Whether the batch changes the file.
    pub(super) fn writes(&self) -> bool {
        self.writes_records || !self.changes.is_empty()
    }

    /// Returns the new version of a task unless it is removed, and its body if the batch contains
    /// one.
    pub(super) fn version<'o>(
        &self,
        change: &TaskChange,
        operations: &'o [Operation],
    ) -> Option<(&'o Task, Option<&'o Raw>)> {
        change.revision?;
        let task = operations.get(change.latest)?.task()?;
        let body = change.body.and_then(|at| operations[at].body());
        Some((task, body))
    }

    /// The last creation number that the batch uses.
    pub(super) fn last_position(&self) -> Option<Position> {
        let new = self.changes.iter().filter(|change| change.from.is_none());
        new.map(|change| change.row.position()).max()
    }

    /// Releases the reserved quota.
    pub(super) fn release(&self, operations: &[Operation], index: &Index<RowId>) {
        for (operation, verdict) in operations.iter().zip(&self.results) {
            if let (Operation::Insert(insert, _), PlannedResult::Insert(_)) = (operation, verdict) {
                index.release(&insert.task);
            }
        }
    }
}

impl Plan {
    fn insert(&mut self, at: usize, insert: &Insert, index: &Index<RowId>) -> PlannedResult {
        let task = &insert.task;
        if self.by_task.contains_key(&task.id) {
            return PlannedResult::Refused(StoreError::Exists(task.id));
        }
        let position = match index.reserve(task, &insert.quota) {
            Ok(QuotaReservation::Reserved(position)) => position,
            Ok(QuotaReservation::Existing(id)) => return PlannedResult::Existing(id),
            Err(refused) => return PlannedResult::Refused(refused),
        };
        if position.0 > LAST_POSITION {
            index.release(task);
            let worn = "the file has used all its creation numbers; start with a new file";
            return PlannedResult::Refused(StoreError::Unavailable(Reason::new(worn)));
        }
        PlannedResult::Insert(self.add(TaskChange {
            id: task.id,
            from: None,
            row: RowId::new(task.expires(), position),
            revision: Some(task.revision),
            had_ended: false,
            latest: at,
            body: None,
        }))
    }

    fn replace(&mut self, at: usize, replace: &Replace, index: &Index<RowId>) -> PlannedResult {
        let next = &replace.next;
        let Some(number) = self.expect(next.id, replace.expected, index) else {
            return PlannedResult::Refused(StoreError::Conflict {
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
            // An extension only changes a column. The row moves when the task ends.
            Some(_) => {}
        }
        PlannedResult::Replace(number)
    }

    fn remove(&mut self, removal: &mut Removal, index: &Index<RowId>) -> PlannedResult {
        if !removal.sorted {
            let row = |(id, _): &(TaskId, Revision)| index.current(*id).map(|known| known.cold);
            removal.remaining.sort_by_cached_key(row);
            removal.sorted = true;
        }
        let seen = self.deletions.min(removal.remaining.len());
        self.deletions -= seen;
        let mut gone = removal.remaining[..seen].to_vec();
        gone.retain(|(id, revision)| {
            let number = self.expect(*id, *revision, index);
            number
                .inspect(|number| self.changes[*number].revision = None)
                .is_some()
        });
        PlannedResult::Remove { seen, gone }
    }

    /// Returns the change of a task whose planned revision is `expected`.
    fn expect(&mut self, id: TaskId, expected: Revision, index: &Index<RowId>) -> Option<usize> {
        if let Some(number) = self.by_task.get(&id) {
            let matches = self.changes[*number].revision == Some(expected);
            return matches.then_some(*number);
        }
        let known = index.current(id)?;
        let row = known.cold;
        let matches = known.revision == expected;
        matches.then(|| {
            self.add(TaskChange {
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

    fn add(&mut self, change: TaskChange) -> usize {
        let number = self.changes.len();
        self.by_task.insert(change.id, number);
        self.changes.push(change);
        number
    }
}

impl PlannedResult {
    /// Whether the operation is executed.
    pub(super) fn is_done(&self) -> bool {
        !matches!(self, Self::Existing(_) | Self::Refused(_))
    }
}

/// The maximum number of rows that one commit deletes.
const MAX_DELETIONS: usize = 256;
