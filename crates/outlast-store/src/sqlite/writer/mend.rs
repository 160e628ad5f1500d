//! After a disk did not confirm a frame: everything that was promised before goes into the tables, the frame is passed
//! over, and the ledger begins anew.
//!
//! Nobody was told that the failed batch succeeded, and nothing of it took place: it was never published.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use outlast_engine::StoreError;

use super::Writer;
use super::op::{Op, Reply};
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::{Moment, Verdict};

impl Writer {
    /// Refuses whatever is asked until the disk confirms again, or the store is closed.
    pub(super) fn mend(&mut self, mut fault: Fault) -> Result<(), Option<Reply<()>>> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.shared.condition.ledger(Some(fault.clone()));
            self.refuse_for(pause, &fault.error())?;
            match self.begin_anew() {
                Ok(()) => {
                    self.room.open();
                    self.shared.condition.room(None);
                    self.shared.condition.ledger(None);
                    return Ok(());
                }
                Err(again) => fault = again,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Answers everybody with `error` for a while. Fails if the store is closed meanwhile.
    fn refuse_for(&mut self, pause: Duration, error: &StoreError) -> Result<(), Option<Reply<()>>> {
        for op in self.backlog.drain(..) {
            op.refuse(error.clone());
        }
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.queue.recv_timeout(left) {
                Ok(Op::Close(reply)) => return Err(Some(reply)),
                Ok(op) => op.refuse(error.clone()),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
            }
        }
    }

    fn begin_anew(&mut self) -> Result<(), Fault> {
        if let Verdict::Fail(fail) = self.ask(Moment::BeforeReopen) {
            return Err(fail.into());
        }
        // Whatever the disk has of the frame that failed, the tables say that they are past it.
        let failed = self.ledger.next();
        self.filler.add(|unwritten| unwritten.upto(failed, 0));
        self.filler.flush()?;
        self.ledger.pass_over();
        self.ledger.begin_anew()?;
        Ok(())
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);
