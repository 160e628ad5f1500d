//! Creation: the task is stored, then its caller is told, then it runs.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::cell::{Cell, Stage};
use super::drive::Begin;
use super::{Engine, EngineError, Inner, NewCall, Runner};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::runtime::spawn;
use crate::store::{Committed, Insert, Inserted, RecordWrite, StoreError};
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
        let mut call = call;
        loop {
            let records = std::mem::take(&mut call.records);
            // Kept for another round only where a round can fail for the key's sake.
            let again = call.request_key.is_some().then(|| call.clone());
            let (task, runner) = self.inner.admit(call)?;
            let origin = task.origin.clone();
            let (tell, told) = oneshot::channel();
            let begun = self
                .inner
                .clone()
                .begin(task, runner, records.clone(), tell);
            // The work goes on even if whoever asked for it goes away meanwhile.
            spawn(begun);
            let inserted = told.await.map_err(|_| EngineError::Closing)?;
            match inserted {
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
}

impl Inner {
    /// Stores `task`, tells its creator, and runs it to the end.
    async fn begin(
        self: Arc<Self>,
        task: Task,
        runner: Arc<dyn Runner>,
        records: Vec<RecordWrite>,
        tell: oneshot::Sender<Result<Inserted, StoreError>>,
    ) {
        let quota = self.policy.quota;
        match self
            .store
            .insert(Insert {
                task,
                quota,
                records,
            })
            .await
        {
            Ok(Inserted::New(task)) => {
                self.alarm.at(task.due());
                let cell = Arc::new(Cell::new(&task, Stage::Stored(task.clone())));
                self.calls.add(cell.clone());
                // A caller that is gone finds the task in its list.
                let _ = tell.send(Ok(Inserted::New(task)));
                self.drive(cell, runner, Begin::Run).await;
            }
            other => {
                let _ = tell.send(other);
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
            self.store
                .remove(self.node, vec![(id, task.revision)])
                .await?;
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
