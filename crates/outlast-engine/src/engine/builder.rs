//! How an engine starts: it joins its store and recovers the tasks of a previous run before it
//! serves requests (P4).

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use super::expiry::DeadlineAlarm;
use super::metrics::EngineMetrics;
use super::recovery::RetryLimit;
use super::runners::{RunnerMap, Runners};
use super::subscribers::Subscribers;
use super::{
    Engine, EngineError, EnginePhase, Inner, RecoveryCounts, Retention, Runner, StatusRecorder,
    phase,
};
use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::policy::Policy;
use crate::runtime::spawn;
use crate::store::{Reason, Store, StoreError};

/// The parameters of an engine.
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    policy: Policy,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    runners: RunnerMap,
    absent: Option<Arc<dyn Runner>>,
    before_recovery: Option<Preparation>,
    status_recorder: Option<Arc<dyn StatusRecorder>>,
    retention: Retention,
}

/// Work that must complete before tasks are recovered.
type Preparation = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl Engine {
    /// Returns a builder for an engine on `store`, with the default policy and the system clock.
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            runners: RunnerMap::new(),
            absent: None,
            before_recovery: None,
            status_recorder: None,
            retention: Retention::default(),
        }
    }
}

impl EngineBuilder {
    /// Sets the limits.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of ids.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// Registers the runner of the calls whose origin names `name`. The name must stay the same
    /// over restarts.
    pub fn runner(mut self, name: impl Into<Arc<str>>, runner: Arc<dyn Runner>) -> Self {
        self.runners.insert(name.into(), runner);
        self
    }

    /// Sets the runner that takes over recovered tasks whose own runner is not known when the
    /// engine starts. Without it, such a task ends with an unknown outcome.
    pub fn absent_runner(mut self, runner: Arc<dyn Runner>) -> Self {
        self.absent = Some(runner);
        self
    }

    /// Runs `work` after the store is open and before tasks are recovered, so that only the process
    /// that holds the store does it. If it fails, the start fails.
    pub fn before_recovery(
        mut self,
        work: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> Self {
        self.before_recovery = Some(Box::pin(work));
        self
    }

    /// Writes the records of `recorder` with each change of a status.
    pub fn status_recorder(mut self, recorder: Arc<dyn StatusRecorder>) -> Self {
        self.status_recorder = Some(recorder);
        self
    }

    /// Deletes ended tasks that exceed `retention` before their TTL ends.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Joins the store, recovers every task whose executor is lost, and opens.
    pub async fn open(self) -> Result<(Engine, RecoveryCounts), EngineError> {
        let (engine, start) = self.start();
        let recovered = start.await?;
        Ok((engine, recovered))
    }

    /// Returns an engine that refuses everything with
    /// [`StoreError::Starting`](crate::StoreError::Starting) until the returned future has done
    /// what [`open`](Self::open) does. A listener can be opened in the meantime.
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
            changes: Arc::default(),
            alarm: DeadlineAlarm::default(),
            status_queue: Default::default(),
            unresolved,
            orphans: Notify::new(),
            phases,
            metrics: EngineMetrics::new(),
            status_recorder: self.status_recorder,
        });
        let engine = Engine {
            inner: inner.clone(),
            shutdown_guard: Arc::new(guard),
        };
        let guard = engine.shutdown_guard.clone();
        let before_recovery = self.before_recovery;
        let retention = self.retention;
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
                    // Tasks that were claimed or started here must be offered to the next engine.
                    guard.enter(EnginePhase::Closed);
                    inner.abort_all();
                    inner.store.leave(node).await?;
                    return Err(error.into());
                }
            };
            spawn(inner.clone().run_deadline_loop());
            spawn(inner.clone().run_status_writer());
            spawn(inner.clone().run_reconciler(unresolved_ids));
            spawn(inner.clone().run_store_event_loop(events));
            spawn(inner.clone().run_recovery_loop());
            if retention.is_limited() {
                spawn(inner.clone().run_retention(retention));
            }
            guard.enter(EnginePhase::Open);
            Ok(recovered)
        };
        (engine, start)
    }
}
