//! The limit of a durable store: a preallocated log that only checksums its records and syncs them,
//! with group commit. It cannot find a record again.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::BenchResult;
use crate::store::Lifecycle;

/// A running log.
#[derive(Clone)]
pub(crate) struct RawLog(mpsc::Sender<Append>);

struct Append {
    bytes: Vec<u8>,
    durable: oneshot::Sender<()>,
}

impl RawLog {
    /// Creates the file and starts the thread that writes it.
    pub(crate) fn start(path: &Path) -> BenchResult<Self> {
        let file = preallocated(path)?;
        let (queue, appends) = mpsc::channel();
        thread::spawn(move || write(&file, &appends));
        Ok(Self(queue))
    }

    async fn append(&self, size: usize) -> BenchResult<()> {
        let (durable, done) = oneshot::channel();
        let bytes = vec![b'x'; size];
        let sent = self.0.send(Append { bytes, durable });
        sent.map_err(|_| "the writer of the raw log has ended")?;
        Ok(done.await?)
    }
}

impl Lifecycle for RawLog {
    /// Writes as many bytes as the creation and the end of a task.
    async fn lifecycle(&self) -> BenchResult<()> {
        self.append(CREATED_BYTES).await?;
        self.append(ENDED_BYTES).await
    }
}

fn write(file: &File, appends: &mpsc::Receiver<Append>) {
    let (mut buffer, mut at, mut waiting) = (Vec::new(), 0, Vec::new());
    while let Ok(first) = appends.recv() {
        buffer.clear();
        for append in std::iter::once(first).chain(appends.try_iter().take(MAX_BATCH_APPENDS - 1)) {
            let length = u32::try_from(append.bytes.len()).expect("a record is small");
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&crc32fast::hash(&append.bytes).to_le_bytes());
            buffer.extend_from_slice(&append.bytes);
            waiting.push(append.durable);
        }
        if at + buffer.len() as u64 > LOG_BYTES {
            at = 0;
        }
        file.write_all_at(&buffer, at).expect("the log is written");
        file.sync_data().expect("the log is synced");
        at += buffer.len() as u64;
        for durable in waiting.drain(..) {
            let _ = durable.send(());
        }
    }
}

fn preallocated(path: &Path) -> BenchResult<File> {
    let mut file = File::create_new(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..LOG_BYTES / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The approximate size of the columns of a task with 200 bytes of arguments.
const CREATED_BYTES: usize = 400;

/// The approximate size of its end, with 200 bytes of result.
const ENDED_BYTES: usize = 300;

/// The log starts again at offset 0 after this size.
const LOG_BYTES: u64 = 256 << 20;

/// The maximum number of records per sync.
const MAX_BATCH_APPENDS: usize = 1_024;
