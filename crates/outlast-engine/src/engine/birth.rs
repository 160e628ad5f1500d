//! A task between the wish for it and its first step: what becomes of it when the store has spoken, and whoever wished
//! for it may have gone away.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::cell::Cell;
use super::create::{Follower, Following};
use super::drive::Pause;
use super::hands::Work;
use super::mailbox::Mailbox;
use super::topics::Place;
use super::{Inner, Phase, Runner, audit};
use crate::id::{Scope, TaskId};
use crate::runtime::{Mutex, can_spawn, spawn};
use crate::store::{Committed, Inserted, StoreError, Told};
use crate::task::Task;

/// A call that the store has been asked to keep as a task.
pub(super) struct Birth {
    pub(super) inner: Arc<Inner>,
    pub(super) cell: Arc<Cell>,
    pub(super) runner: Arc<dyn Runner>,
    pub(super) beside: Option<Beside>,
    /// Whether a repetition of the request finds the task by its key.
    pub(super) keyed: bool,
}

impl Birth {
    /// Waits for the word of the store. If nobody waits any more, the runtime does.
    pub(super) fn awaits(self, told: Told<'static, Inserted>) -> Awaited {
        Awaited(Some((self, told)))
    }

    /// Lets the work begin: the store has the task.
    pub(super) fn begin(self, task: &Committed<Task>) {
        let (inner, cell) = (self.inner, self.cell);
        let hands = inner.hands.clone();
        inner.counts.created();
        audit::created(task);
        inner.alarm.at(task.due());
        let along = self.beside.and_then(|beside| beside.of(task));
        let work = match cell.is_stored(task.clone()) {
            true => Work::Call(inner, cell, self.runner),
            false if inner.phase() == Phase::Closed => {
                Work::Other(Box::pin(async move { inner.leave_behind().await }))
            }
            // It was stopped meanwhile.
            false => Work::Nothing,
        };
        hands.give(work, along);
    }

    /// Does what the word of the store calls for, and passes it on to whoever waits for it.
    pub(super) async fn see_to(
        self,
        told: Told<'static, Inserted>,
        tell: Option<oneshot::Sender<Result<Inserted, StoreError>>>,
    ) {
        let id = self.cell.id;
        let inserted = self.inner.inserted(id, told).await;
        let unsure = inserted.as_ref().is_err_and(StoreError::is_passing);
        let stored = match &inserted {
            Ok(Inserted::New(task)) => Some(task.clone()),
            Ok(Inserted::Known(_)) | Err(_) => None,
        };
        if let Some(tell) = tell {
            // A caller that is gone finds the task in its list.
            let _ = tell.send(inserted);
        }
        let stored = match unsure && self.keyed {
            // A repetition of the request may have found it.
            true => self.inner.find_stored(id).await,
            false => stored,
        };
        match stored {
            Some(task) => self.begin(&task),
            None => {
                self.inner.calls.take(id, self.cell.attempt);
                if unsure {
                    self.inner.disown(id).await;
                }
            }
        }
    }
}

/// The wait for the word of the store.
pub(super) struct Awaited(Option<(Birth, Told<'static, Inserted>)>);

impl Future for Awaited {
    type Output = (Birth, Result<Inserted, StoreError>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((_, told)) = &mut self.0 else {
            // It was told before.
            return Poll::Pending;
        };
        let inserted = ready!(Pin::new(told).poll(cx));
        match self.0.take() {
            Some((birth, _)) => Poll::Ready((birth, inserted)),
            None => Poll::Pending,
        }
    }
}

impl Drop for Awaited {
    /// What was given to the store must be followed by its effects.
    fn drop(&mut self) {
        if let Some((birth, told)) = self.0.take()
            && can_spawn()
        {
            spawn(birth.see_to(told, None));
        }
    }
}

/// A follower until it is known whether there is a new task.
pub(super) type Waiting = Arc<Mutex<Option<Follower>>>;

/// Whoever goes along with a task that may come to be.
pub(super) struct Beside {
    pub(super) heard: (Place, Mailbox),
    pub(super) follower: Waiting,
    pub(super) inner: Arc<Inner>,
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

impl Inner {
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
}
