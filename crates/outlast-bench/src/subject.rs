//! Ourselves, as callers meet us: an engine on a store, and calls that do nothing.

use std::path::Path;
use std::sync::Arc;

use outlast_engine::engine::{CallContext, FnRunner, NewCall};
use outlast_engine::{
    Accepts, Clock, Engine, MemoryStore, Origin, Outcome, Owner, Policy, Quota, Retry, Scope,
    Store, SystemClock, TaskId,
};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_wire::Raw;
use tokio::sync::Notify;

use crate::Done;
use crate::load::Life;
use crate::rmcp::result;

/// An engine whose calls end at once.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) engine: Engine,
    texts: Texts,
    runner: Arc<str>,
    pub(crate) ttl: u64,
}

impl Subject {
    pub(crate) async fn memory() -> Done<Self> {
        Self::on(Arc::new(MemoryStore::new()), Arc::new(SystemClock)).await
    }

    pub(crate) async fn sqlite(path: &Path, options: SqliteOptions) -> Done<Self> {
        let store = Sqlite::open(path, options).await?;
        Self::on(Arc::new(store), Arc::new(SystemClock)).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Done<Self> {
        let texts = Texts::new()?;
        let result = texts.result.clone();
        let quiet = FnRunner::new(move |_, cx: CallContext| {
            let outcome = copy(&result);
            if let Some(bell) = cx.parts::<Notify>() {
                bell.notify_one();
            }
            std::future::ready(outcome)
        });
        let result = texts.result.clone();
        let telling = FnRunner::new(move |_, cx: CallContext| {
            cx.status(STATUS);
            std::future::ready(copy(&result))
        });
        let waiting = FnRunner::new(|_, _| std::future::pending());
        let (engine, _) = Engine::builder(store)
            .policy(policy())
            .clock(clock)
            .runner("quiet", Arc::new(quiet))
            .runner("telling", Arc::new(telling))
            .runner("waiting", Arc::new(waiting))
            .open()
            .await?;
        Ok(Self {
            engine,
            texts,
            runner: "quiet".into(),
            ttl: DAY,
        })
    }

    /// The same with calls that say where they stand before they end.
    pub(crate) fn telling(mut self) -> Self {
        self.runner = "telling".into();
        self
    }

    /// The same with calls that never end.
    pub(crate) fn waiting(mut self) -> Self {
        self.runner = "waiting".into();
        self
    }

    /// The same with another TTL, in milliseconds.
    pub(crate) fn lasting(mut self, ttl: u64) -> Self {
        self.ttl = ttl;
        self
    }

    /// A call as a front would make it from a request: names are shared, parameters are its own.
    pub(crate) fn call(&self) -> NewCall {
        let origin = Origin {
            method: self.texts.method.clone(),
            tool: Some(self.texts.tool.clone()),
            params: Some(self.texts.params.borrow().to_raw()),
            runner: self.runner.clone(),
            progress_token: None,
            retry: Retry::Never,
            accepts: Accepts::default(),
        };
        NewCall {
            ttl: Some(self.ttl),
            ..NewCall::new(self.texts.owner.clone(), origin)
        }
    }

    pub(crate) async fn create(&self) -> TaskId {
        let created = self.engine.create(self.call()).await;
        created.expect("there is room").task().id
    }
}

impl Life for Subject {
    async fn live(&self) {
        let id = self.create().await;
        let scope = Scope::Of(self.texts.owner.clone());
        let settled = self.engine.wait(&scope, id).await.expect("it ends");
        assert!(settled.body.is_some_and(|body| body.size() >= 200));
        let found = self.engine.get(&scope, id).await.expect("it is kept");
        assert!(found.ending().is_some());
    }
}

/// Ourselves, waited for as the peer has to be: the work rings a bell as its last act, and its caller looks once it
/// has heard that.
#[derive(Clone)]
pub(crate) struct Rung(pub(crate) Subject);

impl Life for Rung {
    async fn live(&self) {
        let Self(subject) = self;
        let bell = Arc::new(Notify::new());
        let call = NewCall {
            parts: Some(bell.clone()),
            ..subject.call()
        };
        let created = subject.engine.create(call).await;
        let id = created.expect("there is room").task().id;
        bell.notified().await;
        let scope = Scope::Of(subject.texts.owner.clone());
        let outcome = subject.engine.outcome(&scope, id).await;
        let settled = match outcome.expect("it is kept") {
            Some(settled) => settled,
            // It is about to end.
            None => subject.engine.wait(&scope, id).await.expect("it ends"),
        };
        assert!(settled.body.is_some_and(|body| body.size() >= 200));
    }
}

/// All tasks are one owner's: the longest list there can be.
pub(crate) fn owner() -> Owner {
    Owner::principal("user:somebody@example.org")
}

/// The limits out of the way, everything else as it is by default.
fn policy() -> Policy {
    Policy {
        ttl_default: DAY,
        ttl_cap: DAY,
        quota: Quota {
            owner_open: u32::MAX,
            owner_retained: u32::MAX,
            retained: u64::MAX,
        },
        ..Policy::default()
    }
}

/// What is said over and over: made once, so that what is measured is the engine.
#[derive(Clone)]
struct Texts {
    owner: Owner,
    method: Arc<str>,
    tool: Arc<str>,
    params: Raw,
    result: Raw,
}

impl Texts {
    fn new() -> Done<Self> {
        Ok(Self {
            owner: owner(),
            method: "tools/call".into(),
            tool: "nothing".into(),
            params: Raw::parse(PARAMS.to_owned())?,
            result: Raw::encode(&result())?,
        })
    }
}

/// A result that shares no byte with those of other calls.
fn copy(result: &Raw) -> Outcome {
    Outcome::Result(result.borrow().to_raw())
}

pub(crate) const DAY: u64 = 24 * 3_600_000;

const STATUS: &str = "half of the nothing is done";

/// 200 bytes.
const PARAMS: &str = concat!(
    r#"{"name":"nothing","arguments":{"text":"#,
    r#""0123456789012345678901234567890123456789012345678901234567890123456789"#,
    r#"01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"}}"#,
);
