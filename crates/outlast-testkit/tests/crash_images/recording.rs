//! The recording of processes that work on a store: made by running them under `record.c`, or read
//! from a folder that an earlier run has kept.
//!
//! | in the folder | what |
//! |---|---|
//! | `store/` | the store, as the last process left it |
//! | `base/`, `base.json` | the files and the facts that the first process started from |
//! | `log` | what `record.c` wrote |

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::disk::{Disk, FileOperation, Files, SyncTarget};
use crate::facts::{Facts, ProcessNote};
use crate::load::{self, ProcessEnd, ProcessPlan};

/// What happened to a store, in order.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) folder: PathBuf,
    pub(crate) base: Files,
    pub(crate) facts: Facts,
    pub(crate) events: Vec<RecordedEvent>,
}

#[derive(Clone, Debug)]
pub(crate) enum RecordedEvent {
    FileOperation(FileOperation),
    ProcessNote(ProcessNote),
}

/// Compiles the recorder; returns where the library is.
pub(crate) fn compile(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("record.c"), folder.join("record.so"));
    fs::write(&source, include_str!("record.c"))?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"]);
    if command.status()?.success() {
        Ok(library)
    } else {
        Err(Error::other(format!("{command:?} failed")))
    }
}

impl Recording {
    /// Runs one process after the other in `folder`, each until its [`ProcessEnd`], on a store that
    /// starts as `base`.
    pub(crate) fn make(
        library: &Path,
        folder: &Path,
        base: (Files, Facts),
        ends: &[ProcessEnd],
        seed: u64,
        steps: u64,
    ) -> Result<Self> {
        let store = folder.join("store");
        let (files, facts) = base;
        write_files(&folder.join("base"), &files)?;
        write_files(&store, &files)?;
        fs::write(folder.join("base.json"), serde_json::to_vec(&facts)?)?;
        let (log, notes) = (folder.join("log"), folder.join("notes"));
        fs::write(&log, "")?;
        fs::write(&notes, "")?;
        for (number, end) in (1..).zip(ends) {
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(["--exact", load::PROCESS, "--nocapture", "--ignored"])
                .env("LD_PRELOAD", library)
                .env("OUTLAST_RECORD_FOLDER", &store)
                .env("OUTLAST_RECORD_LOG", &log)
                .env("OUTLAST_RECORD_NOTES", &notes)
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let plan = ProcessPlan {
                seed,
                steps,
                number: facts.processes() + number,
                end: *end,
            };
            load::configure(&mut command, &store, &notes, plan);
            wait(command, *end)?;
        }
        let recording = Self::read(folder)?;
        recording.compare_with(&read_files(&store)?)?;
        Ok(recording)
    }

    /// Reads what `make` left in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            base: read_files(&folder.join("base"))?,
            facts: serde_json::from_slice(&fs::read(folder.join("base.json"))?)?,
            events: parse(&fs::read(folder.join("log"))?)?,
        })
    }

    /// Whether the record explains every byte in the folder: nothing was written past it.
    fn compare_with(&self, files: &Files) -> Result<()> {
        let mut disk = Disk::holding(&self.base);
        for event in &self.events {
            if let RecordedEvent::FileOperation(operation) = event {
                disk.apply(operation).map_err(Error::other)?;
            }
        }
        let newest = disk.newest();
        for name in files.keys().chain(newest.keys()) {
            if files.get(name) != newest.get(name) {
                let what = format!("the record does not explain the content of {name}");
                return Err(Error::other(what));
            }
        }
        Ok(())
    }
}

/// Runs a process to its end. Fails if it takes too long, or does not end as planned.
fn wait(mut command: Command, end: ProcessEnd) -> Result<()> {
    let mut child = command.spawn()?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGKILL);
            return match (end, killed, status.success()) {
                (ProcessEnd::Killed, true, _) | (ProcessEnd::Closed, _, true) => Ok(()),
                _ => Err(Error::other(format!(
                    "the process was to {end:?}: {status}"
                ))),
            };
        }
        if started.elapsed() > PROCESS_TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Err(Error::other("the process did not end in time"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads the entries of `record.c`.
fn parse(mut log: &[u8]) -> Result<Vec<RecordedEvent>> {
    let mut events = Vec::new();
    while !log.is_empty() {
        let short = || Error::other("the record ends within an entry");
        let (head, rest) = log.split_at_checked(21).ok_or_else(short)?;
        let number = |at: usize| {
            let bytes = head[at..at + 8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let length = u32::from_ne_bytes(head[17..].try_into().expect("four bytes"));
        let (data, rest) = rest.split_at_checked(length as usize).ok_or_else(short)?;
        log = rest;
        let (one, other) = (number(1), number(9));
        let text = || String::from_utf8_lossy(data).into_owned();
        let inode = one;
        let operation = match head[0] {
            1 => FileOperation::Create {
                inode,
                name: text(),
            },
            2 => FileOperation::Open {
                inode,
                name: text(),
            },
            3 => FileOperation::Write {
                inode,
                at: other as usize,
                bytes: Arc::from(data),
            },
            4 => FileOperation::Truncate {
                inode,
                length: other as usize,
            },
            5 => FileOperation::SyncBegin {
                target: match inode {
                    0 => SyncTarget::Folder,
                    inode => SyncTarget::File(inode),
                },
                number: other,
            },
            6 => FileOperation::SyncEnd { number: other },
            7 => FileOperation::Unlink { name: text() },
            8 => FileOperation::Rename {
                from: String::from_utf8_lossy(&data[..one as usize]).into_owned(),
                to: String::from_utf8_lossy(&data[one as usize..]).into_owned(),
            },
            9 => {
                events.push(RecordedEvent::ProcessNote(serde_json::from_slice(data)?));
                continue;
            }
            _ => {
                let what = format!("the recorder cannot describe {}", text());
                return Err(Error::other(what));
            }
        };
        events.push(RecordedEvent::FileOperation(operation));
    }
    Ok(events)
}

/// Writes files into a new folder. Zeros take no room.
pub(crate) fn write_files(folder: &Path, files: &Files) -> Result<()> {
    use std::os::unix::fs::FileExt;

    fs::create_dir_all(folder)?;
    for (name, content) in files {
        let file = fs::File::create(folder.join(name))?;
        file.set_len(content.len() as u64)?;
        for (number, piece) in content.chunks(CHUNK_BYTES).enumerate() {
            if piece != &ZEROS[..piece.len()] {
                file.write_all_at(piece, (number * CHUNK_BYTES) as u64)?;
            }
        }
    }
    Ok(())
}

/// All files of a folder that are recorded.
fn read_files(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with("-shm") {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}

/// How long a process may take.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(120);

const SIGKILL: i32 = 9;

const CHUNK_BYTES: usize = 4_096;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
