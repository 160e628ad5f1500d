//! The only thread that writes. It takes the queued operations, commits them in one transaction,
//! publishes them to the index and then replies to their callers, in that order.
//!
//! | module | content |
//! |---|---|
//! | `queue` | the loop of the thread: wait, collect a batch, close |
//! | `batch` | one batch: plan, commit, publish, reply, or handle a failure |
//! | `plan` | what each operation of a batch does |
//! | `commit` | the transaction |
//! | `publish` | the index and the replies |
//! | `reopen` | recovery after a failed commit |
//! | `space` | full disks and full files |

mod batch;
mod commit;
mod operation;
mod plan;
mod publish;
mod queue;
mod reopen;
mod space;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use super::failpoint::{DiskFailure, FailPoint};
use super::lock::Lock;
use super::mark::Mark;
use super::open_files::OpenFiles;
use super::options::SqliteOptions;
use super::store::Shared;

use space::Space;

pub(super) use operation::{Operation, Removal, ReplySender};
pub(super) use space::reserve;

/// Everything that the writer thread owns, except its connection.
pub(super) struct Writer {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Operation>,
    /// Operations that were taken from the queue and are not finished.
    backlog: VecDeque<Operation>,
    path: PathBuf,
    options: SqliteOptions,
    space: Space,
    /// The mark of the last commit.
    mark: Mark,
    /// Whether rows were deleted since the file was last shrunk.
    shrink: bool,
    files: OpenFiles,
    lock: Lock,
    readers: Vec<JoinHandle<()>>,
    /// A close that was requested while a write failed.
    close_requested: Option<Option<ReplySender<()>>>,
}

/// The parameters of the writer.
pub(super) struct Parts {
    pub(super) path: PathBuf,
    pub(super) options: SqliteOptions,
    pub(super) mark: Mark,
    pub(super) files: OpenFiles,
    pub(super) lock: Lock,
    pub(super) readers: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, queue: mpsc::Receiver<Operation>, parts: Parts) -> Self {
        let Parts {
            path,
            options,
            mark,
            files,
            lock,
            readers,
        } = parts;
        Self {
            shared,
            queue,
            backlog: VecDeque::new(),
            space: Space::new(&path, &options),
            path,
            options,
            mark,
            shrink: false,
            files,
            lock,
            readers,
            close_requested: None,
        }
    }

    fn failure_at(&self, point: FailPoint) -> Option<DiskFailure> {
        self.options.failure_at(point)
    }
}
