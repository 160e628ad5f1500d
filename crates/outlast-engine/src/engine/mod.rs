//! The engine: it runs calls, stores those that are tasks, and notifies subscribers.
//!
//! It holds only the calls that run in this process and their subscribers. Everything else is in
//! the store, so several engines can share one. Every change follows the same steps: read, apply,
//! commit if the revision is still current, perform the effects.

mod actor;
mod audit;
mod builder;
mod call_state;
mod caller_commands;
mod cancellation;
mod change;
mod changes;
mod context;
mod create;
mod cursor;
mod delete;
mod detached;
mod error;
mod event;
mod event_queue;
mod expiry;
mod finish;
mod metrics;
mod new_call;
mod phase;
mod promote;
mod queries;
mod reconcile;
mod recovery;
mod rerun;
mod retention;
mod run;
mod runner;
mod runners;
mod running_calls;
mod shutdown;
mod status_records;
mod status_writer;
mod store_access;
mod store_events;
mod subscribers;
mod trace;
mod wait;

use std::sync::Arc;

use outlast_wire::Timestamp;
use tokio::sync::{Notify, mpsc};

use crate::clock::{Clock, Ids};
use crate::id::{NodeId, TaskId};
use crate::policy::Policy;
use crate::store::{Store, StoreError};

pub use actor::Actor;
pub use audit::AUDIT;
pub use builder::EngineBuilder;
pub use changes::{Change, Changes};
pub use context::{CallContext, UnconfirmedResponse};
pub use create::{CreatedTask, Follower, FollowerFuture};
pub use detached::DetachedTask;
pub use error::{EngineError, InputError};
pub use event::{EndedTask, Event, Progress};
pub use new_call::{LocalData, NewCall, Work};
pub(crate) use phase::EnginePhase;
pub use promote::{Promotion, RunningCall};
pub use queries::TaskPage;
pub use recovery::RecoveryCounts;
pub use retention::{ExcessTasks, Retention, RetentionLimits};
pub use runner::{FnRunner, Runner};
pub use shutdown::ShutdownReport;
pub use status_records::StatusRecorder;
pub use trace::call_span;
pub use wait::{OutcomeOrWait, OutcomeWait, Watch};

/// Runs calls and stores tasks. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    /// Ends the background loops when the last clone is dropped.
    shutdown_guard: Arc<phase::ShutdownGuard>,
}

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    policy: Policy,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    node: NodeId,
    runners: runners::Runners,
    calls: running_calls::RunningCalls,
    subscribers: Arc<subscribers::Subscribers>,
    changes: Arc<changes::ChangeFeed>,
    alarm: expiry::DeadlineAlarm,
    status_queue: status_writer::StatusQueue,
    unresolved: mpsc::UnboundedSender<TaskId>,
    /// Notified when there may be tasks to claim.
    orphans: Notify,
    phases: phase::PhaseWatch,
    metrics: metrics::EngineMetrics,
    status_recorder: Option<Arc<dyn StatusRecorder>>,
}

impl Engine {
    /// The limits of this engine.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// The store of this engine.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The id of this engine among those that share its store.
    pub fn node(&self) -> NodeId {
        self.inner.node
    }

    /// The number of calls that run in this process.
    pub fn running(&self) -> usize {
        self.inner.calls.running()
    }

    /// Whether the engine accepts new work. The error says why not.
    pub fn check_open(&self) -> Result<(), EngineError> {
        self.inner.check_open()
    }

    /// The time of this engine's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Fails while the engine starts: a task that is not recovered yet must not be reported as "not
    /// found".
    fn check_ready(&self) -> Result<(), EngineError> {
        match self.inner.phase() {
            EnginePhase::Starting => Err(StoreError::Starting.into()),
            EnginePhase::Open | EnginePhase::Draining | EnginePhase::Closed => Ok(()),
        }
    }

    /// The number of waiters and watchers in this process.
    pub fn subscribers(&self) -> usize {
        self.inner.subscribers.count()
    }
}

impl Inner {
    /// Fails while the engine starts, and from the start of its shutdown.
    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        match self.phase() {
            EnginePhase::Starting => Err(StoreError::Starting.into()),
            EnginePhase::Open => Ok(()),
            EnginePhase::Draining | EnginePhase::Closed => Err(EngineError::Closing),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn phase(&self) -> EnginePhase {
        self.phases.now()
    }

    /// Resolves when the engine has reached `phase`, or is dropped.
    pub(crate) async fn reached(&self, phase: EnginePhase) {
        self.phases.reached(phase).await;
    }
}
