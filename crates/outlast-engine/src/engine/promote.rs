//! Calls that are not tasks yet: they run immediately, and are stored only if a client needs a
//! handle.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::call_state::{CallStage, CallState};
use super::event_queue::EventReceiver;
use super::run::StartMode;
use super::subscribers::Subscription;
use super::{Engine, EngineError, EnginePhase, Event, Inner, NewCall, Progress, audit};
use crate::id::{InputKey, TaskId};
use crate::input::InputResponse;
use crate::outcome::Outcome;
use crate::runtime::spawn;
use crate::store::{Committed, Insert, InsertResult, Reason, RecordWrite, StoreError};
use crate::task::Task;
use crate::transition::Command;

/// A running call that is not a task. Dropping it stops the work.
pub struct RunningCall {
    inner: Arc<Inner>,
    call_state: Arc<CallState>,
    outcome: oneshot::Receiver<Outcome>,
    events: EventReceiver,
    records: Vec<RecordWrite>,
    _subscription: Subscription,
}

/// The result of a promotion.
#[derive(Debug)]
pub enum Promotion {
    /// The call became a task.
    Stored(Committed<Task>),
    /// The call ended before it was stored. Nothing is stored.
    Finished(Outcome),
}

impl Engine {
    /// Runs a call without storing anything.
    pub fn start(&self, call: NewCall) -> Result<RunningCall, EngineError> {
        let mut call = call;
        let records = std::mem::take(&mut call.records);
        let local_data = call.local_data.take();
        let (task, runner) = self.inner.admit(call)?;
        let (sender, outcome) = oneshot::channel();
        let id = task.id;
        let (subscription, events) = self.inner.subscribers.subscribe_to_events(id);
        let stage = CallStage::Plain(task.clone(), Some(sender));
        let call_state = Arc::new(CallState::new(&task, stage, local_data));
        self.inner.calls.add(call_state.clone());
        // A shutdown waits for the calls that exist when it begins. It may have begun before this
        // call was added.
        if let Err(closing) = self.inner.check_open() {
            self.inner.calls.take(call_state.id, call_state.attempt);
            return Err(closing);
        }
        let inner = self.inner.clone();
        spawn(
            inner
                .clone()
                .run_call(call_state.clone(), runner, StartMode::Run),
        );
        Ok(RunningCall {
            inner,
            call_state,
            outcome,
            events,
            records,
            _subscription: subscription,
        })
    }
}

impl RunningCall {
    /// The id that the call would have as a task.
    pub fn id(&self) -> TaskId {
        self.call_state.id
    }

    /// Waits for the end.
    pub async fn outcome(&mut self) -> Outcome {
        // The sender is dropped without a value only if the call is stopped.
        (&mut self.outcome).await.unwrap_or(Outcome::Cancelled)
    }

    /// Returns the next event, or `None` when the call has ended.
    pub async fn event(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.events.next() => event,
            () = self.inner.reached(EnginePhase::Closed) => None,
        }
    }

    /// The newest progress.
    pub fn progress(&self) -> Option<Progress> {
        self.call_state.progress()
    }

    /// The current state of the call, unless it has ended.
    pub fn state(&self) -> Option<Task> {
        self.call_state.snapshot()
    }

    /// Provides input responses. Responses to input requests that are not outstanding are ignored.
    pub async fn provide_input(
        &self,
        responses: BTreeMap<InputKey, InputResponse>,
    ) -> Result<(), EngineError> {
        use crate::transition::Refused;
        match self
            .inner
            .command(&self.call_state, Command::ProvideInput(responses))
            .await
        {
            Err(EngineError::Refused(
                Refused::NotOutstanding | Refused::AlreadyEnded(_) | Refused::CallEnded,
            )) => Ok(()),
            other => other,
        }
    }

    /// Requests that the work stops.
    pub fn request_cancel(&self) {
        self.call_state.cancellation.request();
    }

    /// Makes the call a task. It is stored when this resolves, unless it ended first.
    ///
    /// If the store refuses, the call continues unchanged and is returned.
    pub async fn promote(self) -> Result<Promotion, (Box<Self>, EngineError)> {
        let (sender, received) = oneshot::channel();
        spawn(async move {
            if sender.is_closed() {
                // The caller disconnected before anything was stored. Dropping the call stops it.
                return;
            }
            if sender.send(self.promote_now().await).is_err() {
                // The task is stored already. It stays, because its owner may find it.
                tracing::info!("a caller disconnected while its call became a task");
            }
        });
        match received.await {
            Ok(result) => result,
            // The runtime shuts down and does not poll this again.
            Err(_) => std::future::pending().await,
        }
    }

    async fn promote_now(mut self) -> Result<Promotion, (Box<Self>, EngineError)> {
        if self.call_state.has_unresolved_insert() {
            let reason = Reason::new("an earlier attempt to store the call is being reversed");
            return Err((Box::new(self), StoreError::Unavailable(reason).into()));
        }
        let Some(task) = self.call_state.begin_promotion() else {
            return Ok(Promotion::Finished(self.outcome().await));
        };
        let quota = self.inner.policy.quota;
        let records = std::mem::take(&mut self.records);
        let status_records = self.inner.status_records(&task, None);
        let has_records = !status_records.is_empty();
        let received = self.inner.store.insert(Insert {
            task,
            quota,
            records: [records.clone(), status_records].concat(),
        });
        let inserted = self.inner.insert_result(self.call_state.id, received).await;
        let stored = match inserted {
            Ok(InsertResult::New(task)) => {
                self.inner.status_records_stored(has_records);
                Ok(task)
            }
            Ok(InsertResult::Existing(_)) => Err(EngineError::KeyConflict(Arc::from(""))),
            Err(error) => {
                if error.is_transient() {
                    self.undo_insert();
                }
                Err(error.into())
            }
        };
        self.finish_promotion(stored, records).await
    }

    /// Removes the task that the store may have inserted without a reply.
    fn undo_insert(&self) {
        self.call_state.set_unresolved_insert(true);
        let (inner, call_state) = (self.inner.clone(), self.call_state.clone());
        spawn(async move {
            inner.remove_uncreated(call_state.id).await;
            call_state.set_unresolved_insert(false);
        });
    }

    /// Decides how the call continues after the reply of the store.
    async fn finish_promotion(
        mut self,
        stored: Result<Committed<Task>, EngineError>,
        records: Vec<RecordWrite>,
    ) -> Result<Promotion, (Box<Self>, EngineError)> {
        let finished = self.call_state.end_promotion(stored.as_ref().ok());
        match (finished, stored) {
            (Some(outcome), stored) => {
                self.inner
                    .calls
                    .take(self.call_state.id, self.call_state.attempt);
                if stored.is_ok()
                    && self
                        .inner
                        .remove_unless_ended(self.call_state.id)
                        .await
                        .is_err()
                {
                    let (inner, id) = (self.inner.clone(), self.call_state.id);
                    spawn(async move { inner.remove_uncreated(id).await });
                }
                Ok(Promotion::Finished(outcome))
            }
            (None, Ok(task)) => {
                self.inner.metrics.created();
                audit::created(&task);
                self.inner.changes.task(task.id);
                self.inner.alarm.schedule(task.due());
                Ok(Promotion::Stored(task))
            }
            (None, Err(error)) => {
                self.records = records;
                Err((Box::new(self), error))
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if self.call_state.is_plain() {
            self.inner.stop(self.call_state.id);
        }
    }
}
