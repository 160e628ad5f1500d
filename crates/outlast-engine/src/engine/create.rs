//! Creation: the task is stored, then its work starts and its creator gets the reply.

use std::pin::Pin;
use std::sync::Arc;

use super::call_state::{CallStage, CallState};
use super::event_queue::EventReceiver;
use super::run::{RetryDelay, StartMode};
use super::subscribers::Subscription;
use super::{Engine, EngineError, Inner, NewCall, Phase, Runner, Watch, audit};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::{run_to_completion, spawn};
use crate::store::{Committed, Insert, InsertResult};
use crate::task::Task;

/// A task that exists.
#[derive(Clone, Debug)]
pub enum CreatedTask {
    /// It was made for this request.
    New(Committed<Task>),
    /// An earlier request with the same key made it.
    Existing(Committed<Task>),
}

impl CreatedTask {
    /// The task, old or new.
    pub fn task(&self) -> &Committed<Task> {
        match self {
            Self::New(task) | Self::Existing(task) => task,
        }
    }
}

impl Engine {
    /// Stores a new task and starts its work.
    ///
    /// Resolves when the task is durable: a lookup would find it after a crash (V2-CREATE-5). The
    /// creation goes on if the returned future is dropped.
    pub async fn create(&self, call: NewCall) -> Result<CreatedTask, EngineError> {
        run_to_completion(self.inner.clone().create(call, None)).await
    }

    /// As [`create`](Self::create), with a follower that receives every event of the task if it is
    /// a new one, including those before the creator has its reply.
    pub async fn create_followed(
        &self,
        call: NewCall,
        follower: Follower,
    ) -> Result<CreatedTask, EngineError> {
        run_to_completion(self.inner.clone().create(call, Some(follower))).await
    }
}

/// Makes the future that follows a new task, from a watch that has missed nothing.
pub type Follower = Box<dyn FnOnce(Watch) -> FollowerFuture + Send>;

/// What a [`Follower`] makes.
pub type FollowerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call that the store has been asked to keep as a task.
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
            let records = std::mem::take(&mut call.records);
            let local_data = call.local_data.take();
            let (task, runner) = self.admit(call)?;
            let id = task.id;
            let call_state = Arc::new(CallState::new(&task, CallStage::Storing, local_data));
            // Both before it is stored: from then on its work can be stopped, and from its start on
            // its work can publish.
            self.calls.add(call_state.clone());
            let events = follower
                .is_some()
                .then(|| self.subscribers.subscribe_to_events(id));
            let reply = self.store.insert(Insert {
                task,
                quota: self.policy.quota,
                records,
            });
            match self.insert_result(id, reply).await {
                Ok(InsertResult::New(task)) => {
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
                    // The task that had the key is gone: the key is free.
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

    /// Starts the work of a task that is stored.
    fn start(self: &Arc<Self>, task: &Committed<Task>, creation: Creation) {
        let Creation {
            call_state,
            runner,
            follower,
        } = creation;
        self.metrics.created();
        audit::created(task);
        self.alarm.schedule(task.due());
        let following = follower.map(|(follower, events)| {
            let watch = self.watch_from(task.clone(), events);
            follower(watch)
        });
        let runs = call_state.mark_stored(task.clone());
        let inner = self.clone();
        let work = async move {
            if runs {
                inner.run_call(call_state, runner, StartMode::Run).await;
            } else if inner.phase() == Phase::Closed {
                // It was stopped while it was being stored.
                inner.announce_orphan().await;
            }
        };
        match following {
            // One task for both: the follower sees an event before anything that the work causes
            // later.
            Some(following) => drop(spawn(async move {
                tokio::join!(biased; work, following);
            })),
            None => drop(spawn(work)),
        }
    }

    /// Finds out whether a task was stored whose creator has got an error. A repetition of a
    /// request with a key may have found it, so it runs; without a key it is removed.
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
                self.remove_unowned(id).await;
            }
        }
    }

    /// A task of which the store did not say whether it has it, however long it takes to say so.
    async fn find_stored(&self, id: TaskId) -> Option<Committed<Task>> {
        let mut delay = RetryDelay::default();
        loop {
            match self.store.load(&Scope::AnyTask, id).await {
                Ok(found) => return found,
                Err(error) if error.is_transient() && self.phase() != Phase::Closed => {
                    delay.wait().await;
                }
                Err(_) => return None,
            }
        }
    }

    /// The task that has the request key already, if it is the same request and its time is not
    /// over.
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
