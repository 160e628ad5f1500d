//! How an engine starts: it joins its store and settles what a previous run left behind before it
//! serves anything (P4).

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::expiry::DeadlineAlarm;
use super::metrics::EngineMetrics;
use super::recovery::RetryLimit;
use super::runners::{RunnerMap, Runners};
use super::subscribers::Subscribers;
use super::{Engine, EngineError, Inner, Phase, RecoveryCounts, Runner, phase};
use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::policy::Policy;
use crate::runtime::spawn;
use crate::store::{Reason, Store, StoreError};

/// Collects what an engine needs.
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    policy: Policy,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    runners: RunnerMap,
    absent: Option<Arc<dyn Runner>>,
    before_recovery: Option<Preparation>,
}

/// Work that must be done before tasks are recovered.
type Preparation = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl Engine {
    /// An engine on `store`, with the default policy and the machine's clock.
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            runners: RunnerMap::new(),
            absent: None,
            before_recovery: None,
        }
    }
}

impl EngineBuilder {
    /// Grants by `policy`.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Reads the time from `clock`.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Draws ids from `ids`.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// Runs the calls whose origin names `name` by `runner`. The name must stay the same over
    /// restarts.
    pub fn runner(mut self, name: impl Into<Arc<str>>, runner: Arc<dyn Runner>) -> Self {
        self.runners.insert(name.into(), runner);
        self
    }

    /// Takes over recovered tasks whose runner is not known when the engine starts. Without one,
    /// such a task ends with an unknown outcome.
    pub fn absent_runner(mut self, runner: Arc<dyn Runner>) -> Self {
        self.absent = Some(runner);
        self
    }

    /// Runs `work` when the store is open and before tasks are recovered, so that only the process
    /// that holds the store does it. If it fails, the start fails.
    pub fn before_recovery(
        mut self,
        work: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> Self {
        self.before_recovery = Some(Box::pin(work));
        self
    }

    /// Joins the store, settles every task whose executor is gone, and opens.
    pub async fn open(self) -> Result<(Engine, RecoveryCounts), EngineError> {
        let (engine, start) = self.start();
        let recovered = start.await?;
        Ok((engine, recovered))
    }

    /// An engine that refuses everything with [`StoreError::Starting`](crate::StoreError::Starting)
    /// until the returned future has done what [`open`](Self::open) does. A listener can be opened
    /// meanwhile.
    pub fn start(
        self,
    ) -> (
        Engine,
        impl Future<Output = Result<RecoveryCounts, EngineError>> + Send + use<>,
    ) {
        let (guard, phases) = phase::starting();
        let (unresolved, unresolved_ids) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            store: self.store,
            policy: self.policy,
            clock: self.clock,
            node: self.ids.node(),
            ids: self.ids,
            runners: Runners::new(self.runners, self.absent),
            calls: super::running_calls::RunningCalls::default(),
            subscribers: Arc::new(Subscribers::default()),
            alarm: DeadlineAlarm::default(),
            status_queue: Default::default(),
            unresolved,
            phases,
            metrics: EngineMetrics::new(),
        });
        let engine = Engine {
            inner: inner.clone(),
            shutdown_guard: Arc::new(guard),
        };
        let guard = engine.shutdown_guard.clone();
        let before_recovery = self.before_recovery;
        let start = async move {
            let node = inner.node;
            let events = inner.store.join(node).await?;
            let prepared = match before_recovery {
                Some(work) => work.await,
                None => Ok(()),
            };
            let recovered = match prepared {
                Ok(()) => inner.recover(RetryLimit::AtStart).await,
                Err(error) => Err(StoreError::Unavailable(Reason::new(error.to_string()))),
            };
            let recovered = match recovered {
                Ok(recovered) => recovered,
                Err(error) => {
                    // What was offered to this engine, or begun, must be offered to the next.
                    guard.enter(Phase::Closed);
                    inner.abort_all();
                    inner.store.leave(node).await?;
                    return Err(error.into());
                }
            };
            spawn(inner.clone().run_deadline_loop());
            spawn(inner.clone().run_status_writer());
            spawn(inner.clone().run_reconciler(unresolved_ids));
            spawn(inner.clone().run_store_event_loop(events));
            guard.enter(Phase::Open);
            Ok(recovered)
        };
        (engine, start)
    }
}
