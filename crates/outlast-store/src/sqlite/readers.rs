//! A few threads with a read-only connection each, for data that is not in memory.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use outlast_engine::StoreError;
use outlast_engine::store::Reason;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connect;
use super::file_fault::FileFault;

/// A handle to the reader threads.
#[derive(Debug)]
pub(super) struct Readers {
    queue: mpsc::Sender<Job>,
    count: usize,
}

/// A read. `None` ends a thread.
type Job = Option<Box<dyn FnOnce(&Connection) + Send>>;

impl Readers {
    /// Opens `count` connections and starts a thread for each.
    pub(super) fn start(
        path: &Path,
        count: usize,
    ) -> rusqlite::Result<(Self, Vec<JoinHandle<()>>)> {
        let count = count.max(1);
        let (queue, jobs) = mpsc::channel::<Job>();
        let jobs = Arc::new(Mutex::new(jobs));
        let connections: rusqlite::Result<Vec<_>> =
            (0..count).map(|_| connect::reading(path)).collect();
        let threads = connections?.into_iter().map(|connection| {
            let jobs = jobs.clone();
            thread::spawn(move || serve(&connection, &jobs))
        });
        Ok((Self { queue, count }, threads.collect()))
    }

    /// Runs `read` on one of the threads.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, FileFault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(move |connection: &Connection| {
            // The send fails if the caller has given up.
            let _ = reply.send(read(connection));
        });
        let closed = || StoreError::Unavailable(Reason::new("it was closed"));
        self.queue.send(Some(job)).map_err(|_| closed())?;
        match answer.await {
            Ok(found) => found.map_err(|fault| fault.error()),
            Err(_) => Err(closed()),
        }
    }

    /// Ends the threads after the reads that were queued before.
    pub(super) fn stop(&self) {
        for _ in 0..self.count {
            let _ = self.queue.send(None);
        }
    }
}

fn serve(connection: &Connection, jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let next = jobs.lock().recv();
        match next {
            Ok(Some(job)) => job(connection),
            Ok(None) | Err(_) => return,
        }
    }
}
