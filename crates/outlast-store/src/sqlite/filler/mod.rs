//! The thread that brings what the ledger has into the tables, a moment later and much at a time.
//!
//! It owns the only connection that writes. A task that begins and ends within that moment is written once. Nobody waits
//! for it: when it fails, the ledger keeps what was promised, and it tries again.

mod fill;
mod serve;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use outlast_wire::Timestamp;
use rusqlite::Connection;

use super::fault::Fault;
use super::options::SqliteOptions;
use super::probe::{Moment, Verdict};
use super::store::Shared;
use super::unwritten::{Adding, Grown};

/// A handle to the thread.
#[derive(Debug)]
pub(super) struct Filler {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    thread: JoinHandle<Left>,
}

/// What the thread is told.
#[derive(Debug)]
enum Command {
    /// There is something to write, soon.
    Begun,
    /// There is much to write, now.
    Much,
    /// Somebody waits until all that there is now is written.
    Flush(mpsc::Sender<Result<(), Fault>>),
    /// The disk is full: what SQLite keeps beside its file shall go into it.
    Compact,
    /// Nothing more will come.
    Close,
}

/// What the thread left in the ledger when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The tables have everything.
    Nothing,
    /// They could not be written.
    Something,
}

impl Filler {
    /// Starts the thread on the connection.
    pub(super) fn start(
        shared: Arc<Shared>,
        connection: Connection,
        path: PathBuf,
        options: SqliteOptions,
    ) -> std::io::Result<Self> {
        let (commands, orders) = mpsc::channel();
        let work = Work {
            shared: shared.clone(),
            orders,
            path,
            options,
            written: 0,
            unsynced: 0,
            shrink: false,
        };
        let thread = std::thread::Builder::new().name("outlast-filler".to_owned());
        let thread = thread.spawn(move || work.run(connection))?;
        let filler = Self {
            shared,
            commands,
            thread,
        };
        // What the ledger held when it was found.
        filler.tell(Command::Begun);
        Ok(filler)
    }

    /// Adds what the ledger has got.
    pub(super) fn add(&self, add: impl FnOnce(&mut Adding<'_>)) {
        match self.shared.unwritten.add(add) {
            Grown::Begun => self.tell(Command::Begun),
            Grown::Much => self.tell(Command::Much),
            Grown::More => {}
        }
    }

    /// Waits until the tables have everything that was added before.
    pub(super) fn flush(&self) -> Result<(), Fault> {
        let (reply, answer) = mpsc::channel();
        self.tell(Command::Flush(reply));
        answer.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Lets SQLite give back the room that it can do without.
    pub(super) fn compact(&self) {
        self.tell(Command::Compact);
    }

    /// The last frame of the ledger that the tables have on the disk.
    pub(super) fn filled(&self) -> u64 {
        self.shared.filled.load(Ordering::Acquire)
    }

    /// Lets the thread finish, and waits for it.
    pub(super) fn close(self) -> Left {
        self.tell(Command::Close);
        self.thread.join().unwrap_or(Left::Something)
    }

    fn tell(&self, command: Command) {
        // Whoever waits for a thread that has ended hears of it.
        let _ = self.commands.send(command);
    }
}

/// Everything that the thread owns, but for its connection.
struct Work {
    shared: Arc<Shared>,
    orders: mpsc::Receiver<Command>,
    path: PathBuf,
    options: SqliteOptions,
    /// The last frame of the ledger that is in the tables.
    written: u64,
    /// How much of that the disk may not have, in bytes of the ledger.
    unsynced: usize,
    /// Rows were deleted since the file was last made smaller.
    shrink: bool,
}

impl Work {
    fn ask(&self, moment: Moment) -> Verdict {
        self.options.ask(moment)
    }

    /// Notes when the next record expires.
    fn expect_expiry(&self, in_file: Option<Timestamp>) {
        let next = self.shared.unwritten.next_expiry();
        self.shared
            .expect_expiry([in_file, next].into_iter().flatten().min());
    }
}

fn ended() -> Fault {
    Fault::Io(outlast_engine::store::Reason::new(
        "the thread that fills the tables has ended",
    ))
}
