//! One batch: planned, committed, published, answered; or taken apart if part of it cannot be done.

use outlast_engine::StoreError;
use outlast_engine::store::{Health, Reason};

use super::Writer;
use super::commit::{Broken, Statements};
use super::mend::Wreck;
use super::op::Op;
use super::plan::Plan;
use super::publish::{Answer, publish};
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::Moment;
use outlast_wire::Timestamp;

impl Writer {
    /// Carries out `ops` and answers them. Fails if the connection can no longer be trusted; all have
    /// been answered then, too.
    pub(super) fn batch(
        &mut self,
        file: &mut Statements<'_>,
        mut ops: Vec<Op>,
    ) -> Result<(), Wreck> {
        if ops.iter().any(is_new) {
            match self.room.refusal(file.connection) {
                Ok(None) => {}
                Ok(Some(reason)) => self.refuse_new(&mut ops, reason),
                Err(fault) => return Err(self.down(ops, Wreck::without_tasks(fault))),
            }
        }
        while !ops.is_empty() {
            let plan = Plan::of(&mut ops, &self.shared.index);
            let Err(broken) = self.commit(file, &ops, &plan) else {
                self.settle(file, ops, plan);
                return Ok(());
            };
            plan.release(&ops, &self.shared.index);
            match broken {
                Broken::Op(number, fault) => ops.remove(number).refuse(fault.error()),
                Broken::Task(id, fault) => {
                    for op in ops.extract_if(.., |op| op.touches(id)) {
                        op.refuse(fault.error());
                    }
                }
                Broken::Batch(full @ Fault::Full(_)) => {
                    let compacted = self.room.shut_and_compact(full.reason(), file.connection);
                    let had_new = ops.iter().any(is_new);
                    self.refuse_new(&mut ops, full.reason());
                    if !had_new && !compacted {
                        return self.one_by_one(file, ops, &full);
                    }
                }
                Broken::Batch(busy @ Fault::Busy(_)) => {
                    self.refuse_all(ops, &busy);
                    return Ok(());
                }
                Broken::Batch(fault) => {
                    return Err(self.down(ops, Wreck::of(&plan, fault)));
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self, file: &mut Statements<'_>, ops: &[Op], plan: &Plan) -> Result<(), Broken> {
        if !plan.writes() {
            return Ok(());
        }
        let mut positions = self.positions;
        let block = plan
            .last_position()
            .and_then(|last| positions.give_out(last.0));
        file.commit(ops, plan, block, |moment| self.ask(moment))?;
        self.positions = positions;
        Ok(())
    }

    /// What follows a commit.
    fn settle(&mut self, file: &mut Statements<'_>, ops: Vec<Op>, plan: Plan) {
        if ops.iter().any(Op::moves_expiry) {
            let next = file.records.next_expiry();
            self.shared.expect_expiry(next.unwrap_or(LOOK_AT_ONCE));
        }
        let added = plan.changes.iter().any(|change| change.from.is_none());
        self.shrink |= plan.changes.iter().any(|change| change.revision.is_none());
        let bodies = plan.changes.iter().filter_map(|change| {
            let (_, body) = plan.version(change, &ops)?;
            Some((change.row, body?.clone()))
        });
        self.shared.recent.keep(bodies);
        let published = publish(ops, plan, &self.shared.index);
        let unfinished = published.unfinished.into_iter().map(Op::Remove);
        self.backlog.extend(unfinished);
        if added && self.room.is_shut() {
            self.room.open();
            self.set_health(Health::Ready);
        }
        self.ask(Moment::BeforeAck);
        published.answers.into_iter().for_each(Answer::send);
    }

    /// Where a batch does not fit, single operations may: deletions make room.
    fn one_by_one(
        &mut self,
        file: &mut Statements<'_>,
        ops: Vec<Op>,
        full: &Fault,
    ) -> Result<(), Wreck> {
        if ops.len() == 1 {
            self.refuse_all(ops, full);
            return Ok(());
        }
        let mut ops = ops.into_iter();
        while let Some(op) = ops.next() {
            if let Err(wreck) = self.batch(file, vec![op]) {
                return Err(self.down(ops.collect(), wreck));
            }
        }
        Ok(())
    }

    fn refuse_new(&mut self, ops: &mut Vec<Op>, reason: Reason) {
        self.set_health(Health::NoRoom(reason.clone()));
        for op in ops.extract_if(.., |op| is_new(op)) {
            op.refuse(StoreError::Unavailable(reason.clone()));
        }
    }

    fn refuse_all(&self, ops: Vec<Op>, fault: &Fault) {
        if ops.iter().any(Op::moves_expiry) {
            self.shared.expect_expiry(LOOK_AT_ONCE);
        }
        ops.into_iter().for_each(|op| op.refuse(fault.error()));
    }

    /// Says that the store is down before anybody hears that a write failed.
    fn down(&self, ops: Vec<Op>, wreck: Wreck) -> Wreck {
        self.set_health(Health::Down(wreck.fault.reason()));
        self.refuse_all(ops, &wreck.fault);
        wreck
    }
}

fn is_new(op: &Op) -> bool {
    matches!(op, Op::Insert(..))
}

/// When expired records are looked for if nobody knows when the next one expires.
const LOOK_AT_ONCE: Option<Timestamp> = Some(Timestamp(0));
