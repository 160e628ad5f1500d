//! One batch: plan, commit, publish, reply; or split it if a part cannot be written.

use outlast_engine::StoreError;
use outlast_engine::store::Reason;
use outlast_wire::Timestamp;

use super::Writer;
use super::commit::{CommitError, Statements, SwappedRecords};
use super::operation::Operation;
use super::plan::Plan;
use super::publish::{PreparedReply, publish};
use super::reopen::FailedBatch;
use crate::sqlite::failpoint::FailPoint;
use crate::sqlite::file_fault::FileFault;
use crate::sqlite::mark::MarkState;
use crate::sqlite::options::Durability;

impl Writer {
    /// Executes `operations` and replies to them. Fails if the connection is no longer usable. All
    /// callers have a reply then, too.
    pub(super) fn batch(
        &mut self,
        file: &mut Statements<'_>,
        mut operations: Vec<Operation>,
    ) -> Result<(), FailedBatch> {
        if operations.iter().any(Operation::is_insert) {
            match self.space.refusal(file.connection) {
                Ok(None) => {}
                Ok(Some(reason)) => self.refuse_inserts(&mut operations, reason),
                Err(fault) => {
                    return Err(self.down(operations, FailedBatch::without_tasks(fault)));
                }
            }
        }
        while !operations.is_empty() {
            let plan = Plan::of(&mut operations, &self.shared.index);
            let error = match self.commit(file, &operations, &plan) {
                Ok(swapped) => {
                    self.publish(file, operations, plan, &swapped);
                    return Ok(());
                }
                Err(error) => error,
            };
            plan.release(&operations, &self.shared.index);
            match error {
                CommitError::Operation(number, fault) => {
                    operations.remove(number).refuse(fault.error());
                }
                CommitError::Task(id, fault) => {
                    for operation in operations.extract_if(.., |operation| operation.changes(id)) {
                        operation.refuse(fault.error());
                    }
                }
                CommitError::Batch(full @ FileFault::Full(_)) => {
                    let compacted = self
                        .space
                        .refuse_and_checkpoint(full.reason(), file.connection);
                    let had_inserts = operations.iter().any(Operation::is_insert);
                    self.refuse_inserts(&mut operations, full.reason());
                    if !had_inserts && !compacted {
                        return self.one_by_one(file, operations, &full);
                    }
                }
                CommitError::Batch(busy @ FileFault::Busy(_)) => {
                    self.refuse_all(operations, &busy);
                    return Ok(());
                }
                CommitError::Batch(fault) => {
                    return Err(self.down(operations, FailedBatch::of(&plan, fault)));
                }
            }
        }
        Ok(())
    }

    fn commit(
        &mut self,
        file: &mut Statements<'_>,
        operations: &[Operation],
        plan: &Plan,
    ) -> Result<SwappedRecords, CommitError> {
        if !plan.writes() {
            return Ok(SwappedRecords::default());
        }
        let mut mark = self.mark.next(MarkState::Open);
        if let Some(last) = plan.last_position() {
            mark.next_position = mark.next_position.max(last.0 + 1);
        }
        let swapped = file.commit(operations, plan, &mark, |point| self.failure_at(point))?;
        // A commit to a file that was deleted or replaced is not acknowledged.
        self.files.check().map_err(CommitError::Batch)?;
        self.mark = mark;
        if self.options.durability == Durability::Power {
            self.lock.record_commit(&mark);
        }
        Ok(swapped)
    }

    /// Makes a committed batch visible and replies to its callers.
    fn publish(
        &mut self,
        file: &mut Statements<'_>,
        operations: Vec<Operation>,
        plan: Plan,
        swapped: &SwappedRecords,
    ) {
        if operations.iter().any(Operation::changes_record_expiry) {
            let next = file.records.next_expiry();
            self.shared
                .set_record_expiry(next.unwrap_or(CHECK_EXPIRY_NOW));
        }
        let inserted = plan.changes.iter().any(|change| change.from.is_none());
        self.shrink |= plan.changes.iter().any(|change| change.revision.is_none());
        let bodies = plan.changes.iter().filter_map(|change| {
            let (_, body) = plan.version(change, &operations)?;
            Some((change.row, body?.clone()))
        });
        self.shared.bodies.add(bodies);
        let published = publish(operations, plan, swapped, &self.shared.index);
        let unfinished = published.unfinished.into_iter().map(Operation::Remove);
        self.backlog.extend(unfinished);
        if inserted && self.space.refuses_new_tasks() {
            self.space.open();
            self.shared.health.set_no_space(None);
        }
        self.failure_at(FailPoint::BeforeAck);
        published.answers.into_iter().for_each(PreparedReply::send);
    }

    /// If a batch does not fit, single operations may: deletions free space.
    fn one_by_one(
        &mut self,
        file: &mut Statements<'_>,
        operations: Vec<Operation>,
        full: &FileFault,
    ) -> Result<(), FailedBatch> {
        if operations.len() == 1 {
            self.refuse_all(operations, full);
            return Ok(());
        }
        let mut operations = operations.into_iter();
        while let Some(operation) = operations.next() {
            if let Err(failed) = self.batch(file, vec![operation]) {
                return Err(self.down(operations.collect(), failed));
            }
        }
        Ok(())
    }

    fn refuse_inserts(&mut self, operations: &mut Vec<Operation>, reason: Reason) {
        self.shared.health.set_no_space(Some(reason.clone()));
        for operation in operations.extract_if(.., |operation| operation.is_insert()) {
            operation.refuse(StoreError::Unavailable(reason.clone()));
        }
    }

    fn refuse_all(&self, operations: Vec<Operation>, fault: &FileFault) {
        if operations.iter().any(Operation::changes_record_expiry) {
            self.shared.set_record_expiry(CHECK_EXPIRY_NOW);
        }
        for operation in operations {
            operation.refuse(fault.error());
        }
    }

    /// Sets the health to down before any caller receives the error.
    fn down(&self, operations: Vec<Operation>, failed: FailedBatch) -> FailedBatch {
        self.shared.health.set_down(Some(failed.fault.reason()));
        self.refuse_all(operations, &failed.fault);
        failed
    }
}

/// The next expiry of a record if it is unknown.
const CHECK_EXPIRY_NOW: Option<Timestamp> = Some(Timestamp(0));
