//! Creation: the task is stored, then its caller is told, then it runs.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::birth::{Beside, Birth, Waiting};
use super::cell::{Cell, Stage};
use super::{Engine, EngineError, Inner, NewCall, Watch};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::{Mutex, spawn};
use crate::store::{Committed, Insert, Inserted, StoreError, Told};
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
    pub fn create(
        &self,
        call: NewCall,
    ) -> impl Future<Output = Result<Created, EngineError>> + Send + '_ {
        self.create_beside(call, None)
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
        if call.request_key.is_some() {
            // Few calls have a key: the others do not carry this with them.
            return Box::pin(self.create_keyed(call, follower)).await;
        }
        match self.begin(call, follower).await?? {
            Inserted::New(task) => Ok(Created::New(task)),
            Inserted::Known(_) => Err(EngineError::NotFound),
        }
    }

    /// The same where another request may have made the task already, and that may be gone when it is looked for.
    async fn create_keyed(
        &self,
        mut call: NewCall,
        follower: Option<Waiting>,
    ) -> Result<Created, EngineError> {
        loop {
            let again = call.clone();
            match self.begin(call, follower.clone()).await?? {
                Inserted::New(task) => return Ok(Created::New(task)),
                Inserted::Known(id) => {
                    if let Some(task) = self.inner.known(id, &again.origin).await? {
                        return Ok(Created::Again(task));
                    }
                    call = again;
                }
            }
        }
    }

    /// Stores `call` as a task and starts its work, which goes on even if whoever asked for it goes away meanwhile.
    async fn begin(
        &self,
        mut call: NewCall,
        follower: Option<Waiting>,
    ) -> Result<Result<Inserted, StoreError>, EngineError> {
        let inner = self.inner.clone();
        let records = std::mem::take(&mut call.records);
        let parts = call.parts.take();
        let (task, runner) = inner.admit(call)?;
        // Before the work can say anything.
        let beside = follower.map(|follower| Beside {
            heard: inner.topics.everything_of(task.id),
            follower,
            inner: inner.clone(),
        });
        let cell = Arc::new(Cell::new(&task, Stage::Storing, parts));
        // Before it is stored: whoever finds the task can stop its work from then on.
        inner.calls.add(cell.clone());
        let birth = Birth {
            inner,
            cell,
            runner,
            beside,
            keyed: task.request_key.is_some(),
        };
        let told = self.inner.store.insert(Insert {
            task,
            quota: self.inner.policy.quota,
            records,
        });
        let (birth, inserted) = match told.at_once() {
            Ok(inserted) => (birth, inserted),
            Err(told) => birth.awaits(told).await,
        };
        if let Ok(Inserted::New(task)) = inserted {
            birth.begin(&task);
            return Ok(Ok(Inserted::New(task)));
        }
        let (tell, told) = oneshot::channel();
        spawn(birth.see_to(Told::now(inserted), Some(tell)));
        told.await.map_err(|_| EngineError::Closing)
    }
}

/// Goes along with a new task, from a watch that has missed nothing.
pub type Follower = Box<dyn FnOnce(Watch) -> Following + Send>;

/// What a [`Follower`] does.
pub type Following = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Inner {
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
