//! The one thread that writes: it takes what has queued up, commits it in one transaction, publishes
//! it to the index and then answers everybody, in that order.

mod batch;
mod commit;
mod mend;
mod op;
mod plan;
mod publish;
mod room;
mod serve;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use outlast_engine::store::Health;

use super::lock::Lock;
use super::options::SqliteOptions;
use super::probe::{Moment, Verdict};
use super::store::Shared;

use room::Room;

pub(super) use op::{Op, Removal, Reply};

/// Everything that the writing thread owns, but for its connection.
pub(super) struct Writer {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Op>,
    /// What was taken from the queue and is not finished.
    backlog: VecDeque<Op>,
    path: PathBuf,
    options: SqliteOptions,
    room: Room,
    positions: Positions,
    /// Rows were deleted since the file was last made smaller.
    shrink: bool,
    lock: Lock,
    readers: Vec<JoinHandle<()>>,
}

/// Places in the order of creation. The file says of a whole block that it may have been given out,
/// so that none is given out twice even if its task is gone.
#[derive(Clone, Copy, Debug, Default)]
struct Positions {
    /// The first that the file does not call given out.
    in_file: u64,
    /// The first that was not given out, once one was.
    next: Option<u64>,
}

impl Positions {
    /// Notes that all places up to `last` are given out; returns what the file has to say about it.
    fn give_out(&mut self, last: u64) -> Option<u64> {
        self.next = Some(last + 1);
        (last >= self.in_file).then(|| {
            self.in_file = last + BLOCK;
            self.in_file
        })
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        queue: mpsc::Receiver<Op>,
        path: PathBuf,
        options: SqliteOptions,
        lock: Lock,
        readers: Vec<JoinHandle<()>>,
    ) -> Self {
        Self {
            shared,
            queue,
            backlog: VecDeque::new(),
            room: Room::new(&path, &options),
            path,
            options,
            positions: Positions::default(),
            shrink: false,
            lock,
            readers,
        }
    }

    fn ask(&self, moment: Moment) -> Verdict {
        match &self.options.probe {
            None => Verdict::Go,
            Some(probe) => probe.at(moment),
        }
    }

    fn set_health(&self, health: Health) {
        self.shared.health.send_if_modified(|now| {
            let changed = *now != health;
            *now = health;
            changed
        });
    }
}

/// How many places in the order of creation the file is told of at once.
const BLOCK: u64 = 10_000;
