//! The one thread that writes: it takes what has queued up, commits it in one transaction, publishes
//! it to the index and then answers everybody, in that order.

mod batch;
mod commit;
mod mend;
mod op;
mod plan;
mod positions;
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

use positions::Positions;
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
