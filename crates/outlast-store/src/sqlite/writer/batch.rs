//! One batch: planned, promised, published, answered; or taken apart if part of it cannot be done.

use std::time::Duration;

use outlast_engine::StoreError;
use outlast_engine::store::Reason;

use super::op::Op;
use super::plan::Plan;
use super::promise::Promised;
use super::publish::{Published, publish};
use super::{Writer, room};
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::Moment;
use crate::sqlite::unwritten::Adding;

impl Writer {
    /// Carries out `ops` and answers them. Fails if the ledger can no longer be trusted; all have been answered then, too.
    pub(super) fn batch(&mut self, mut ops: Vec<Op>) -> Result<(), Fault> {
        if let Some(fault) = self.held_up() {
            self.refuse_all(ops, &fault);
            return Ok(());
        }
        if let Some(full @ Fault::Full(_)) = self.shared.condition.tables_fault() {
            // What is left is for finishing.
            self.room.shut(full.reason());
        }
        self.refuse_large(&mut ops);
        if ops.iter().any(is_new)
            && let Some(reason) = self.room.refusal(&self.shared, &self.filler)
        {
            self.refuse_new(&mut ops, reason);
        }
        while !ops.is_empty() {
            let plan = Plan::of(&mut ops, &self.shared.index);
            let fault = match self.promise(&ops, &plan) {
                Ok(promised) => {
                    self.settle(ops, plan, &promised);
                    return Ok(());
                }
                Err(fault) => fault,
            };
            plan.release(&ops, &self.shared.index);
            match fault {
                Fault::Full(_) => {
                    self.room.shut(fault.reason());
                    self.filler.compact();
                    let had_new = ops.iter().any(is_new);
                    self.refuse_new(&mut ops, fault.reason());
                    if !had_new {
                        return self.one_by_one(ops, &fault);
                    }
                }
                fault => {
                    // Whoever hears that a write failed finds the store down.
                    self.shared.condition.ledger(Some(fault.clone()));
                    self.refuse_all(ops, &fault);
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// Why nothing is promised now although the ledger is well: the tables cannot be written, or do not follow.
    fn held_up(&self) -> Option<Fault> {
        let fault = self.shared.condition.tables_fault();
        if fault.as_ref().is_some_and(Fault::is_down) {
            return fault;
        }
        if self.shared.unwritten.sinks_below(UNWRITTEN, PATIENCE) {
            return None;
        }
        let behind = || Fault::Busy(Reason::new("its tables do not follow; try again"));
        Some(fault.unwrap_or_else(behind))
    }

    /// What follows a promise.
    fn settle(&mut self, mut ops: Vec<Op>, plan: Plan, promised: &Promised) {
        let expiry = ops.iter().filter_map(Op::expiry).min();
        let added = plan.changes.iter().any(|change| change.from.is_none());
        let bodies = plan.changes.iter().filter_map(|change| {
            let (_, body) = plan.version(change, &ops)?;
            Some((change.row, body?.clone()))
        });
        self.shared.recent.keep(bodies);
        let last = self.ledger.next() - 1;
        let news = promised.size() > 0 || ops.iter().any(|op| matches!(op, Op::Forget(_)));
        let add = |unwritten: &mut Adding<'_>| {
            for (id, change) in promised.changes(&plan.changes) {
                unwritten.task(id, change);
            }
            for (op, verdict) in ops.iter_mut().zip(&plan.verdicts) {
                match op {
                    Op::Forget(now) => unwritten.forget(*now),
                    op if verdict.is_done() => {
                        op.take_records()
                            .into_iter()
                            .for_each(|write| unwritten.record(write));
                    }
                    _ => {}
                }
            }
            unwritten.upto(last, promised.size());
        };
        if news {
            self.filler.add(add);
        }
        let Published {
            answers,
            unfinished,
        } = publish(ops, plan, &self.shared.index);
        if let Some(expiry) = expiry {
            self.shared.expect_expiry_by(expiry);
        }
        self.backlog.extend(unfinished.into_iter().map(Op::Remove));
        if added && self.room.is_shut() {
            self.room.open();
            self.shared.condition.room(None);
        }
        self.ask(Moment::BeforeAck);
        for answer in answers {
            answer.send(&self.filler);
        }
    }

    /// Where a batch does not fit, single operations may.
    fn one_by_one(&mut self, ops: Vec<Op>, full: &Fault) -> Result<(), Fault> {
        if ops.len() == 1 {
            self.refuse_all(ops, full);
            return Ok(());
        }
        let mut ops = ops.into_iter();
        while let Some(op) = ops.next() {
            if let Err(fault) = self.batch(vec![op]) {
                self.refuse_all(ops.collect(), &fault);
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Refuses what no table can hold, and what would not fit into the file.
    fn refuse_large(&mut self, ops: &mut Vec<Op>) {
        let Self {
            room,
            shared,
            filler,
            ..
        } = self;
        let mut size = 0;
        for op in ops.extract_if(.., |op| {
            let fits = op.size() <= LARGEST && room.fits(size + op.size(), shared, filler);
            size += if fits { op.size() } else { 0 };
            !fits
        }) {
            let fault = match op.size() > LARGEST {
                true => Fault::Refused(Reason::new("it is too large for any store")),
                false => room::full(),
            };
            op.refuse(fault.error());
        }
    }

    fn refuse_new(&mut self, ops: &mut Vec<Op>, reason: Reason) {
        self.shared.condition.room(Some(reason.clone()));
        for op in ops.extract_if(.., |op| is_new(op)) {
            op.refuse(StoreError::Unavailable(reason.clone()));
        }
    }

    fn refuse_all(&self, ops: Vec<Op>, fault: &Fault) {
        for op in ops {
            if let Op::Forget(now) = op {
                // It is asked for again.
                self.shared.expect_expiry_by(now);
            }
            op.refuse(fault.error());
        }
    }
}

fn is_new(op: &Op) -> bool {
    matches!(op, Op::Insert(..))
}

/// How far the tables may be behind the ledger, in bytes.
const UNWRITTEN: usize = 24 << 20;

/// How long a batch waits for tables that are so far behind.
const PATIENCE: Duration = Duration::from_secs(5);

/// What SQLite takes in one row is a little more.
const LARGEST: usize = 512 << 20;
