//! Creation: the task is stored, then its caller is told, then it runs.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::cell::{Cell, Stage};
use super::drive::{Begin, Pause};
use super::mailbox::Mailbox;
use super::topics::Place;
use super::{Engine, EngineError, Inner, NewCall, Parts, Phase, Runner, Watch, audit};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::{Mutex, spawn};
use crate::store::{Committed, Insert, Inserted, RecordWrite, StoreError, Told};
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
    /// Resolves when the task is durable: a lookup would find it after a crash (V2-CREATE-5).
    pub async fn create(&self, call: NewCall) -> Result<Created, EngineError> {
        self.create_beside(call, None).await
    }

    /// The same, with somebody who follows the task from its beginning, if it is a new one: what the work says before
    /// its creator hears of it is told, too.
    ///
    /// The follower shares the work's place in the runtime: nobody has to wake up for it.
    pub async fn create_followed(
        &self,
        call: NewCall,
        follower: Follower,
    ) -> Result<Created, EngineError> {
        let follower = Arc::new(Mutex::new(Some(follower)));
        self.create_beside(call, Some(follower)).await
    }

    async fn create_beside(
        &self,
        call: NewCall,
        follower: Option<Waiting>,
    ) -> Result<Created, EngineError> {
        let mut call = call;
        loop {
            let records = std::mem::take(&mut call.records);
            // Kept for another round only where a round can fail for the key's sake.
            let again = call.request_key.is_some().then(|| call.clone());
            let parts = call.parts.take();
            let (task, runner) = self.inner.admit(call)?;
            let origin = task.origin.clone();
            // Before the work can say anything.
            let beside = follower.clone().map(|follower| Beside {
                heard: self.inner.topics.everything_of(task.id),
                follower,
                inner: self.inner.clone(),
            });
            let begun = self.begin(task, (runner, beside), records.clone(), parts);
            match begun.await? {
                Ok(Inserted::New(task)) => return Ok(Created::New(task)),
                Ok(Inserted::Known(id)) => {
                    let Some(same) = again else {
                        return Err(EngineError::NotFound);
                    };
                    if let Some(task) = self.inner.known(id, &origin).await? {
                        return Ok(Created::Again(task));
                    }
                    call = NewCall { records, ..same };
                }
                Err(refused) => return Err(refused.into()),
            }
        }
    }

    /// Stores `task` and starts its work, which goes on even if whoever asked for it goes away meanwhile.
    async fn begin(
        &self,
        task: Arc<Task>,
        (runner, beside): (Arc<dyn Runner>, Option<Beside>),
        records: Vec<RecordWrite>,
        parts: Option<Parts>,
    ) -> Result<Result<Inserted, StoreError>, EngineError> {
        let (inner, keyed) = (self.inner.clone(), task.request_key.is_some());
        let cell = Arc::new(Cell::new(&task, Stage::Storing, parts));
        // Before it is stored: whoever finds the task can stop its work from then on.
        inner.calls.add(cell.clone());
        let told = inner.store.insert(Insert {
            task,
            quota: inner.policy.quota,
            records,
        });
        let told = match told.at_once() {
            // A store that answers at once needs nobody to wait for it.
            Ok(Ok(Inserted::New(task))) => {
                inner.note_new(&task);
                let along = beside.and_then(|beside| beside.of(&task));
                if cell.is_stored(task.clone()) {
                    let work = inner.drive(cell, runner, Begin::Run);
                    spawn(Both::new(work, along));
                } else if inner.phase() == Phase::Closed {
                    inner.leave_behind().await;
                }
                return Ok(Ok(Inserted::New(task)));
            }
            Ok(other) => Told::now(other),
            Err(told) => told,
        };
        let (tell, told_caller) = oneshot::channel();
        spawn(async move {
            let inserted = inner.inserted(cell.id, told).await;
            let fate = Fate::of(&inserted, keyed);
            let along = match &inserted {
                Ok(Inserted::New(task)) => {
                    inner.note_new(task);
                    beside.and_then(|beside| beside.of(task))
                }
                _ => None,
            };
            // A caller that is gone finds the task in its list.
            let _ = tell.send(inserted);
            Both::new(inner.follow(cell, runner, fate), along).await;
        });
        told_caller.await.map_err(|_| EngineError::Closing)
    }
}

/// Goes along with a new task, from a watch that has missed nothing.
pub type Follower = Box<dyn FnOnce(Watch) -> Following + Send>;

/// What a [`Follower`] does.
pub type Following = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A follower until it is known whether there is a new task.
type Waiting = Arc<Mutex<Option<Follower>>>;

/// Whoever goes along with a task that may come to be.
struct Beside {
    heard: (Place, Mailbox),
    follower: Waiting,
    inner: Arc<Inner>,
}

impl Beside {
    /// What goes along with a new task, if somebody wants to.
    fn of(self, task: &Committed<Task>) -> Option<Following> {
        let watch = self.inner.watch_from(task.clone(), self.heard);
        // The critical section only takes it.
        let follower = self
            .follower
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        follower.map(|follower| follower(watch))
    }
}

/// The work and what goes along with it, in this order: what the work says is told before anybody else has a turn.
struct Both {
    work: Option<Following>,
    along: Option<Following>,
}

impl Both {
    fn new(work: impl Future<Output = ()> + Send + 'static, along: Option<Following>) -> Self {
        Self {
            work: Some(Box::pin(work)),
            along,
        }
    }
}

impl Future for Both {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { work, along } = &mut *self;
        let mut all = Poll::Ready(());
        for part in [work, along] {
            match part.as_mut().map(|part| part.as_mut().poll(cx)) {
                Some(Poll::Pending) => all = Poll::Pending,
                Some(Poll::Ready(())) => *part = None,
                None => {}
            }
        }
        all
    }
}

/// What became of a new task, as far as the store said.
enum Fate {
    Stored(Committed<Task>),
    /// It may be there or not; a repetition of the request finds it only by its key.
    Unsure {
        keyed: bool,
    },
    Refused,
}

impl Fate {
    fn of(inserted: &Result<Inserted, StoreError>, keyed: bool) -> Self {
        match inserted {
            Ok(Inserted::New(task)) => Self::Stored(task.clone()),
            Err(error) if error.is_passing() => Self::Unsure { keyed },
            Ok(Inserted::Known(_)) | Err(_) => Self::Refused,
        }
    }
}

impl Inner {
    /// Does what follows when a task has been stored.
    fn note_new(&self, task: &Committed<Task>) {
        self.counts.created();
        audit::created(task);
        self.alarm.at(task.due());
    }

    /// Runs a new task to its end, or forgets it if the store does not have it.
    async fn follow(self: Arc<Self>, cell: Arc<Cell>, runner: Arc<dyn Runner>, fate: Fate) {
        let unsure = matches!(fate, Fate::Unsure { .. });
        let stored = match fate {
            Fate::Stored(task) => Some(task),
            // A repetition of the request may have found it.
            Fate::Unsure { keyed: true } => self.find_stored(cell.id).await,
            Fate::Unsure { keyed: false } | Fate::Refused => None,
        };
        match stored {
            Some(task) => match cell.is_stored(task) {
                true => self.drive(cell, runner, Begin::Run).await,
                false if self.phase() == Phase::Closed => self.leave_behind().await,
                false => {}
            },
            None => {
                self.calls.take(cell.id, cell.attempt);
                if unsure {
                    self.disown(cell.id).await;
                }
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
        match task.origin.same_request(origin) {
            true => Ok(Some(task)),
            false => {
                let key = task.request_key.clone().unwrap_or_default();
                Err(EngineError::KeyConflict(key))
            }
        }
    }
}
