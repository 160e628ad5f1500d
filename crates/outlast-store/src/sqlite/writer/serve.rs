//! The life of the writing thread: wait, gather, write, and in the end let go of the files.

use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::Writer;
use super::op::{Op, Reply};
use super::room;
use crate::sqlite::fault::Fault;
use crate::sqlite::filler::Left;

/// Why the thread stops serving.
enum Pause {
    /// The store is closed; somebody may wait for that.
    Closed(Option<Reply<()>>),
    /// The disk failed.
    Down(Fault),
}

/// What was found in the queue.
enum Gathered {
    /// Something to do.
    Ops(Vec<Op>),
    /// Something to do, and then the end.
    Last(Vec<Op>, Option<Reply<()>>),
    /// Nothing for a while.
    Nothing,
}

impl Writer {
    /// Serves until the store is closed.
    pub(in crate::sqlite) fn run(mut self) {
        let closed = loop {
            match self.serve() {
                Pause::Closed(reply) => break reply,
                Pause::Down(fault) => {
                    if let Err(reply) = self.mend(fault) {
                        break reply;
                    }
                }
            }
        };
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        if self.filler.close() == Left::Nothing {
            self.ledger.remove();
        }
        self.shared.condition.close();
        let left: Vec<Op> = self.queue.try_iter().collect();
        drop(self.lock);
        drop(left);
        if let Some(reply) = closed {
            let _ = reply.send(Ok(()));
        }
    }

    fn serve(&mut self) -> Pause {
        loop {
            let served = match self.gather() {
                Gathered::Ops(ops) => self.batch(ops),
                Gathered::Nothing => {
                    self.idle();
                    Ok(())
                }
                Gathered::Last(ops, reply) => {
                    let mut served = self.batch(ops);
                    while served.is_ok() && !self.backlog.is_empty() {
                        let rest = self.share();
                        served = self.batch(rest);
                    }
                    return Pause::Closed(reply);
                }
            };
            if let Err(fault) = served {
                return Pause::Down(fault);
            }
        }
    }

    /// Takes half of what there is, or all if that is little, and waits if there is nothing.
    ///
    /// While one half of many callers is written, the other half goes on and brings what comes next: nobody waits for
    /// nothing, and a sync still costs each of them little.
    fn gather(&mut self) -> Gathered {
        if self.backlog.is_empty() {
            let first = match self.patience() {
                None => self
                    .queue
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => self.queue.recv_timeout(patience),
            };
            match first {
                Ok(Op::Close(reply)) => return Gathered::Last(Vec::new(), Some(reply)),
                Ok(op) => self.backlog.push_back(op),
                Err(RecvTimeoutError::Timeout) => return Gathered::Nothing,
                Err(RecvTimeoutError::Disconnected) => return Gathered::Last(Vec::new(), None),
            }
        }
        let mut end = None;
        while self.backlog.len() < 2 * MOST {
            match self.queue.try_recv() {
                Ok(Op::Close(reply)) => end = Some(Some(reply)),
                Ok(op) => {
                    self.backlog.push_back(op);
                    continue;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => end = Some(None),
            }
            break;
        }
        let ops = self.share();
        match end {
            None => Gathered::Ops(ops),
            Some(reply) => Gathered::Last(ops, reply),
        }
    }

    /// Takes the part of the backlog that is committed together.
    fn share(&mut self) -> Vec<Op> {
        let waiting = self.backlog.len();
        let mut share = (waiting / 2).max(FEW).min(waiting);
        let sizes = self.backlog.iter().take(share).scan(0, |all, op| {
            *all += op.size();
            Some(*all)
        });
        // The first goes in any case.
        let fit = sizes.take_while(|all| *all <= LARGE).count();
        share = share.min(fit.max(1));
        self.backlog.drain(..share).collect()
    }

    /// How long to wait for work before looking whether there is room; for ever if there is.
    fn patience(&self) -> Option<Duration> {
        self.room.is_shut().then_some(room::TRIAL)
    }

    /// What is done when nobody wants anything.
    fn idle(&mut self) {
        if self.room.is_shut() && self.room.recovers(&self.shared, &self.filler) {
            self.shared.condition.room(None);
        }
    }
}

/// How many operations are committed together at most.
const MOST: usize = 1_024;

/// So few operations are committed together that halves of them would not be worth a sync each.
const FEW: usize = 128;

/// How many bytes are committed together, unless one operation brings more.
const LARGE: usize = 8 << 20;
