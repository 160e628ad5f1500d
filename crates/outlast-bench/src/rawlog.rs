//! The limit of a durable store: a preallocated log that checksums what it is given and syncs it, with
//! the same group commit as ours and nothing else. It can find nothing again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::Done;
use crate::load::Life;

/// A running log.
#[derive(Clone)]
pub(crate) struct RawLog {
    queue: mpsc::Sender<Append>,
    bytes: Bytes,
}

/// How many bytes a life writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub(crate) created: usize,
    pub(crate) ended: usize,
    /// All columns of the task in the end.
    pub(crate) row: usize,
}

struct Append {
    bytes: Vec<u8>,
    durable: oneshot::Sender<()>,
}

impl RawLog {
    /// Makes the file and starts the thread that writes it.
    pub(crate) fn start(path: &Path, bytes: Bytes) -> Done<Self> {
        let file = preallocated(path)?;
        let (queue, appends) = mpsc::channel();
        thread::spawn(move || write(&file, &appends));
        Ok(Self { queue, bytes })
    }

    pub(crate) async fn append(&self, size: usize) {
        let (durable, told) = oneshot::channel();
        let bytes = vec![b'x'; size];
        let sent = self.queue.send(Append { bytes, durable });
        sent.expect("the writer lives as long as its log");
        told.await.expect("it was synced");
    }

    pub(crate) async fn append_created(&self) {
        self.append(self.bytes.created).await;
    }
}

impl Life for RawLog {
    async fn live(&self) {
        self.append(self.bytes.created).await;
        self.append(self.bytes.ended).await;
    }
}

fn write(file: &File, appends: &mpsc::Receiver<Append>) {
    let (mut buffer, mut at) = (Vec::new(), 0);
    let (mut waiting, mut told) = (VecDeque::new(), Vec::new());
    loop {
        if waiting.is_empty() {
            match appends.recv() {
                Ok(first) => waiting.push_back(first),
                Err(_) => return,
            }
        }
        let room = 2 * MOST - waiting.len();
        waiting.extend(appends.try_iter().take(room));
        // As our writer gathers its batches.
        let share = (waiting.len() / 2).max(FEW).min(waiting.len());
        buffer.clear();
        for append in waiting.drain(..share) {
            let length = u32::try_from(append.bytes.len()).expect("a record is small");
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&crc32fast::hash(&append.bytes).to_le_bytes());
            buffer.extend_from_slice(&append.bytes);
            told.push(append.durable);
        }
        if at + buffer.len() as u64 > SIZE {
            at = 0;
        }
        file.write_all_at(&buffer, at).expect("the log is written");
        file.sync_data().expect("the log is synced");
        at += buffer.len() as u64;
        for durable in told.drain(..) {
            let _ = durable.send(());
        }
    }
}

fn preallocated(path: &Path) -> Done<File> {
    let mut file = File::create_new(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..SIZE / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The log begins again at its end.
const SIZE: u64 = 256 << 20;

/// As many as our writer commits together at most.
const MOST: usize = 1_024;

/// As many as it does not halve.
const FEW: usize = 128;
