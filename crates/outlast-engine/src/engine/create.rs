//! Creation: the task is stored, then its work starts and the creator gets the response.

use std::pin::Pin;
use std::sync::Arc;

use super::call_state::{CallStage, CallState};
use super::event_queue::EventReceiver;
use super::run::{RetryDelay, StartMode};
use super::subscribers::Subscription;
use super::{Engine, EngineError, EnginePhase, Inner, NewCall, Runner, Watch, audit};
use crate::id::{NodeId, Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::{run_to_completion, spawn};
use crate::store::{Committed, Insert, InsertResult};
use crate::task::Task;

/// The result of a creation.
#[derive(Clone, Debug)]
pub enum CreatedTask {
    /// The task was created for this request.
    New(Committed<Task>),
    /// An earlier request with the same key created the task.
    Existing(Committed<Task>),
}

impl CreatedTask {
    /// The task, new or existing.
    pub fn task(&self) -> &Committed<Task> {
        match self {
            Self::New(task) | Self::Existing(task) => task,
        }
    }
}

impl Engine {
    /// Stores a new task and starts its work.
    ///
    /// Resolves when the task is durable, so that a lookup finds it after a crash (V2-CREATE-5).
    /// The creation completes even if the returned future is dropped.
    pub async fn create(&self, call: NewCall) -> Result<CreatedTask, EngineError> {
        run_to_completion(self.inner.clone().create(call, None)).await
    }

    /// As [`create`](Self::create), with a follower that receives every event of a new task,
    /// including those before the creator has its response.
    pub async fn create_followed(
        &self,
        call: NewCall,
        follower: Follower,
    ) -> Result<CreatedTask, EngineError> {
        run_to_completion(self.inner.clone().create(call, Some(follower))).await
    }
}

/// Makes the future that follows a new task, from a watch that has missed no event.
pub type Follower = Box<dyn FnOnce(Watch) -> FollowerFuture + Send>;

/// The future of a [`Follower`].
pub type FollowerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call whose insertion as a task is in flight.
struct Creation {
    call_state: Arc<CallState>,
    runner: Arc<dyn Runner>,
    follower: Option<(Follower, (Subscription, EventReceiver))>,
}

impl Inner {
    async fn create(
        self: Arc<Self>,
        mut call: NewCall,
        mut follower: Option<Follower>,
    ) -> Result<CreatedTask, EngineError> {
        loop {
            let retry = call.request_key.is_some().then(|| call.clone());
            let mut records = std::mem::take(&mut call.records);
            let local_data = call.local_data.take();
            let (task, runner) = self.admit(call)?;
            let id = task.id;
            let call_state = Arc::new(CallState::new(&task, CallStage::Storing, local_data));
            // Both before the insertion: once the task is stored its work can be stopped, and once
            // the work starts it can publish events.
            self.calls.add(call_state.clone());
            let events = follower
                .is_some()
                .then(|| self.subscribers.subscribe_to_events(id));
            let status_records = self.status_records(&task, None);
            let has_records = !status_records.is_empty();
            records.extend(status_records);
            let reply = self.store.insert(Insert {
                task,
                quota: self.policy.quota,
                records,
            });
            match self.insert_result(id, reply).await {
                Ok(InsertResult::New(task)) => {
                    self.status_records_stored(has_records);
                    let follower = follower.take().zip(events);
                    self.start(
                        &task,
                        Creation {
                            call_state,
                            runner,
                            follower,
                        },
                    );
                    return Ok(CreatedTask::New(task));
                }
                Ok(InsertResult::Existing(known)) => {
                    self.calls.take(id, call_state.attempt);
                    let Some(again) = retry else {
                        return Err(EngineError::NotFound);
                    };
                    if let Some(task) = self.find_by_request_key(known, &again.origin).await? {
                        return Ok(CreatedTask::Existing(task));
                    }
                    // The task with this key was removed, so the key is free.
                    call = again;
                }
                Err(error) if error.is_transient() => {
                    let follower = follower.take().zip(events);
                    let creation = Creation {
                        call_state,
                        runner,
                        follower,
                    };
                    spawn(self.resolve_creation(creation, retry.is_some()));
                    return Err(error.into());
                }
                Err(error) => {
                    self.calls.take(id, call_state.attempt);
                    return Err(error.into());
                }
            }
        }
    }

    /// Starts the work of a stored task.
    fn start(self: &Arc<Self>, task: &Committed<Task>, creation: Creation) {
        let Creation {
            call_state,
            runner,
            follower,
        } = creation;
        self.metrics.created();
        audit::created(task);
        self.changes.task(task.id);
        self.alarm.schedule(task.due());
        let following = follower.map(|(follower, events)| {
            let watch = self.watch_from(task.clone(), events);
            follower(watch)
        });
        let detached = task.executor == NodeId::DETACHED;
        if detached {
            self.calls.take(call_state.id, call_state.attempt);
        }
        let runs = call_state.mark_stored(task.clone()) && !detached;
        let inner = self.clone();
        let work = async move {
            if runs {
                inner.run_call(call_state, runner, StartMode::Run).await;
            } else if inner.phase() == EnginePhase::Closed {
                // The call was stopped while it was being stored.
                inner.announce_orphan().await;
            }
        };
        match following {
            // One spawned future for both: the follower receives an event before the effects of any
            // later step of the work.
            Some(following) => drop(spawn(async move {
                tokio::join!(biased; work, following);
            })),
            None => drop(spawn(work)),
        }
    }

    /// Determines whether a task was stored although its creator got an error. With a request key
    /// the task runs, because a repeated request may have found it. Without one it is removed.
    async fn resolve_creation(self: Arc<Self>, creation: Creation, has_key: bool) {
        let id = creation.call_state.id;
        let stored = if has_key {
            self.find_stored(id).await
        } else {
            None
        };
        match stored {
            Some(task) => self.start(&task, creation),
            None => {
                self.calls.take(id, creation.call_state.attempt);
                drop(creation);
                self.remove_uncreated(id).await;
            }
        }
    }

    /// Reads a task after an insertion without a definite reply, and retries while the store fails.
    async fn find_stored(&self, id: TaskId) -> Option<Committed<Task>> {
        let mut delay = RetryDelay::default();
        loop {
            match self.store.load(&Scope::AnyTask, id).await {
                Ok(found) => return found,
                Err(error) if error.is_transient() && self.phase() != EnginePhase::Closed => {
                    delay.wait(&*self.ids).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Returns the task that has the request key, if it was created by the same request and has not
    /// expired.
    async fn find_by_request_key(
        &self,
        id: TaskId,
        origin: &Origin,
    ) -> Result<Option<Committed<Task>>, EngineError> {
        let Some(task) = self.store.load(&Scope::AnyTask, id).await? else {
            return Ok(None);
        };
        if task.is_expired(self.now()) {
            self.remove(vec![(id, task.revision)]).await?;
            return Ok(None);
        }
        if task.origin.same_request(origin) {
            Ok(Some(task))
        } else {
            let key = task.request_key.clone().unwrap_or_default();
            Err(EngineError::KeyConflict(key))
        }
    }
}
