//! All that children have acknowledged on one store, and the check that it still holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::store::{RecordKey, Snapshot};
use outlast_engine::{Clock, Engine, Owner, Scope, Store, SystemClock, TaskId};
use outlast_store::{Sqlite, SqliteOptions};

use super::Ack;
use super::work::{QUOTA, RECORD_KIND, open};

/// Everything that children have acknowledged on one store.
#[derive(Debug, Default)]
pub struct Journal {
    tasks: BTreeMap<String, KnownTask>,
    records: BTreeMap<String, u64>,
    facts: usize,
    unavailable: usize,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// Which of P1 to P9.
    pub promise: &'static str,
    /// What was found.
    pub what: String,
}

#[derive(Debug, Default)]
struct KnownTask {
    created: Option<(Owner, u64, bool)>,
    ran: u32,
    ended: Option<(String, Option<String>)>,
    cancelled: bool,
    cancel_requested: bool,
    answered: BTreeSet<String>,
}

impl Journal {
    /// Records the acknowledgements of a child process.
    pub fn note(&mut self, acks: Vec<Ack>) -> Result<(), BrokenPromise> {
        for ack in acks {
            self.facts += 1;
            match ack {
                Ack::Created {
                    id,
                    owner,
                    expires,
                    repeatable,
                } => {
                    let owner = owner.parse().expect("the child prints owners");
                    self.task(id).created = Some((owner, expires, repeatable));
                }
                Ack::Ran { id } => self.task(id).ran += 1,
                Ack::Cancelled { id } => self.task(id).cancelled = true,
                Ack::CancelRequested { id } => self.task(id).cancel_requested = true,
                Ack::InputProvided { id, key } => {
                    self.task(id).answered.insert(key);
                }
                Ack::Record { key, value } => {
                    self.records.insert(key, value);
                }
                Ack::Unavailable => self.unavailable += 1,
                Ack::Ended { id, ending, body } => {
                    let known = self.task(id.clone());
                    let now = Some((ending, body));
                    if known.ended.is_some() && known.ended != now {
                        return broken(
                            "P2",
                            format!("task {id} ended twice: {:?}, {now:?}", known.ended),
                        );
                    }
                    known.ended = now;
                }
            }
        }
        Ok(())
    }

    /// Removes tasks that expired more than 10 s ago.
    pub fn forget_expired(&mut self) {
        let now = SystemClock.now().0;
        self.tasks.retain(|_, known| {
            let created = known.created.as_ref();
            created.is_none_or(|(_, expires, _)| expires + 10_000 > now)
        });
    }

    /// How many facts were recorded.
    pub fn facts(&self) -> usize {
        self.facts
    }

    /// How often a child got the error that the store cannot be written.
    pub fn unavailable(&self) -> usize {
        self.unavailable
    }

    /// Opens the store as a restarted program would, and checks every fact.
    pub async fn check(&self, path: &Path) -> Result<(), BrokenPromise> {
        let fail = |error: &dyn std::fmt::Display| BrokenPromise {
            promise: "P1",
            what: error.to_string(),
        };
        let store = Sqlite::open(path, SqliteOptions::default())
            .await
            .map_err(|error| fail(&error))?;
        let store: Arc<dyn Store> = Arc::new(store);
        let engine = open(store.clone(), false)
            .await
            .map_err(|error| fail(&error))?;
        let mut checked = self.check_tasks(&engine).await;
        if checked.is_ok() {
            checked = self.check_lists(&engine).await;
        }
        if checked.is_ok() {
            checked = self.check_records(&*store).await;
        }
        engine
            .shutdown(Duration::ZERO)
            .await
            .map_err(|error| fail(&error))?;
        store.close().await.map_err(|error| fail(&error))?;
        checked
    }

    fn task(&mut self, id: String) -> &mut KnownTask {
        self.tasks.entry(id).or_default()
    }

    async fn check_tasks(&self, engine: &Engine) -> Result<(), BrokenPromise> {
        for (name, known) in &self.tasks {
            let Some((owner, expires, repeatable)) = &known.created else {
                continue;
            };
            if known.ran > 1 && !repeatable {
                return broken("P5", format!("task {name} ran {} times", known.ran));
            }
            let id: TaskId = name.parse().expect("the child prints ids");
            let scope = Scope::OwnedBy(owner.clone());
            let before = SystemClock.now();
            let found = engine.get(&scope, id).await;
            match found {
                Err(EngineError::Expired | EngineError::NotFound)
                    if SystemClock.now().0 >= *expires => {}
                Ok(_) if before.0 >= *expires => {
                    return broken("P3", format!("task {name} is visible after its expiry"));
                }
                Ok(found) => known.check(engine, &scope, found).await?,
                Err(error) => return broken("P1", format!("task {name} was created: {error}")),
            }
        }
        Ok(())
    }

    /// P9: all pages of a list together contain each retained task once.
    async fn check_lists(&self, engine: &Engine) -> Result<(), BrokenPromise> {
        let owners: BTreeSet<_> = self
            .tasks
            .values()
            .filter_map(|known| known.created.as_ref())
            .map(|made| &made.0)
            .collect();
        for owner in owners {
            let mut listed = BTreeSet::new();
            let mut cursor = None;
            loop {
                let page = engine.page(owner, cursor.as_deref(), 97).await;
                let page = page.map_err(|error| BrokenPromise {
                    promise: "P9",
                    what: error.to_string(),
                })?;
                for task in &page.tasks {
                    if !listed.insert(task.id().to_string()) {
                        return broken("P9", format!("task {} is listed twice", task.id()));
                    }
                }
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            let now = SystemClock.now().0;
            for (name, known) in &self.tasks {
                let must_be_listed = known
                    .created
                    .as_ref()
                    .is_some_and(|(of, expires, _)| of == owner && *expires > now);
                if must_be_listed && !listed.contains(name) {
                    return broken("P9", format!("task {name} is not listed"));
                }
            }
            let usage = engine.usage(owner).await;
            let usage = usage.map_err(|error| BrokenPromise {
                promise: "P8",
                what: error.to_string(),
            })?;
            if usage.owner_open > QUOTA.owner_open {
                return broken(
                    "P8",
                    format!("{owner} has {} running tasks", usage.owner_open),
                );
            }
        }
        Ok(())
    }

    async fn check_records(&self, store: &dyn Store) -> Result<(), BrokenPromise> {
        for (name, value) in &self.records {
            let key = RecordKey::new(RECORD_KIND, name.as_str());
            let found = store.record(&key, SystemClock.now()).await;
            let found = found
                .ok()
                .flatten()
                .and_then(|found| <[u8; 8]>::try_from(&*found.bytes).ok());
            let found = found.map(u64::from_be_bytes);
            // A newer value was written and not acknowledged, which is allowed. The low 32 bits
            // name the process that wrote it.
            let fine = found.is_some_and(|found| found >= *value || found as u32 != *value as u32);
            if !fine {
                return broken("P1", format!("record {name} is {found:?}, not {value}"));
            }
        }
        Ok(())
    }
}

impl KnownTask {
    async fn check(
        &self,
        engine: &Engine,
        scope: &Scope,
        found: Snapshot,
    ) -> Result<(), BrokenPromise> {
        let id = found.id();
        let outcome = match &found {
            Snapshot::Ended(summary) => {
                let outcome = match engine.outcome(scope, id).await {
                    Ok(outcome) => outcome,
                    // It expired between the two reads.
                    Err(EngineError::NotFound | EngineError::Expired)
                        if SystemClock.now() >= summary.expires() =>
                    {
                        return Ok(());
                    }
                    Err(error) => return broken("P2", format!("task {id}: {error}")),
                };
                let body = outcome.and_then(|settled| settled.body);
                Some((
                    format!("{:?}", summary.ending),
                    body.map(|body| body.as_str().to_owned()),
                ))
            }
            Snapshot::Open(task) => {
                if task.executor != engine.node() {
                    return broken(
                        "P4",
                        format!("task {id} is `working` and no engine runs it"),
                    );
                }
                for key in &self.answered {
                    let open = task
                        .outstanding()
                        .is_some_and(|all| all.iter().any(|(found, _)| found.as_str() == key));
                    if open {
                        return broken("P1", format!("task {id}: the response to {key} is lost"));
                    }
                }
                None
            }
        };
        if self.ended.is_some() && self.ended != outcome {
            return broken(
                "P2",
                format!("task {id} ended {:?} and is now {outcome:?}", self.ended),
            );
        }
        let ending = outcome.as_ref().map(|(ending, _)| ending.as_str());
        if self.cancelled && ending != Some("Cancelled") {
            return broken(
                "P2",
                format!("task {id} was cancelled and is now {ending:?}"),
            );
        }
        if self.cancel_requested && ending.is_none() {
            return broken("P4", format!("the cancel request of task {id} is lost"));
        }
        Ok(())
    }
}

fn broken<T>(promise: &'static str, what: String) -> Result<T, BrokenPromise> {
    Err(BrokenPromise { promise, what })
}
