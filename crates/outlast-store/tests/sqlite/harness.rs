//! The harness: a store in a temporary folder, fail points for tests, and queries on the file.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_engine::Store;
use outlast_engine::store::Health;
use outlast_store::sqlite::{DiskFailure, FailPoint, FailPoints};
use outlast_store::{OpenError, Sqlite, SqliteOptions};
use tempfile::TempDir;

/// A folder for a store.
pub(crate) struct StoreFolder {
    folder: TempDir,
}

impl StoreFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file("tasks.db")
    }

    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        self.open_with(SqliteOptions::default()).await
    }

    pub(crate) async fn open_with(&self, options: SqliteOptions) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(self.path(), options).await.unwrap())
    }

    pub(crate) async fn refusal(&self) -> OpenError {
        let opened = Sqlite::open(self.path(), SqliteOptions::default()).await;
        opened.expect_err("the file is refused")
    }

    /// A copy of the folder with the files as they are now, as after a kill.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.folder.path().join(file.file_name())).unwrap();
        }
        copy
    }

    /// The value of a query, as another program reads it.
    pub(crate) fn query<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        let file = rusqlite::Connection::open(self.path()).unwrap();
        file.query_row(sql, (), |row| row.get(0)).unwrap()
    }
}

/// Injects the planned failures, and counts commits.
#[derive(Default)]
pub(crate) struct PlannedFailures {
    planned: Mutex<VecDeque<(FailPoint, DiskFailure)>>,
    commits: AtomicUsize,
}

impl PlannedFailures {
    pub(crate) fn options(self: &Arc<Self>) -> SqliteOptions {
        SqliteOptions::default().with_fail_points(self.clone())
    }

    /// Plans a failure for the next time that `moment` is reached, after those that are already
    /// planned.
    pub(crate) fn fail(&self, moment: FailPoint, fail: DiskFailure) {
        self.planned.lock().unwrap().push_back((moment, fail));
    }

    /// The number of failures that are still planned.
    pub(crate) fn planned(&self) -> usize {
        self.planned.lock().unwrap().len()
    }

    pub(crate) fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }
}

impl FailPoints for PlannedFailures {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        if point == FailPoint::AfterCommit {
            self.commits.fetch_add(1, Ordering::SeqCst);
        }
        let mut planned = self.planned.lock().unwrap();
        match planned.front() {
            Some((at, fail)) if *at == point => {
                let fail = *fail;
                planned.pop_front();
                Some(fail)
            }
            _ => None,
        }
    }
}

/// Blocks the writer thread at a fail point until the controller releases it.
pub(crate) struct Gate {
    at: FailPoint,
    ways: Mutex<(Sender<()>, Receiver<()>)>,
}

/// Controls a gate. Dropping it opens the gate.
pub(crate) struct GateController {
    reached: Receiver<()>,
    pass: Sender<()>,
}

impl Gate {
    pub(crate) fn at(moment: FailPoint) -> (Self, GateController) {
        let ((reached, at_gate), (pass, passed)) = (mpsc::channel(), mpsc::channel());
        let gate = Self {
            at: moment,
            ways: Mutex::new((reached, passed)),
        };
        let reached = at_gate;
        (gate, GateController { reached, pass })
    }
}

impl GateController {
    /// Waits until the thread has reached the gate.
    pub(crate) fn reached(&self) {
        self.reached.recv().unwrap();
    }

    /// Releases the thread.
    pub(crate) fn release(&self) {
        self.pass.send(()).unwrap();
    }
}

impl FailPoints for Gate {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        if point == self.at {
            let ways = self.ways.lock().unwrap();
            // The controller may have been dropped.
            let _ = ways.0.send(());
            let _ = ways.1.recv();
        }
        None
    }
}

/// Waits until the store is ready.
pub(crate) async fn recovered(store: &Arc<dyn Store>) {
    let mut health = store.health();
    let ready = health.wait_for(|health| *health == Health::Ready);
    let ready = tokio::time::timeout(Duration::from_secs(20), ready).await;
    drop(ready.expect("it recovers in time").unwrap());
}
