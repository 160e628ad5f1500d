//! The life of the writing thread: wait, gather, write, and in the end let go of the file.

use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

use outlast_engine::store::Health;
use rusqlite::Connection;

use super::Writer;
use super::commit::Statements;
use super::mend::Wreck;
use super::op::{Op, Reply};
use super::room;
use crate::sqlite::fault::Fault;

/// Why the thread stops serving.
enum Pause {
    /// The store is closed; somebody may wait for that.
    Closed(Option<Reply<()>>),
    /// The disk failed.
    Down(Wreck),
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
    pub(in crate::sqlite) fn run(mut self, first: Connection) {
        let mut connection = first;
        let closed = loop {
            match self.serve(&connection) {
                Pause::Closed(reply) => {
                    self.join_readers();
                    self.tidy_up(&connection);
                    drop(connection);
                    break reply;
                }
                Pause::Down(wreck) => {
                    drop(connection);
                    match self.mend(wreck) {
                        Ok(mended) => connection = mended,
                        Err(reply) => {
                            self.join_readers();
                            break reply;
                        }
                    }
                }
            }
        };
        self.set_health(Health::Closed);
        let left: Vec<Op> = self.queue.try_iter().collect();
        drop(self.lock);
        drop(left);
        if let Some(reply) = closed {
            let _ = reply.send(Ok(()));
        }
    }

    fn serve(&mut self, connection: &Connection) -> Pause {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => return Pause::Down(Wreck::without_tasks(error)),
        };
        loop {
            let served = match self.gather() {
                Gathered::Ops(ops) => self.batch(&mut statements, ops),
                Gathered::Nothing => self.idle(connection).map_err(Wreck::without_tasks),
                Gathered::Last(ops, reply) => {
                    let mut served = self.batch(&mut statements, ops);
                    while served.is_ok() && !self.backlog.is_empty() {
                        let rest = self.backlog.drain(..).collect();
                        served = self.batch(&mut statements, rest);
                    }
                    return Pause::Closed(reply);
                }
            };
            if let Err(wreck) = served {
                return Pause::Down(wreck);
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
        let waiting = self.backlog.len();
        let share = (waiting / 2).max(FEW).min(waiting);
        let ops = self.backlog.drain(..share).collect();
        match end {
            None => Gathered::Ops(ops),
            Some(reply) => Gathered::Last(ops, reply),
        }
    }

    /// How long to wait for work before looking after the file; for ever if there is nothing to do.
    fn patience(&self) -> Option<Duration> {
        if self.shrink {
            return Some(SHRINK_PAUSE);
        }
        self.room.is_shut().then_some(room::TRIAL)
    }

    /// What is done when nobody wants anything.
    fn idle(&mut self, connection: &Connection) -> Result<(), Fault> {
        if self.room.is_shut() && self.room.recovers(connection)? {
            self.set_health(Health::Ready);
        }
        if self.shrink {
            self.shrink = shrink(connection)?;
        }
        Ok(())
    }

    /// Leaves one file that holds everything. What fails here loses nothing: the log is still there.
    fn tidy_up(&mut self, connection: &Connection) {
        if let Some(next) = self.positions.next {
            let _ = connection.execute(
                "UPDATE meta SET value = ?1 WHERE name = 'next_position'",
                [next.cast_signed()],
            );
        }
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    }

    fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// Gives a few free pages back to the disk if there are many; says whether to go on.
fn shrink(connection: &Connection) -> Result<bool, Fault> {
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, pragma, |row| row.get(0))
    };
    let (free, all) = (number("freelist_count")?, number("page_count")?);
    if free < FREE_PAGES.max(all / 4) {
        return Ok(false);
    }
    match connection.execute_batch("PRAGMA incremental_vacuum(256)") {
        Ok(()) => Ok(true),
        Err(error) => match Fault::from(error) {
            // The next quiet moment will do.
            Fault::Busy(_) | Fault::Full(_) => Ok(true),
            fault => Err(fault),
        },
    }
}

/// How many operations are committed together at most.
const MOST: usize = 1_024;

/// So few operations are committed together that halves of them would not be worth a sync each.
const FEW: usize = 128;

/// How many free pages are left in the file for what comes.
const FREE_PAGES: i64 = 1_024;

/// How long a quiet moment is.
const SHRINK_PAUSE: Duration = Duration::from_millis(100);
