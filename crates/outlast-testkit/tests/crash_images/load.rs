//! The recorded process: its workers change tasks and records of one store, and write down each
//! request and acknowledgement.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{InsertResult, Record, RecordKey, RecordWrite};
use outlast_engine::task::NewTask;
use outlast_engine::transition::Command;
use outlast_engine::{ErrorCode, Origin, Outcome, Store, Task};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_testkit::death::SeededRandom;
use outlast_wire::Raw;

use crate::contents::{
    RECORD_KIND, StoreContents, fingerprint, hash, owners, record_name, record_version, task_name,
};
use crate::facts::{ProcessNote, VersionChange};

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessPlan {
    pub(crate) seed: u64,
    /// How many steps each worker takes.
    pub(crate) steps: u64,
    /// Its number among those that use the store.
    pub(crate) number: u64,
    pub(crate) end: ProcessEnd,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// It is killed while its workers run.
    Killed,
    /// It closes the store after its workers have ended.
    Closed,
}

/// The name of the test that runs as the recorded process.
pub(crate) const PROCESS: &str = "load::the_recorded_process";

/// Passes the plan to the process in environment variables.
pub(crate) fn configure(process: &mut Process, store: &Path, notes: &Path, plan: ProcessPlan) {
    process
        .env(STORE, store)
        .env(NOTES, notes)
        .env(SEED, plan.seed.to_string())
        .env(STEPS, plan.steps.to_string())
        .env(NUMBER, plan.number.to_string())
        .env(
            IS_KILLED,
            u8::from(plan.end == ProcessEnd::Killed).to_string(),
        );
}

#[test]
#[ignore = "runs in a process of its own, started by the tests of this program"]
fn the_recorded_process() {
    let Ok(folder) = std::env::var(STORE) else {
        return;
    };
    let number = |name| -> u64 {
        let text = std::env::var(name).expect("it is set with the others");
        text.parse().expect("a number")
    };
    let notes = std::env::var(NOTES).expect("it is set with the others");
    let notes = OpenOptions::new().write(true).open(notes);
    let child = ChildProcess {
        path: PathBuf::from(folder).join("tasks.db"),
        notes: Arc::new(Notes {
            file: notes.expect("the notes can be opened"),
            requests: AtomicU64::new(number(NUMBER) << 32),
            acknowledged: AtomicU64::new(0),
        }),
        seed: number(SEED),
        steps: number(STEPS),
        number: number(NUMBER),
        is_killed: number(IS_KILLED) == 1,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(child.run());
}

struct ChildProcess {
    path: PathBuf,
    notes: Arc<Notes>,
    seed: u64,
    steps: u64,
    number: u64,
    is_killed: bool,
}

impl ChildProcess {
    async fn run(self) {
        let store = Sqlite::open(&self.path, SqliteOptions::default()).await;
        let store: Arc<dyn Store> = Arc::new(store.expect("the store opens"));
        let found = StoreContents::of(&*store).await.expect("the store answers");
        self.notes.write(&ProcessNote::Found(found.contents));
        let has_ended = Arc::new(AtomicBool::new(false));
        let checkpoints = self.checkpoints(has_ended.clone());
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let tasks = found.tasks.iter().skip(number as usize);
            let worker = Worker {
                store: store.clone(),
                notes: self.notes.clone(),
                random: SeededRandom::new(self.seed ^ (self.number << 40) ^ (number << 32)),
                number: self.number * 1_000_000 + number * 10_000,
                tasks: tasks.step_by(WORKERS as usize).cloned().collect(),
                made: 0,
                records: [0; 2],
            };
            let steps = if self.is_killed && number > 0 {
                u64::MAX
            } else {
                self.steps
            };
            workers.push(tokio::spawn(worker.work(steps)));
        }
        if self.is_killed {
            let first = workers.remove(0);
            first.await.expect("the worker does not panic");
            self.notes.request_kill();
        }
        for worker in workers {
            worker.await.expect("the worker does not panic");
        }
        has_ended.store(true, Ordering::Relaxed);
        checkpoints.join().expect("the checkpoints do not panic");
        store.close().await.expect("the store closes");
    }

    /// Checkpoints the WAL at random times. SQLite does so itself after many more writes, and
    /// another program that reads the file may do it, too.
    fn checkpoints(&self, has_ended: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
        let (path, notes) = (self.path.clone(), self.notes.clone());
        let mut random = SeededRandom::new(self.seed ^ !self.number);
        std::thread::spawn(move || {
            let other = rusqlite::Connection::open(path)
                .expect("the file can be opened by a second connection");
            let mut next = 10;
            while !has_ended.load(Ordering::Relaxed) {
                if notes.acknowledged.load(Ordering::Relaxed) >= next {
                    let how = ["PASSIVE", "PASSIVE", "RESTART", "TRUNCATE"];
                    let how = how[random.below(how.len() as u64) as usize];
                    let checkpoint = format!("PRAGMA wal_checkpoint({how})");
                    // A checkpoint of a busy store does less, or nothing.
                    let _ = other.query_row(&checkpoint, (), |_| Ok(()));
                    next += 5 + random.below(20);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        })
    }
}

/// The notes of a process. `record.c` adds them to the recording.
struct Notes {
    file: File,
    requests: AtomicU64,
    acknowledged: AtomicU64,
}

impl Notes {
    fn write(&self, note: &ProcessNote) {
        let text = serde_json::to_vec(note).expect("strings and numbers are JSON");
        (&self.file).write_all(&text).expect("the recorder listens");
    }

    fn requested(&self, changes: Vec<VersionChange>) -> u64 {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        self.write(&ProcessNote::Requested { request, changes });
        request
    }

    fn acknowledged(&self, request: u64) {
        self.write(&ProcessNote::Acknowledged { request });
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    fn request_kill(&self) {
        let _ = (&self.file).write_all(b"die");
    }
}

struct Worker {
    store: Arc<dyn Store>,
    notes: Arc<Notes>,
    random: SeededRandom,
    /// The number of its first task.
    number: u64,
    tasks: Vec<Arc<Task>>,
    made: u64,
    /// The versions of its records.
    records: [u64; 2],
}

impl Worker {
    async fn work(mut self, steps: u64) {
        for _ in 0..steps {
            match self.random.below(100) {
                0..30 => self.create().await,
                30..60 => self.change().await,
                60..80 => self.end().await,
                80..90 => self.remove().await,
                _ => self.write_records().await,
            }
        }
    }

    async fn create(&mut self) {
        self.made += 1;
        let number = self.number + self.made;
        let size = if self.random.percent(10) {
            self.random.below(20_000)
        } else {
            self.random.below(300)
        };
        let params = format!(r#"{{"n":{number},"text":"{}"}}"#, self.text(size));
        let origin = Origin {
            params: Some(fixtures::raw(&params)),
            ..fixtures::origin()
        };
        let key = self
            .random
            .percent(50)
            .then(|| format!("key {number}").into());
        let new = NewTask {
            owner: owners()[self.random.below(2) as usize].clone(),
            origin: Arc::new(origin),
            request_key: key,
            ..fixtures::new_task(number)
        };
        let task = Task::new(new, fixtures::CREATED);
        let record = self.record_of(&task);
        let request = self.notes.requested(changes(&task, None, &record));
        let mut insert = fixtures::insertion(task);
        insert.records = record.into_iter().map(RecordWrite::Put).collect();
        match self.store.insert(insert).await {
            Ok(InsertResult::New(task)) => {
                self.notes.acknowledged(request);
                self.tasks.push(task.shared());
            }
            other => panic!("a new task is stored, not {other:?}"),
        }
    }

    async fn change(&mut self) {
        let Some(task) = self.take(|task| task.state.ending().is_none()) else {
            return;
        };
        let outstanding = task.outstanding();
        let open_key = outstanding.and_then(|all| all.iter().next().map(|(key, _)| key.clone()));
        let command = match (self.random.below(4), open_key) {
            (0 | 1, Some(key)) => fixtures::provide_input(key.as_str()),
            (0, None) => fixtures::request_input(&task, &format!("question {}", task.revision.0)),
            (1, None) if task.cancel.is_none() => Command::RequestCancel {
                deadline: task.updated.plus(5_000),
            },
            _ => {
                let size = self.random.below(100);
                let message = format!("step {} {}", task.revision.0, self.text(size));
                fixtures::status(&task, &message)
            }
        };
        self.replace(&task, command).await;
    }

    async fn end(&mut self) {
        let Some(task) = self.take(|task| task.state.ending().is_none()) else {
            return;
        };
        let size = if self.random.percent(20) {
            self.random.below(30_000)
        } else {
            self.random.below(500)
        };
        let body = format!(r#"{{ "text" : "{}" }}"#, self.text(size));
        let outcome = match self.random.below(10) {
            0..6 => fixtures::result(&body),
            6 => Outcome::ToolError(fixtures::raw(&body), Some("no paper".into())),
            7 => Outcome::error(ErrorCode(-32_000), "no toner"),
            _ => Outcome::Cancelled,
        };
        self.replace(&task, fixtures::end(&task, outcome)).await;
    }

    async fn replace(&mut self, task: &Task, command: Command) {
        let mut replace = fixtures::change(task, command, task.updated.plus(1_000));
        let record = self.record_of(&replace.next);
        let body = replace.body.as_ref();
        let request = self.notes.requested(changes(&replace.next, body, &record));
        replace.records = record.into_iter().map(RecordWrite::Put).collect();
        let stored = self.store.replace(replace).await;
        let stored = stored.expect("a change of the newest revision is stored");
        self.notes.acknowledged(request);
        self.tasks.push(stored.shared());
    }

    /// Removes ended tasks, as expiry does. Each removal is a request of its own.
    async fn remove(&mut self) {
        let mut tasks = Vec::new();
        for _ in 0..self.random.below(3) + 1 {
            tasks.extend(self.take(|task| task.state.ending().is_some()));
        }
        let mut requests = Vec::new();
        for task in &tasks {
            let change = VersionChange {
                item: task_name(task.id),
                version: u64::from(task.revision.0) + 1,
                fingerprint: None,
            };
            requests.push(self.notes.requested(vec![change]));
        }
        let names = tasks.iter().map(|task| (task.id, task.revision)).collect();
        let gone = self.store.remove(fixtures::NODE_A, names).await;
        assert_eq!(gone.expect("the store is open").len(), tasks.len());
        for request in requests {
            self.notes.acknowledged(request);
        }
    }

    /// Writes one record or both, or deletes one.
    async fn write_records(&mut self) {
        let which = match self.random.below(3) {
            2 => 0..2,
            one => one as usize..one as usize + 1,
        };
        let delete = which.len() == 1 && self.records[which.start] > 0 && self.random.percent(30);
        let (mut writes, mut changes) = (Vec::new(), Vec::new());
        for which in which {
            self.records[which] += 1;
            let size = self.random.below(2_000);
            let record = self.record(
                &format!("own {which} of {}", self.number),
                self.records[which],
                size,
            );
            let mut change = change_of_record(&record);
            if delete {
                change.fingerprint = None;
                writes.push(RecordWrite::Delete(record.key));
            } else {
                writes.push(RecordWrite::Put(record));
            }
            changes.push(change);
        }
        let request = self.notes.requested(changes);
        let written = self.store.write_records(writes).await;
        written.expect("the store is open");
        self.notes.acknowledged(request);
    }

    /// A record that is sometimes written in the transaction of a task.
    fn record_of(&mut self, task: &Task) -> Option<Record> {
        if !self.random.percent(25) {
            return None;
        }
        let size = self.random.below(100);
        Some(self.record(&format!("with {}", task.id), task.revision.0.into(), size))
    }

    fn record(&mut self, key: &str, version: u64, size: u64) -> Record {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.extend((0..size).map(|_| self.random.next() as u8));
        Record {
            key: RecordKey::new(RECORD_KIND, key),
            owner: None,
            expires: None,
            bytes: bytes.into(),
        }
    }

    /// Takes one of its tasks that `is_suitable`.
    fn take(&mut self, is_suitable: impl Fn(&Task) -> bool) -> Option<Arc<Task>> {
        let all = self.tasks.len();
        let start = self.random.below(all as u64) as usize;
        let places = (0..all).map(|offset| (start + offset) % all);
        let place = places
            .into_iter()
            .find(|place| is_suitable(&self.tasks[*place]))?;
        Some(self.tasks.swap_remove(place))
    }

    fn text(&mut self, size: u64) -> String {
        let letter = |_| char::from(b'a' + self.random.below(26) as u8);
        (0..size).map(letter).collect()
    }
}

fn changes(task: &Task, body: Option<&Raw>, record: &Option<Record>) -> Vec<VersionChange> {
    let task = VersionChange {
        item: task_name(task.id),
        version: task.revision.0.into(),
        fingerprint: Some(fingerprint(task, body)),
    };
    let record = record.iter().map(change_of_record);
    [task].into_iter().chain(record).collect()
}

fn change_of_record(record: &Record) -> VersionChange {
    VersionChange {
        item: record_name(record),
        version: record_version(&record.bytes),
        fingerprint: Some(hash(&record.bytes)),
    }
}

/// How many workers a process has.
const WORKERS: u64 = 4;

const STORE: &str = "OUTLAST_CRASH_STORE";
const NOTES: &str = "OUTLAST_CRASH_NOTES";
const SEED: &str = "OUTLAST_CRASH_SEED";
const STEPS: &str = "OUTLAST_CRASH_STEPS";
const NUMBER: &str = "OUTLAST_CRASH_NUMBER";
const IS_KILLED: &str = "OUTLAST_CRASH_IS_KILLED";
