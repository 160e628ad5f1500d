//! Creation: the task is stored, then its work starts and its creator gets the reply.

use std::pin::Pin;
use std::sync::Arc;

use super::call_state::{Cell, Stage};
use super::run::{Begin, Pause};
use super::event_queue::Mailbox;
use super::subscribers::Place;
use super::{Engine, EngineError, Inner, NewCall, Phase, Runner, Watch, audit};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::{spawn, to_the_end};
use crate::store::{Committed, Insert, Inserted};
use crate::task::Task;

/// A task that exists.
#[derive(Clone, Debug)]
pub enum Created {
    /// It was made for this request.
    New(Committed<Task>),
    /// An earlier request with the same key made it.
    Again(Committed<Task>),
}

impl Created {
    /// The task, old or new.
    pub fn task(&self) -> &Committed<Task> {
        match self {
            Self::New(task) | Self::Again(task) => task,
        }
    }
}

impl Engine {
    /// Stores a new task and starts its work.
    ///
    /// Resolves when the task is durable: a lookup would find it after a crash (V2-CREATE-5). The
    /// creation goes on if the returned future is dropped.
    pub async fn create(&self, call: NewCall) -> Result<Created, EngineError> {
        to_the_end(self.inner.clone().create(call, None)).await
    }

    /// As [`create`](Self::create), with a follower that receives every event of the task if it is a
    /// new one, including those before the creator has its reply.
    pub async fn create_followed(
        &self,
        call: NewCall,
        follower: Follower,
    ) -> Result<Created, EngineError> {
        to_the_end(self.inner.clone().create(call, Some(follower))).await
    }
}

/// Makes the future that follows a new task, from a watch that has missed nothing.
pub type Follower = Box<dyn FnOnce(Watch) -> Following + Send>;

/// What a [`Follower`] makes.
pub type Following = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call that the store has been asked to keep as a task.
struct Creation {
    cell: Arc<Cell>,
    runner: Arc<dyn Runner>,
    follower: Option<(Follower, (Place, Mailbox))>,
}

impl Inner {
    async fn create(
        self: Arc<Self>,
        mut call: NewCall,
        mut follower: Option<Follower>,
    ) -> Result<Created, EngineError> {
        loop {
            let retry = call.request_key.is_some().then(|| call.clone());
            let records = std::mem::take(&mut call.records);
            let parts = call.parts.take();
            let (task, runner) = self.admit(call)?;
            let id = task.id;
            let cell = Arc::new(Cell::new(&task, Stage::Storing, parts));
            // Both before it is stored: from then on its work can be stopped, and from its start on
            // its work can publish.
            self.calls.add(cell.clone());
            let events = follower.is_some().then(|| self.topics.everything_of(id));
            let reply = self.store.insert(Insert {
                task,
                quota: self.policy.quota,
                records,
            });
            match self.inserted(id, reply).await {
                Ok(Inserted::New(task)) => {
                    let follower = follower.take().zip(events);
                    self.start(
                        &task,
                        Creation {
                            cell,
                            runner,
                            follower,
                        },
                    );
                    return Ok(Created::New(task));
                }
                Ok(Inserted::Known(known)) => {
                    self.calls.take(id, cell.attempt);
                    let Some(again) = retry else {
                        return Err(EngineError::NotFound);
                    };
                    if let Some(task) = self.known(known, &again.origin).await? {
                        return Ok(Created::Again(task));
                    }
                    // The task that had the key is gone: the key is free.
                    call = again;
                }
                Err(error) if error.is_passing() => {
                    let follower = follower.take().zip(events);
                    let creation = Creation {
                        cell,
                        runner,
                        follower,
                    };
                    spawn(self.resolve_creation(creation, retry.is_some()));
                    return Err(error.into());
                }
                Err(error) => {
                    self.calls.take(id, cell.attempt);
                    return Err(error.into());
                }
            }
        }
    }

    /// Starts the work of a task that is stored.
    fn start(self: &Arc<Self>, task: &Committed<Task>, creation: Creation) {
        let Creation {
            cell,
            runner,
            follower,
        } = creation;
        self.meter.created();
        audit::created(task);
        self.alarm.at(task.due());
        let following = follower.map(|(follower, events)| {
            let watch = self.watch_from(task.clone(), events);
            follower(watch)
        });
        let runs = cell.is_stored(task.clone());
        let inner = self.clone();
        let work = async move {
            if runs {
                inner.drive(cell, runner, Begin::Run).await;
            } else if inner.phase() == Phase::Closed {
                // It was stopped while it was being stored.
                inner.leave_behind().await;
            }
        };
        match following {
            // One task for both: the follower sees an event before anything that the work causes later.
            Some(following) => drop(spawn(async move {
                tokio::join!(biased; work, following);
            })),
            None => drop(spawn(work)),
        }
    }

    /// Finds out whether a task was stored whose creator has got an error. A repetition of a request with a
    /// key may have found it, so it runs; without a key it is removed.
    async fn resolve_creation(self: Arc<Self>, creation: Creation, has_key: bool) {
        let id = creation.cell.id;
        let stored = if has_key {
            self.find_stored(id).await
        } else {
            None
        };
        match stored {
            Some(task) => self.start(&task, creation),
            None => {
                self.calls.take(id, creation.cell.attempt);
                drop(creation);
                self.disown(id).await;
            }
        }
    }

    /// A task of which the store did not say whether it has it, however long it takes to say so.
    async fn find_stored(&self, id: TaskId) -> Option<Committed<Task>> {
        let mut pause = Pause::default();
        loop {
            match self.store.load(&Scope::Anyone, id).await {
                Ok(found) => return found,
                Err(error) if error.is_passing() && self.phase() != Phase::Closed => {
                    pause.rest().await;
                }
                Err(_) => return None,
            }
        }
    }

    /// The task that has the request key already, if it is the same request and its time is not over.
    async fn known(
        &self,
        id: TaskId,
        origin: &Origin,
    ) -> Result<Option<Committed<Task>>, EngineError> {
        let Some(task) = self.store.load(&Scope::Anyone, id).await? else {
            return Ok(None);
        };
        if task.is_gone(self.now()) {
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
