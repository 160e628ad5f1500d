//! The life of the filling thread: wait for a moment, write what has come, and try again where that fails.

use std::fs;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;
use rusqlite::Connection;

use super::fill::Statements;
use super::{Command, Left, Work};
use crate::sqlite::connect;
use crate::sqlite::fault::Fault;
use crate::sqlite::file;
use crate::sqlite::options::Durability;
use crate::sqlite::probe::{Moment, Verdict};

/// Why the thread stops using its connection.
enum Pause {
    /// Nothing more will come.
    Closed(Left),
    /// It cannot be trusted any more.
    Broken(Fault),
}

impl Work {
    /// Serves until nothing more will come.
    pub(super) fn run(mut self, first: Connection) -> Left {
        step_back();
        let mut connection = first;
        loop {
            let fault = match self.serve(&connection) {
                Pause::Closed(left) => {
                    // Leaves one file that holds everything.
                    compact(&connection);
                    return left;
                }
                Pause::Broken(fault) => fault,
            };
            drop(connection);
            match self.mend(fault) {
                Some(mended) => connection = mended,
                None => return Left::Something,
            }
        }
    }

    fn serve(&mut self, connection: &Connection) -> Pause {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => return Pause::Broken(error.into()),
        };
        if let Err(fault) = self.measure(&mut statements) {
            return Pause::Broken(fault);
        }
        // When what has come is written, if something has come.
        let mut due = None::<Instant>;
        loop {
            let served = match self.next(due) {
                Ok(Command::Begun) => {
                    due = due.or_else(|| Some(Instant::now() + LAG));
                    continue;
                }
                Ok(Command::Much) => self.fill(&mut statements),
                Ok(Command::Flush(reply)) => {
                    let filled = self.fill_all(&mut statements);
                    let _ = reply.send(filled.clone());
                    filled
                }
                Ok(Command::Compact) => {
                    compact(connection);
                    continue;
                }
                Ok(Command::Close) | Err(RecvTimeoutError::Disconnected) => {
                    return Pause::Closed(match self.fill_all(&mut statements) {
                        Ok(()) => Left::Nothing,
                        // The ledger keeps it.
                        Err(_) => Left::Something,
                    });
                }
                Err(RecvTimeoutError::Timeout) if due.is_none() => self.shrink(connection),
                Err(RecvTimeoutError::Timeout) => self.fill(&mut statements),
            };
            // What came while something else was written has rung already.
            due = self.shared.unwritten.waits().then(|| Instant::now() + LAG);
            if let Err(fault) = served {
                match fault {
                    Fault::Full(_) => self.wait_for_room(&mut statements, fault.clone()),
                    // Another program writes, and will end.
                    Fault::Busy(_) => self.shared.condition.tables(Some(fault)),
                    fault => return Pause::Broken(fault),
                }
                due = Some(Instant::now() + RETRY);
            }
        }
    }

    fn next(&self, due: Option<Instant>) -> Result<Command, RecvTimeoutError> {
        let patience = match due {
            Some(due) => due.saturating_duration_since(Instant::now()),
            None if self.shrink => SHRINK_PAUSE,
            None => {
                return self
                    .orders
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected);
            }
        };
        self.orders.recv_timeout(patience)
    }

    /// Writes all that there is when it is called, and waits until the disk has it.
    fn fill_all(&mut self, statements: &mut Statements<'_>) -> Result<(), Fault> {
        // What was handed out before, and what has come since.
        self.fill(statements)?;
        self.fill(statements)?;
        self.sync()
    }

    /// Writes what there is, if there is something.
    fn fill(&mut self, statements: &mut Statements<'_>) -> Result<(), Fault> {
        let shared = self.shared.clone();
        let Some(changes) = shared.unwritten.take() else {
            shared.condition.tables(None);
            return Ok(());
        };
        statements.fill(&changes, |moment| self.ask(moment))?;
        self.shrink |= changes.tasks.values().any(|change| change.image.is_none());
        self.written = changes.upto.max(self.written);
        self.unsynced += changes.bytes;
        let records = !changes.records.is_empty() || changes.forget.is_some();
        drop(changes);
        shared.unwritten.filled();
        if records {
            self.expect_expiry(statements.next_expiry()?);
        }
        self.measure(statements)?;
        if self.unsynced >= UNSYNCED {
            self.sync()?;
        }
        shared.condition.tables(None);
        Ok(())
    }

    /// Waits until the disk has what is in the tables: the ledger may forget it then.
    fn sync(&mut self) -> Result<(), Fault> {
        if self.options.durability == Durability::Power {
            connect::sync_log(&self.path)?;
        }
        self.unsynced = 0;
        self.shared.filled.fetch_max(self.written, Ordering::AcqRel);
        Ok(())
    }

    /// Notes how much of the file is used.
    fn measure(&self, statements: &mut Statements<'_>) -> Result<(), Fault> {
        if self.options.max_bytes.is_some() {
            self.shared
                .used
                .store(statements.used()?, Ordering::Release);
        }
        Ok(())
    }

    /// The ledger keeps what does not fit; what makes room is written.
    fn wait_for_room(&mut self, statements: &mut Statements<'_>, full: Fault) {
        self.shared.condition.tables(Some(full));
        let _ = fs::remove_file(file::reserve(&self.path));
        compact(statements.connection);
        let _ = statements.make_room(&self.shared.unwritten.removals());
    }

    /// Tries until the file can be opened again; `None` if nothing more will come meanwhile.
    fn mend(&mut self, mut fault: Fault) -> Option<Connection> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.shared.condition.tables(Some(fault.clone()));
            self.refuse_for(pause, &fault)?;
            match self.reopen() {
                Ok(connection) => return Some(connection),
                Err(again) => fault = again,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Lets nobody wait for a while; `None` if the store is closed meanwhile.
    fn refuse_for(&mut self, pause: Duration, fault: &Fault) -> Option<()> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.orders.recv_timeout(left) {
                Ok(Command::Flush(reply)) => drop(reply.send(Err(fault.clone()))),
                Ok(Command::Begun | Command::Much | Command::Compact) => {}
                Ok(Command::Close) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => return Some(()),
            }
        }
    }

    fn reopen(&mut self) -> Result<Connection, Fault> {
        if let Verdict::Fail(fail) = self.ask(Moment::BeforeReopen) {
            return Err(fail.into());
        }
        let connection = connect::writing(&self.path, &self.options)?;
        // Pages that a failed sync left in the system's cache may never reach the disk by themselves.
        // Copying the whole log into the file writes and syncs them once more.
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: bool = connection.query_row(sql, (), |row| row.get(0))?;
        if busy {
            let reader = "another program reads the file; recovery waits for it";
            return Err(Fault::Busy(Reason::new(reader)));
        }
        let mut statements = Statements::prepare(&connection)?;
        self.fill_all(&mut statements)?;
        drop(statements);
        self.shared.condition.tables(None);
        Ok(connection)
    }

    /// Gives a few free pages back to the disk if there are many.
    fn shrink(&mut self, connection: &Connection) -> Result<(), Fault> {
        let number = |pragma: &str| -> rusqlite::Result<i64> {
            connection.pragma_query_value(None, pragma, |row| row.get(0))
        };
        let (free, all) = (number("freelist_count")?, number("page_count")?);
        self.shrink = free >= FREE_PAGES.max(all / 4);
        if !self.shrink {
            return Ok(());
        }
        match connection.execute_batch("PRAGMA incremental_vacuum(256)") {
            Ok(()) => Ok(()),
            Err(error) => match Fault::from(error) {
                // The next quiet moment will do.
                Fault::Busy(_) | Fault::Full(_) => Ok(()),
                fault => Err(fault),
            },
        }
    }
}

/// Lets threads for whom somebody waits go first.
fn step_back() {
    #[cfg(target_os = "linux")]
    if let Ok(now) = rustix::process::getpriority_process(None) {
        // Of this thread, here. Where it fails, nothing but time is lost.
        let _ = rustix::process::setpriority_process(None, now + STEPS_BACK);
    }
}

/// Moves the log into the file. Where that fails, it stays as it is.
fn compact(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

/// How far the tables are behind the ledger when there is little to do.
const LAG: Duration = Duration::from_millis(100);

/// How much is in the tables, in bytes of the ledger, before the disk is asked to confirm it.
const UNSYNCED: usize = 4 << 20;

/// How much less urgent than others the thread is, in steps of the system.
#[cfg(target_os = "linux")]
const STEPS_BACK: i32 = 10;

/// How soon a full disk is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// How many free pages are left in the file for what comes.
const FREE_PAGES: i64 = 1_024;

/// How long a quiet moment is.
const SHRINK_PAUSE: Duration = Duration::from_millis(100);

const FIRST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);
