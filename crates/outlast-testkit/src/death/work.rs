//! The child of a death test: an engine on SQLite with a random load, which prints what was
//! acknowledged until it is killed.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{EngineError, NewCall};
use outlast_engine::store::{Record, RecordKey, RecordWrite, Snapshot};
use outlast_engine::task::TtlPolicy;
use outlast_engine::{
    Engine, InputKey, InputKinds, InputResponse, Origin, Owner, Policy, Quota, RetryClass, Scope,
    Store, TaskId,
};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_wire::Raw;
use parking_lot::Mutex;

use super::tools::{ChildTools, NAMES};
use super::{Ack, SeededRandom};
use crate::{BeforeNotify, FaultyStore};

/// Works on the file at `path` with the load of `seed`, until it is killed. Most tasks live for
/// `ttl` milliseconds, or for the policy's default. `before_notify` runs after every write that the
/// store has confirmed, before its caller gets the response.
pub async fn work(
    path: &Path,
    seed: u64,
    ttl: Option<u64>,
    options: SqliteOptions,
    before_notify: BeforeNotify,
) {
    let store = match Sqlite::open(path, options).await {
        Ok(store) => {
            let store = FaultyStore::new(Arc::new(store));
            store.faults().run_before_notify(before_notify);
            Arc::new(store)
        }
        Err(error) => {
            eprintln!("death_child: {error}");
            std::process::exit(9);
        }
    };
    let engine = loop {
        match open(store.clone(), true).await {
            Ok(engine) => break engine,
            // A store that fails on purpose may fail here, too.
            Err(_) => Ack::Unavailable.print(),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut actors = tokio::task::JoinSet::new();
    for number in 0..ACTORS {
        let actor = Actor {
            engine: engine.clone(),
            random: SeededRandom::new(seed ^ (number << 32)),
            number,
            known: VecDeque::new(),
            ttl,
            record: std::process::id().into(),
        };
        actors.spawn(actor.act());
    }
    while actors.join_next().await.is_some() {}
}

/// The engine of child and parent alike.
pub(crate) async fn open(store: Arc<dyn Store>, prints_runs: bool) -> Result<Engine, EngineError> {
    let policy = Policy::default()
        .with_quota(QUOTA)
        // The journal knows when each task expires.
        .with_ttl_policy(TtlPolicy::Strict)
        .with_cancel_timeout(Duration::from_millis(50));
    let tools = Arc::new(ChildTools { prints_runs });
    Ok(Engine::builder(store)
        .policy(policy)
        .runner(RUNNER, tools)
        .open()
        .await?
        .0)
}

struct Actor {
    engine: Engine,
    random: SeededRandom,
    number: u64,
    known: VecDeque<(TaskId, Owner)>,
    ttl: Option<u64>,
    record: u64,
}

impl Actor {
    async fn act(mut self) {
        loop {
            match self.random.below(100) {
                0..50 => self.create().await,
                50..65 => self.on_one(Self::cancel_now).await,
                65..75 => self.on_one(Self::request_cancel).await,
                75..90 => self.on_one(Self::answer).await,
                90..95 => self.write_record().await,
                _ => tokio::time::sleep(Duration::from_millis(self.random.below(5))).await,
            }
        }
    }

    async fn create(&mut self) {
        let owner = Owner::principal(format!("owner-{}", self.random.below(3)));
        let tool = NAMES[self.random.below(NAMES.len() as u64) as usize];
        let repeatable = self.random.percent(30);
        let origin = Origin {
            method: "tools/call".into(),
            tool: Some(tool.into()),
            params: Raw::encode(&vec!["x"; self.random.below(50) as usize]).ok(),
            runner: RUNNER.into(),
            progress_token: None,
            retry: if repeatable {
                RetryClass::Rerun
            } else {
                RetryClass::Never
            },
            accepts: InputKinds::all(),
        };
        let mut call = NewCall::new(owner.clone(), origin);
        let ttl_ms = if self.random.percent(10) {
            Some(50 + self.random.below(400))
        } else {
            self.ttl
        };
        call.ttl = ttl_ms.map(Duration::from_millis);
        match self.engine.create(call).await {
            Ok(created) => {
                let task = created.task();
                let (id, expires) = (task.id, task.expires().0);
                Ack::Created {
                    id: id.to_string(),
                    owner: owner.to_storage().into_owned(),
                    expires,
                    repeatable,
                }
                .print();
                self.known.push_back((id, owner.clone()));
                if self.known.len() > MAX_RECENT_TASKS {
                    self.known.pop_front();
                }
                tokio::spawn(print_ending(self.engine.clone(), id, owner));
            }
            Err(error) => pause_after_refusal(&error).await,
        }
    }

    async fn on_one<F>(&mut self, act: F)
    where
        F: AsyncFn(&Engine, Scope, TaskId),
    {
        if self.known.is_empty() {
            return;
        }
        let place = self.random.below(self.known.len() as u64) as usize;
        let (id, owner) = self.known[place].clone();
        act(&self.engine, Scope::OwnedBy(owner), id).await;
    }

    async fn cancel_now(engine: &Engine, scope: Scope, id: TaskId) {
        match engine.cancel_now(&scope, id).await {
            Ok(_) => Ack::Cancelled { id: id.to_string() }.print(),
            Err(error) => pause_after_refusal(&error).await,
        }
    }

    async fn request_cancel(engine: &Engine, scope: Scope, id: TaskId) {
        match engine.request_cancel(&scope, id).await {
            Ok(()) => Ack::CancelRequested { id: id.to_string() }.print(),
            Err(error) => pause_after_refusal(&error).await,
        }
    }

    async fn answer(engine: &Engine, scope: Scope, id: TaskId) {
        let Ok(Snapshot::Open(task)) = engine.get(&scope, id).await else {
            return;
        };
        let keys: Vec<InputKey> = task
            .outstanding()
            .into_iter()
            .flat_map(|all| all.iter().map(|(key, _)| key.clone()))
            .collect();
        let Ok(yes) = Raw::parse("{}".into()) else {
            return;
        };
        for key in keys {
            let answers = BTreeMap::from([(key.clone(), InputResponse::Result(yes.clone()))]);
            match engine.provide_input(&scope, id, answers).await {
                Ok(()) => Ack::InputProvided {
                    id: id.to_string(),
                    key: key.to_string(),
                }
                .print(),
                Err(error) => pause_after_refusal(&error).await,
            }
        }
    }

    async fn write_record(&mut self) {
        self.record += 1 << 32;
        let name = format!("actor-{}", self.number);
        let record = Record {
            key: RecordKey::new(RECORD_KIND, name.as_str()),
            owner: None,
            expires: None,
            bytes: self.record.to_be_bytes().as_slice().into(),
        };
        match self
            .engine
            .store()
            .write_records(vec![RecordWrite::Put(record)])
            .await
        {
            Ok(()) => Ack::Record {
                key: name,
                value: self.record,
            }
            .print(),
            Err(error) => pause_after_refusal(&error.into()).await,
        }
    }
}

async fn print_ending(engine: Engine, id: TaskId, owner: Owner) {
    // Repeat the wait if the store was unavailable for a moment.
    loop {
        match engine.wait(&Scope::OwnedBy(owner.clone()), id).await {
            Ok(settled) => {
                let ending = format!("{:?}", settled.summary.ending);
                let body = settled.body.map(|body| body.as_str().to_owned());
                Ack::Ended {
                    id: id.to_string(),
                    ending,
                    body,
                }
                .print();
                return;
            }
            Err(EngineError::Store(error)) if error.is_transient() => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(_) => return,
        }
    }
}

async fn pause_after_refusal(error: &EngineError) {
    static LAST: Mutex<()> = Mutex::new(());
    if let EngineError::Store(error) = error
        && error.is_transient()
    {
        let _one_line_at_a_time = LAST.lock();
        Ack::Unavailable.print();
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// How many actors work at once.
const ACTORS: u64 = 8;

/// How many of its tasks an actor remembers.
const MAX_RECENT_TASKS: usize = 30;

/// The runner's name.
const RUNNER: &str = "death_child";

/// The kind of the records.
pub(crate) const RECORD_KIND: &str = "death_child";

pub(crate) const QUOTA: Quota = Quota::DEFAULT
    .with_owner_open(60)
    .with_owner_retained(1_000_000)
    .with_open(1_000_000)
    .with_retained(2_000_000);
