//! One call from its request to its outcome. What a task needs after it was made is in [`observe`](super::observe).

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Clock, Outcome, SystemClock};
use outlast_wire::envelope::Id;
use outlast_wire::{PeerTask, Raw, RawRef, meta, object, tool};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::call::{CallSpec, Form, Preference};
use super::client::Core;
use super::ears::empty;
use super::exchange::{GiveUp, Ticket};
use super::execution::{Command, NotCancelled, Unsettled, View};
use super::fault::Fault;
use super::legacy::{self, Made};
use super::observe::Observed;
use super::outcome::{of_error, of_result, wants_task};
use super::reference::Reference;
use super::routes::{Ear, LAG, Told};
use crate::transport::link::LinkError;

/// Drives one execution: tells its owner how it stands, and hears what the owner wants.
pub(crate) struct Driver {
    pub(super) view: Arc<watch::Sender<View>>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) told: mpsc::Receiver<Told>,
    ear: Ear,
}

/// A cancellation that somebody waits for.
pub(super) type Cancels = Vec<oneshot::Sender<Result<(), NotCancelled>>>;

/// What a call came to.
enum Began {
    Task(PeerTask, Option<String>),
    Ended(Outcome),
    /// The owner gave it up before it was answered.
    GivenUp(Unsettled),
    Cancelled,
}

impl Driver {
    pub(crate) fn new(view: Arc<watch::Sender<View>>, commands: mpsc::Receiver<Command>) -> Self {
        let (ear, told) = mpsc::channel(LAG);
        Self {
            view,
            commands,
            told,
            ear,
        }
    }

    /// Makes a call and sees it through.
    pub(crate) async fn call(
        mut self,
        core: Arc<Core>,
        spec: CallSpec,
        form: Form,
    ) -> Result<Outcome, Unsettled> {
        let token = core.fresh_token();
        // V1-PROG-3: from the call to the end of the task.
        let _progress = core
            .ears
            .routes
            .hear_progress(token.clone(), self.ear.clone());
        let mut cancels = Cancels::new();
        match self.begin(&core, &spec, form, &token, &mut cancels).await? {
            Began::Ended(outcome) => {
                finished(cancels);
                Ok(outcome)
            }
            Began::Cancelled => Ok(Outcome::Cancelled),
            Began::GivenUp(why) => Err(why),
            Began::Task(task, immediate) => {
                let reference = Reference::new(&core, &spec, &task, &token, SystemClock.now());
                // Stored before it is reported: whoever knows of the task finds it after a crash.
                let kept = core.keep(&reference).await;
                self.view.send_modify(|view| {
                    view.immediate_response = immediate;
                    view.reference = Some(Arc::new(reference));
                });
                let observed = Observed::new(core, task, Instant::now(), cancels);
                let ended = self.see_through(observed, spec.name.clone()).await;
                kept.done(&ended).await;
                ended
            }
        }
    }

    /// Goes on with a task that an earlier life of this program began.
    pub(crate) async fn resume(
        mut self,
        core: Arc<Core>,
        reference: Reference,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, Unsettled> {
        let token = reference.token();
        let _progress = token.map(|token| core.ears.routes.hear_progress(token, self.ear.clone()));
        let kept = core.keep(&reference).await;
        self.view
            .send_modify(|view| view.reference = Some(Arc::new(reference.clone())));
        let age = Duration::from_millis(SystemClock.now().since(reference.created()));
        let now = Instant::now();
        let created = now.checked_sub(age).unwrap_or(now);
        let observed = Observed::new(core, reference.as_task(), created, Cancels::new());
        let ended = self.see_through(observed.looking_at_once(), name).await;
        kept.done(&ended).await;
        ended
    }

    async fn see_through(
        &mut self,
        mut observed: Observed,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, Unsettled> {
        let routes = observed.core.ears.routes.clone();
        // A task that somebody else here observes already is observed by polling alone.
        let _status = routes.hear_task(&observed.task.id, self.ear.clone(), name);
        let ended = observed.observe(self).await;
        // A cancellation that ended the task has been told so.
        finished(observed.cancels);
        ended
    }

    /// Sends the call until it is answered: again only if the server certainly has not seen it, or if it says that it
    /// wants a task.
    async fn begin(
        &mut self,
        core: &Arc<Core>,
        spec: &CallSpec,
        mut form: Form,
        token: &Id,
        cancels: &mut Cancels,
    ) -> Result<Began, Unsettled> {
        let plain = call_params(spec, token)?;
        for attempt in 0.. {
            let up = core.up().await?;
            let (params, on_drop) = match form {
                Form::Plain => (plain.clone(), GiveUp::Cancel),
                Form::Task => (
                    legacy::augmented(plain.borrow(), spec.ttl)?,
                    GiveUp::Quietly,
                ),
            };
            let id = up.exchange.fresh_id();
            let routes = &core.ears.routes;
            let _named = spec
                .name
                .clone()
                .map(|name| routes.name_request(id.clone(), name));
            let sent = up
                .exchange
                .send_as(id, tool::CALL, Some(params.borrow()), on_drop);
            let answer = match sent.await {
                Ok(ticket) => match self.await_answer(core, ticket, form, cancels).await {
                    Ok(answer) => answer,
                    Err(began) => return Ok(began),
                },
                Err(fault) => Err(fault),
            };
            let gone = matches!(&answer, Err(Fault::Link(LinkError::SessionGone)));
            if gone && attempt < REPEATS {
                continue;
            }
            let may_be_task =
                spec.preference != Preference::Forbid && up.server.generation.takes_tool_tasks();
            if form == Form::Plain && may_be_task && wants_task(&answer) {
                form = Form::Task;
                continue;
            }
            return match answer {
                Ok(answer) if form == Form::Task => Ok(match legacy::read_made(answer)? {
                    Made::Task(task, immediate) => Began::Task(task, immediate),
                    Made::Result(result) => Began::Ended(of_result(result)),
                }),
                Ok(answer) => Ok(Began::Ended(of_result(answer))),
                Err(Fault::Error(error)) => Ok(Began::Ended(of_error(error))),
                Err(fault) => Err(fault.into()),
            };
        }
        Err(Unsettled::Left)
    }

    /// Waits for the answer to a call, hearing its owner and its progress meanwhile. `Err` if it was given up.
    async fn await_answer(
        &mut self,
        core: &Arc<Core>,
        mut ticket: Ticket,
        form: Form,
        cancels: &mut Cancels,
    ) -> Result<Result<Raw, Fault>, Began> {
        let options = &core.options;
        let patience = match form {
            Form::Plain => options.silence,
            Form::Task => options.request,
        };
        let limit = Instant::now() + options.longest_call.max(patience);
        let mut patient_until = Instant::now() + patience;
        loop {
            tokio::select! {
                biased;
                answer = ticket.wait() => return Ok(answer),
                command = self.commands.recv() => match (command, form) {
                    // A1-25: kept until the id is known.
                    (Some(Command::Cancel(tell)), Form::Task) => {
                        self.view.send_modify(|view| view.cancelling = true);
                        cancels.push(tell);
                    }
                    (Some(Command::Cancel(tell)), Form::Plain) => {
                        // V1-CANC-1: dropping the ticket says so.
                        let _ = tell.send(Ok(()));
                        return Err(Began::Cancelled);
                    }
                    (Some(Command::Leave) | None, form) => {
                        if form == Form::Task {
                            tokio::spawn(cancel_late(core.clone(), ticket));
                        }
                        return Err(Began::GivenUp(Unsettled::Left));
                    }
                },
                Some(told) = self.told.recv() => {
                    // V1-INIT-9: progress shows that it lives, up to a limit.
                    patient_until = (Instant::now() + patience).min(limit);
                    self.hear_progress(told);
                }
                () = tokio::time::sleep_until(patient_until.min(limit)) => {
                    if form == Form::Task {
                        tokio::spawn(cancel_late(core.clone(), ticket));
                    }
                    let fault = Fault::TimedOut(patience);
                    return Err(Began::GivenUp(fault.into()));
                }
            }
        }
    }

    pub(super) fn hear_progress(&self, told: Told) {
        if let Told::Progress(progress) = told {
            self.view.send_modify(|view| view.progress = Some(progress));
        }
    }
}

/// Cancels a task that nobody wants any more as soon as its id is known (A1-25): a request that makes a task is never
/// cancelled itself (V1-CANC-2).
async fn cancel_late(core: Arc<Core>, ticket: Ticket) {
    let answer = tokio::time::timeout(LATE, ticket.answer()).await;
    let Ok(Ok(answer)) = answer else { return };
    let Ok(Made::Task(task, _)) = legacy::read_made(answer) else {
        return;
    };
    let Ok(up) = core.up().await else { return };
    if up.server.generation.cancels() {
        let _ = legacy::cancel(&up.exchange, &task.id, core.options.request).await;
    }
}

/// The call was over before it could be cancelled.
fn finished(cancels: Cancels) {
    for tell in cancels {
        let _ = tell.send(Err(NotCancelled::Finished));
    }
}

fn call_params(spec: &CallSpec, token: &Id) -> Result<Raw, Fault> {
    let odd = |what: &str| Fault::Malformed(format!("{what} must be an object"));
    let name = Raw::encode(&*spec.tool).map_err(|_| odd("the name"))?;
    let begun = spec.params.clone().unwrap_or_else(empty);
    let set = |object: RawRef<'_>, path: &[&str], value: RawRef<'_>| {
        object::set(object, path, value).map_err(|_| odd("params"))
    };
    let mut params = set(begun.borrow(), &["name"], name.borrow())?;
    if let Some(arguments) = &spec.arguments {
        if !arguments.borrow().is_object() {
            return Err(odd("arguments"));
        }
        params = set(params.borrow(), &["arguments"], arguments.borrow())?;
    }
    let token = token.to_raw();
    set(
        params.borrow(),
        &[meta::META, meta::PROGRESS_TOKEN],
        token.borrow(),
    )
}

/// How often a call is sent again to a server that has not seen it.
const REPEATS: u32 = 3;

/// How long the answer to a call that nobody wants any more is waited for.
const LATE: Duration = Duration::from_secs(600);
