//! The only way a stored task changes: read, apply, commit if the revision is still current,
//! perform the effects.

use std::sync::Arc;

use outlast_wire::{Raw, Timestamp};

use super::call_state::{Application, CallState};
use super::{Actor, EndedTask, EngineError, Event, Inner, audit};
use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::store::{Committed, Reason, Replace, Snapshot, Status, Store, StoreError, TaskSummary};
use crate::task::Task;
use crate::transition::{Command, Effect, Effects, Next, Refused};

/// Why a change was not made.
pub(crate) enum ChangeError {
    Refused(Refused),
    Store(StoreError),
}

/// The result of some commands, not yet given to the store.
pub(super) struct Draft {
    now: Timestamp,
    /// The revision it was computed from.
    expected: Revision,
    /// `None` once a command was refused.
    next: Option<Arc<Task>>,
    body: Option<Raw>,
    effects: Effects,
}

impl Draft {
    /// A draft without changes.
    pub(super) fn of(task: Committed<Task>, now: Timestamp) -> Self {
        Self {
            now,
            expected: task.revision,
            next: Some(task.into_shared()),
            body: None,
            effects: Effects::default(),
        }
    }

    /// Applies `command` to the draft. A status text that changes nothing does not prevent the
    /// other commands.
    pub(super) fn apply(&mut self, command: Command) -> Result<(), Refused> {
        let Some(task) = self.next.take() else {
            return Err(Refused::Unchanged);
        };
        let skippable = matches!(
            command,
            Command::Status { .. } | Command::ConfirmInput { .. }
        );
        let before = skippable.then(|| task.clone());
        let step = match (task.apply(command, self.now), before) {
            (Ok(step), _) => step,
            (Err(_), Some(before)) => {
                self.next = Some(before);
                return Ok(());
            }
            (Err(refused), None) => return Err(refused),
        };
        let Next::Stored(next, body) = step.next else {
            return Err(Refused::Expired);
        };
        self.next = Some(next);
        self.body = body;
        // Most often a status text comes with an end, whose effects include those of the status
        // text.
        if self
            .effects
            .iter()
            .all(|so_far| step.effects.contains(so_far))
        {
            self.effects = step.effects;
        } else {
            self.effects.to_mut().extend_from_slice(&step.effects);
        }
        Ok(())
    }

    /// The change to store, without records, and its effects.
    pub(super) fn into_change(self, node: NodeId) -> Result<(Replace, Effects), Refused> {
        match self.next {
            Some(next) if next.revision != self.expected => {
                let replace = Replace {
                    node,
                    expected: self.expected,
                    next,
                    body: self.body,
                    records: Vec::new(),
                };
                Ok((replace, self.effects))
            }
            _ => Err(Refused::Unchanged),
        }
    }
}

impl Inner {
    /// Applies `command` to a task in the scope of `actor`.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: TaskId,
        command: Command,
    ) -> Result<Committed<Task>, EngineError> {
        for _ in 0..MAX_CHANGE_ATTEMPTS {
            let task = open_task(&*self.store, actor.scope(), id, self.now()).await?;
            match self.commit_by(actor, &task, [command.clone()]).await {
                Ok(task) => return Ok(task),
                Err(ChangeError::Store(StoreError::Conflict { .. })) => {}
                Err(ChangeError::Store(error)) => return Err(error.into()),
                Err(ChangeError::Refused(Refused::Expired)) => return Err(EngineError::Expired),
                Err(ChangeError::Refused(refused)) => return Err(refused.into()),
            }
        }
        let reason = Reason::new("too many changes to one task at once");
        Err(StoreError::Unavailable(reason).into())
    }

    /// Applies `command` to the call in `call_state`, stored or not.
    pub(crate) async fn command(
        &self,
        call_state: &Arc<CallState>,
        mut command: Command,
    ) -> Result<(), EngineError> {
        loop {
            let mut decided = std::pin::pin!(call_state.decided.notified());
            decided.as_mut().enable();
            command = match call_state.apply(command, self.now())? {
                Application::Plain(Some((next, effects))) => {
                    self.perform_plain_effects(call_state, next, &effects);
                    return Ok(());
                }
                Application::Plain(None) => return Ok(()),
                Application::Undecided(command) => command,
                Application::Stored(same) => {
                    command = same;
                    break;
                }
            };
            decided.await;
        }
        self.change(&Actor::caller(), call_state.id, command)
            .await
            .map(drop)
    }

    /// Applies `commands` of the engine to `task`, commits the result in one write, and performs
    /// the effects.
    pub(crate) async fn commit(
        &self,
        task: &Committed<Task>,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<Committed<Task>, ChangeError> {
        self.commit_by(&Scope::AnyTask.into(), task, commands).await
    }

    /// As [`Self::commit`], for the commands of `actor`.
    async fn commit_by(
        &self,
        actor: &Actor,
        task: &Committed<Task>,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<Committed<Task>, ChangeError> {
        let mut draft = Draft::of(task.clone(), self.now());
        for command in commands {
            draft.apply(command).map_err(ChangeError::Refused)?;
        }
        let (mut replace, effects) = draft.into_change(self.node).map_err(ChangeError::Refused)?;
        let body = replace.body.clone();
        replace.records = self.status_records(&replace.next, Some(Status::of_task(task)));
        let has_records = !replace.records.is_empty();
        let stored = self.store.replace(replace).await.map_err(|error| {
            if error.is_transient() {
                self.reconcile_later(task.id);
            }
            ChangeError::Store(error)
        })?;
        self.status_records_stored(has_records);
        if let Some(ending) = stored.state.ending() {
            let took = stored.updated.since(stored.created);
            self.metrics.ended(&stored.origin, ending, took);
            audit::ended(&stored, ending, took);
        }
        for effect in &*effects {
            if let Effect::Deliver(key) = effect {
                audit::input_answered(&stored, key, actor);
            }
        }
        self.perform_effects(&stored, body, &effects);
        Ok(stored)
    }

    /// Performs the effects of a committed change.
    pub(crate) fn perform_effects(
        &self,
        task: &Committed<Task>,
        body: Option<Raw>,
        effects: &[Effect],
    ) {
        let id = task.id;
        self.changes.task(id);
        self.alarm.schedule(task.due());
        let ends = effects.contains(&Effect::Wake);
        // A call that has ended needs no further effects.
        let call_state = (!ends).then(|| self.calls.find(id)).flatten();
        if let Some(call_state) = &call_state {
            call_state.update_newest(task);
        }
        for effect in effects {
            match effect {
                // Watchers are notified together with the waiters for the end.
                Effect::Publish if ends => {}
                Effect::Publish => self.subscribers.publish(id, || Event::Stored(task.clone())),
                // A waiter that registers after this reads the store and finds the end there.
                Effect::Wake => {
                    let ended_task = || {
                        let summary = task.derive(TaskSummary::of)?;
                        let body = body.clone();
                        Some(EndedTask { summary, body })
                    };
                    let event = || Event::Stored(task.clone());
                    self.subscribers.publish_end(id, event, ended_task);
                }
                Effect::Deliver(key) => {
                    if let (Some(call_state), Some(response)) =
                        (&call_state, task.input.responses.get(key))
                    {
                        call_state.deliver(key, response);
                    }
                }
                Effect::NotifyCancel => {
                    if let Some(call_state) = &call_state {
                        call_state.cancellation.request();
                    }
                }
                Effect::Stop => self.stop(id),
            }
        }
    }

    /// Stops the work of an ended task, if it runs here.
    pub(crate) fn stop(&self, id: TaskId) {
        if let Some(call_state) = self.calls.remove(id) {
            call_state.abort();
        }
    }

    fn perform_plain_effects(&self, call_state: &CallState, task: Arc<Task>, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Deliver(key) => {
                    if let Some(response) = task.input.responses.get(key) {
                        call_state.deliver(key, response);
                    }
                }
                Effect::NotifyCancel => call_state.cancellation.request(),
                Effect::Publish | Effect::Wake | Effect::Stop => {}
            }
        }
        self.subscribers
            .publish(call_state.id, || Event::Plain(task.clone()));
    }
}

/// Loads a task that has not ended.
pub(super) async fn open_task(
    store: &dyn Store,
    scope: &Scope,
    id: TaskId,
    now: Timestamp,
) -> Result<Committed<Task>, EngineError> {
    let found = store.get(scope, id).await?.ok_or(EngineError::NotFound)?;
    match found {
        found if found.is_expired(now) => Err(EngineError::Expired),
        Snapshot::Open(task) => Ok(task),
        Snapshot::Ended(task) => Err(Refused::AlreadyEnded(task.ending).into()),
    }
}

/// How often a change is retried after a conflict.
pub(super) const MAX_CHANGE_ATTEMPTS: usize = 200;
