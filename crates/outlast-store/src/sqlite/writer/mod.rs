//! The one thread that promises: it takes what has queued up, writes it into the ledger in one piece, publishes it to the
//! index and then answers everybody, in that order. The filler hears of it and brings it into the tables.

mod batch;
mod mend;
mod op;
mod plan;
mod promise;
mod publish;
mod room;
mod serve;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use super::filler::Filler;
use super::ledger::Ledger;
use super::lock::Lock;
use super::options::SqliteOptions;
use super::probe::{Moment, Verdict};
use super::store::Shared;

use room::Room;

pub(super) use op::{Op, Removal, Reply};

/// Everything that the writing thread owns.
pub(super) struct Writer {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Op>,
    /// What was taken from the queue and is not finished.
    backlog: VecDeque<Op>,
    options: SqliteOptions,
    room: Room,
    ledger: Ledger,
    /// How large a frame is, most of the time.
    usual: usize,
    /// Where texts are put together.
    scratch: Vec<u8>,
    filler: Filler,
    lock: Lock,
    readers: Vec<JoinHandle<()>>,
}

/// What the writer works with.
pub(super) struct Tools {
    pub(super) ledger: Ledger,
    pub(super) filler: Filler,
    pub(super) lock: Lock,
    pub(super) readers: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        queue: mpsc::Receiver<Op>,
        path: &Path,
        options: SqliteOptions,
        tools: Tools,
    ) -> Self {
        Self {
            shared,
            queue,
            backlog: VecDeque::new(),
            room: Room::new(path, &options),
            options,
            ledger: tools.ledger,
            usual: 0,
            scratch: Vec::new(),
            filler: tools.filler,
            lock: tools.lock,
            readers: tools.readers,
        }
    }

    fn ask(&self, moment: Moment) -> Verdict {
        self.options.ask(moment)
    }
}
