//! A plan becomes a frame of the ledger. Once the disk has confirmed it, the plan is a promise.

use std::sync::Arc;

use outlast_engine::TaskId;

use super::Writer;
use super::op::Op;
use super::plan::{Plan, Planned};
use crate::sqlite::fault::Fault;
use crate::sqlite::ledger::{Blocks, Entries, Ledger};
use crate::sqlite::probe::{FailAs, Moment, Verdict};
use crate::sqlite::unwritten::Change;

/// What the tables shall hear of a batch that is durable.
#[derive(Debug, Default)]
pub(super) struct Promised {
    frame: Arc<Vec<u8>>,
    blocks: Vec<Option<Blocks>>,
}

impl Promised {
    /// What became of the tasks of the plan.
    pub(super) fn changes(&self, plan: &[Planned]) -> impl Iterator<Item = (TaskId, Change)> {
        plan.iter().zip(&self.blocks).map(|(planned, blocks)| {
            let change = Change {
                from: planned.from,
                row: planned.row,
                image: blocks.map(|blocks| blocks.image(&self.frame)),
            };
            (planned.id, change)
        })
    }

    /// How many bytes it is.
    pub(super) fn size(&self) -> usize {
        self.frame.len()
    }
}

impl Writer {
    /// Writes what a plan will do into the ledger, and waits for the disk.
    pub(super) fn promise(&mut self, ops: &[Op], plan: &Plan) -> Result<Promised, Fault> {
        if !plan.writes() {
            return Ok(Promised::default());
        }
        let mut frame = Vec::with_capacity(self.usual);
        Ledger::begin(&mut frame);
        let mut entries = Entries::new(&mut frame, &mut self.scratch);
        let changes = plan.changes.iter().map(|change| {
            match (change.from, plan.version(change, ops)) {
                (None, None) => entries.passed(change.row),
                (Some(from), None) => entries.gone(change.id, from),
                (None, Some((task, body))) => return Some(entries.added(change.row, task, body)),
                (Some(from), Some((task, body))) => {
                    return Some(entries.changed(from, change.row, task, body));
                }
            }
            None
        });
        let blocks = changes.collect();
        for (op, verdict) in ops.iter().zip(&plan.verdicts) {
            if verdict.is_done() {
                op.records().iter().for_each(|write| entries.record(write));
            }
        }
        self.append(&mut frame)?;
        self.usual = frame.len().min(USUAL);
        // It is kept for a while.
        frame.shrink_to(frame.len() + frame.len() / 4);
        let frame = Arc::new(frame);
        Ok(Promised { frame, blocks })
    }

    fn append(&mut self, frame: &mut [u8]) -> Result<(), Fault> {
        if let Verdict::Fail(fail) = self.ask(Moment::BeforeCommit) {
            return Err(fail.into());
        }
        self.ledger.make_room(frame, self.filler.filled())?;
        self.ledger.append(frame)?;
        match self.ask(Moment::AfterCommit) {
            Verdict::Go => Ok(()),
            // What is on the disk already cannot lack room: it did not confirm.
            Verdict::Fail(_) => Err(FailAs::FsyncError.into()),
        }
    }
}

/// How large a frame is expected to be at most.
const USUAL: usize = 1 << 20;
