//! The loop of the writer thread: wait, collect a batch, write it, and at the end close the file.

use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

use rusqlite::Connection;

use super::Writer;
use super::commit::Statements;
use super::operation::{Operation, ReplySender};
use super::reopen::FailedBatch;
use super::space;
use crate::sqlite::file_fault::FileFault;
use crate::sqlite::mark::MarkState;
use crate::sqlite::{connect, file, schema};

/// Why the loop ends.
enum LoopEnd {
    /// The store is closed. A caller may wait for that.
    Closed(Option<ReplySender<()>>),
    /// A write failed.
    Failed(FailedBatch),
}

/// The operations from the queue.
enum NextBatch {
    Batch(Vec<Operation>),
    /// The last batch before the store closes.
    Last(Vec<Operation>, Option<ReplySender<()>>),
    /// There was no operation for the whole interval.
    Nothing,
}

impl Writer {
    /// Runs until the store is closed.
    pub(in crate::sqlite) fn run(mut self, first: Connection) {
        let mut connection = first;
        let reply = loop {
            match self.serve(&connection) {
                LoopEnd::Closed(reply) => {
                    self.join_readers();
                    let closed = self.close_file(&connection);
                    drop(connection);
                    if closed.is_ok() && !file::side_file(&self.path, "-wal").exists() {
                        self.lock.clear_commits();
                    }
                    break reply;
                }
                LoopEnd::Failed(failed) => {
                    drop(connection);
                    match self.recover(failed) {
                        Ok(reopened) => connection = reopened,
                        Err(reply) => {
                            self.join_readers();
                            break reply;
                        }
                    }
                }
            }
        };
        self.shared.health.close();
        let remaining: Vec<Operation> = self.queue.try_iter().collect();
        drop(self.lock);
        drop(remaining);
        if let Some(reply) = reply {
            let _ = reply.send(Ok(()));
        }
    }

    fn serve(&mut self, connection: &Connection) -> LoopEnd {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => return LoopEnd::Failed(FailedBatch::without_tasks(error)),
        };
        loop {
            let served = match self.collect() {
                NextBatch::Batch(operations) => self.batch(&mut statements, operations),
                NextBatch::Nothing => self.idle(connection).map_err(FailedBatch::without_tasks),
                NextBatch::Last(operations, reply) => {
                    let mut served = self.batch(&mut statements, operations);
                    while served.is_ok() && !self.backlog.is_empty() {
                        let rest = self.take_batch();
                        served = self.batch(&mut statements, rest);
                    }
                    return match served {
                        Ok(()) => LoopEnd::Closed(reply),
                        Err(failed) => {
                            self.close_requested = Some(reply);
                            LoopEnd::Failed(failed)
                        }
                    };
                }
            };
            if let Err(failed) = served {
                return LoopEnd::Failed(failed);
            }
        }
    }

    /// Waits for operations and takes half of the queue, or all of a short queue.
    ///
    /// While one half of many operations is written, the callers of the other half continue and
    /// queue their next operations. The writer is never idle, and one sync still serves many
    /// callers.
    fn collect(&mut self) -> NextBatch {
        if self.backlog.is_empty() {
            match self.queue.recv_timeout(self.idle_interval()) {
                Ok(Operation::Close(reply)) => return NextBatch::Last(Vec::new(), Some(reply)),
                Ok(operation) => self.backlog.push_back(operation),
                Err(RecvTimeoutError::Timeout) => return NextBatch::Nothing,
                Err(RecvTimeoutError::Disconnected) => return NextBatch::Last(Vec::new(), None),
            }
        }
        let mut end = None;
        while self.backlog.len() < 2 * MAX_BATCH_OPERATIONS {
            match self.queue.try_recv() {
                Ok(Operation::Close(reply)) => end = Some(Some(reply)),
                Ok(operation) => {
                    self.backlog.push_back(operation);
                    continue;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => end = Some(None),
            }
            break;
        }
        let operations = self.take_batch();
        match end {
            None => NextBatch::Batch(operations),
            Some(reply) => NextBatch::Last(operations, reply),
        }
    }

    /// Takes the part of the backlog that is committed together.
    fn take_batch(&mut self) -> Vec<Operation> {
        let waiting = self.backlog.len();
        let count = (waiting / 2).max(SMALL_BATCH_OPERATIONS).min(waiting);
        let sizes = self.backlog.iter().take(count).scan(0, |sum, operation| {
            *sum += operation.size_bytes();
            Some(*sum)
        });
        // The first operation is taken whatever its size.
        let fitting = sizes.take_while(|sum| *sum <= MAX_BATCH_BYTES).count();
        let count = count.min(fitting.max(1));
        self.backlog.drain(..count).collect()
    }

    /// How long to wait for operations before the idle work.
    fn idle_interval(&self) -> Duration {
        if self.shrink {
            SHRINK_INTERVAL
        } else {
            space::RETRY_INTERVAL
        }
    }

    /// The work while no operations are queued.
    fn idle(&mut self, connection: &Connection) -> Result<(), FileFault> {
        self.files.check()?;
        if self.space.refuses_new_tasks() && self.space.recovers(connection)? {
            self.shared.health.set_no_space(None);
        }
        if self.shrink {
            self.shrink = shrink(connection)?;
        }
        Ok(())
    }

    /// Moves everything into one file. If this fails nothing is lost: the log stays, and the mark
    /// still says that the store is open.
    fn close_file(&mut self, connection: &Connection) -> Result<(), FileFault> {
        self.files.check()?;
        schema::set_mark(connection, &self.mark.next(MarkState::Closed))?;
        // Another program that has the file open keeps the log, so everything must be in the file.
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        connect::set_checkpoint_on_close(connection, true)?;
        Ok(())
    }

    fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// Returns a few free pages to the disk if there are many. Returns whether to continue.
fn shrink(connection: &Connection) -> Result<bool, FileFault> {
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, pragma, |row| row.get(0))
    };
    let (free, all) = (number("freelist_count")?, number("page_count")?);
    if free < MIN_FREE_PAGES.max(all / 4) {
        return Ok(false);
    }
    match connection.execute_batch("PRAGMA incremental_vacuum(256)") {
        Ok(()) => Ok(true),
        Err(error) => match FileFault::from(error) {
            // Try again in the next idle interval.
            FileFault::Busy(_) | FileFault::Full(_) => Ok(true),
            fault => Err(fault),
        },
    }
}

/// The maximum number of operations in a batch.
const MAX_BATCH_OPERATIONS: usize = 1_024;

/// A queue up to this length is not halved, because each half needs a sync.
const SMALL_BATCH_OPERATIONS: usize = 128;

/// The maximum number of bytes in a batch, unless a single operation is larger.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// The number of free pages that stay in the file for later tasks.
const MIN_FREE_PAGES: i64 = 1_024;

/// How long the queue must be empty before the file is shrunk.
const SHRINK_INTERVAL: Duration = Duration::from_millis(100);
