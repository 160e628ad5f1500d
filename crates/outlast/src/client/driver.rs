//! One call from its request to its outcome. What a task needs after it was made is in [`observe`](super::poller).

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Clock, Outcome, SystemClock};
use outlast_wire::envelope::Id;
use outlast_wire::object::Rewrite;
use outlast_wire::v1::TaskRequest;
use outlast_wire::{PeerTask, Raw, meta, tool};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::call::{CallSpec, CheckedCall, Form, Preference};
use super::client::Core;
use super::conversation::{Draft, Made, Up};
use super::error::Fault;
use super::execution::{CallOwner, Command, NotCancelled, Outage, Unsettled, View};
use super::modern::{Asker, Inputs, OnUnfit, Rounds};
use super::outcome::{of_error, of_result, wants_task};
use super::poller::Observed;
use super::reference::{OpenRequest, Reference};
use super::routes::{Ear, LAG, Told};
use super::rpc::{GiveUp, Replied, Ticket};
use super::server_description::Generation;
use super::task_report::Sight;
use super::{audit, modern};
use crate::transport::link::LinkError;

/// Drives one call: shows its owner how it stands, and takes the owner's commands.
pub(crate) struct Driver<'a, O> {
    pub(super) view: View,
    pub(super) owner: &'a mut O,
    pub(super) told: mpsc::Receiver<Told>,
    ear: Ear,
}

/// A cancellation that somebody waits for.
pub(super) type Cancels = Vec<oneshot::Sender<Result<(), NotCancelled>>>;

/// What a call came to.
enum Began {
    Task(Generation, Sight, Option<String>),
    Ended(Outcome),
    /// The owner gave it up before it was answered.
    GivenUp(Unsettled),
    Cancelled,
}

/// A request that is to make a task. If it is dropped before it is answered, the task is cancelled as soon as its id is
/// known (A1-25): the answer may be on its way, and a request that makes a V1 task is never cancelled itself (V1-CANC-2).
struct Making {
    ticket: Option<Ticket>,
    up: Arc<Up>,
    /// Keeps the connection until a V1 task is made; a V2 server is told that the request is withdrawn.
    core: Option<Arc<Core>>,
    patience: Duration,
}

impl<'a, O: CallOwner> Driver<'a, O> {
    pub(crate) fn new(view: View, owner: &'a mut O) -> Self {
        let (ear, told) = mpsc::channel(LAG);
        Self {
            view,
            owner,
            told,
            ear,
        }
    }

    /// Makes a call and drives it to its end.
    pub(crate) async fn call(mut self, call: CheckedCall) -> Result<Outcome, Unsettled> {
        let CheckedCall { core, spec, form } = call;
        let token = core.fresh_token();
        // V1-PROG-3: from the call to the end of the task.
        let _progress = core
            .ears
            .routes
            .hear_progress(token.clone(), self.ear.clone());
        let mut cancels = Cancels::new();
        match self.begin(&core, &spec, form, &token, &mut cancels).await? {
            Began::Ended(outcome) => {
                self.hear_last(&core, Some(&token)).await;
                finished(cancels);
                Ok(outcome)
            }
            Began::Cancelled => Ok(Outcome::Cancelled),
            Began::GivenUp(why) => Err(why),
            Began::Task(generation, sight, immediate) => {
                let now = SystemClock.now();
                let task = &sight.task;
                let reference = Reference::new(&core, generation, &spec, task, &token, now);
                // Stored before it is reported: whoever knows of the task finds it after a crash.
                let kept = core.keep(&reference).await;
                self.view.immediate_response = immediate;
                self.view.reference = Some(Arc::new(reference));
                let asker = Asker::new(&core.ears, spec.name.clone());
                let inputs = Inputs::new(task.id.clone(), asker, OnUnfit::Refuse);
                let observed = Observed::new(core.clone(), sight, inputs, Instant::now(), cancels);
                // Most calls are plain, and have no room for this in them.
                let ended =
                    Box::pin(self.see_through(observed, Vec::new(), spec.name.clone())).await;
                self.hear_last(&core, Some(&token)).await;
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
        open: Vec<OpenRequest>,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, Unsettled> {
        let token = reference.token();
        let routes = core.ears.routes.clone();
        let _progress = token
            .clone()
            .map(|token| routes.hear_progress(token, self.ear.clone()));
        let kept = core.keep(&reference).await;
        self.view.reference = Some(Arc::new(reference.clone()));
        let age = Duration::from_millis(SystemClock.now().since(reference.created()));
        let now = Instant::now();
        let created = now.checked_sub(age).unwrap_or(now);
        let sight = Sight::brief(reference.as_task());
        let asker = Asker::new(&core.ears, name.clone());
        // A2-22: somebody else may have promised what we cannot answer.
        let inputs = Inputs::new(reference.task.clone(), asker, OnUnfit::Leave);
        let observed = Observed::new(core.clone(), sight, inputs, created, Cancels::new());
        let ended = self
            .see_through(observed.looking_at_once(), open, name)
            .await;
        self.hear_last(&core, token.as_ref()).await;
        kept.done(&ended).await;
        ended
    }

    async fn see_through(
        &mut self,
        mut observed: Observed,
        open: Vec<OpenRequest>,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, Unsettled> {
        let routes = observed.core.ears.routes.clone();
        // A task that somebody else here observes already is observed by polling alone.
        let _status = routes.hear_task(&observed.task.id, self.ear.clone(), name);
        let _told = observed.core.listener.task(&observed.task.id);
        if !open.is_empty() {
            answer_open(&observed.core, &observed.task.id, open).await;
        }
        let ended = observed.observe(self).await;
        // A cancellation that ended the task has been told so.
        finished(observed.cancels);
        ended
    }

    /// Sends the call until it is answered: again only if the server certainly has not seen it, if it says that it
    /// wants a task, or with the answers to its questions.
    async fn begin(
        &mut self,
        core: &Arc<Core>,
        spec: &CallSpec,
        mut form: Form,
        token: &Id,
        cancels: &mut Cancels,
    ) -> Result<Began, Unsettled> {
        let tool = Raw::encode(&*spec.tool).map_err(|_| modern::odd("the name"))?;
        let token = token.to_raw();
        let (base, first) = spec.params(&tool, &token)?;
        let task = TaskRequest { ttl_ms: spec.ttl }.to_raw();
        let asker = Asker::new(&core.ears, spec.name.clone());
        // The params of a repetition with input responses.
        let mut answering: Option<Raw> = None;
        let mut rounds = Rounds::default();
        let mut repeats = 0;
        let mut pending = spec.pending.clone();
        loop {
            if let Some(asked) = pending.take() {
                rounds.another(&asked)?;
                if let Some(keeper) = &spec.keeper {
                    keeper.asked(&asked).await;
                }
                let plain = first
                    .apply(base.borrow())
                    .map_err(|_| modern::odd("params"))?;
                let retry = Box::pin(rounds.retry(&asker, plain.borrow(), asked));
                answering = match self.unless_given_up(retry).await {
                    Ok(Ok(params)) => Some(params),
                    // A2-19: the call fails with what the host said.
                    Ok(Err(refused)) => return Ok(Began::Ended(of_error(refused.into_error()))),
                    Err(began) => return Ok(began),
                };
                if let Some(keeper) = &spec.keeper {
                    keeper.answered().await?;
                }
            }
            let up = core.up().await?;
            let (params, mut rewrite) = match &answering {
                Some(params) => (params, Rewrite::default()),
                None => (&base, first.clone()),
            };
            if form == Form::Task && !up.server.is_modern() {
                // V1-CREATE-1, S4-94.
                rewrite.set.push(("task", task.borrow()));
            }
            let draft = Draft {
                tasks: form == Form::Task,
                rewrite: Some(rewrite),
                headers: core
                    .call_headers(&up, spec.arguments.as_ref(), &spec.tool, &base)
                    .await,
                on_drop: match form {
                    Form::Plain => GiveUp::Cancel,
                    Form::Task => GiveUp::Quietly,
                },
                ..Draft::new(tool::CALL, Some(params.borrow()))
            };
            let id = up.exchange.fresh_id();
            let routes = &core.ears.routes;
            let name = spec.name.clone();
            let _named = name.map(|name| routes.name_request(id.clone(), name));
            let answer = match up.send_as(id, &draft).await {
                Ok(ticket) => {
                    let mut making = Making::new(core, &up, ticket, form);
                    match self.await_answer(core, &mut making, form, cancels).await {
                        Ok(answer) => answer,
                        Err(began) => return Ok(began),
                    }
                }
                Err(fault) => Err(fault),
            };
            if repeats < REPEATS && core.may_repeat(&up, &answer) {
                repeats += 1;
                continue;
            }
            if repeats < REPEATS
                && let Some(pause) = pause_before_repeat(&answer)
            {
                repeats += 1;
                match self.unless_given_up(tokio::time::sleep(pause)).await {
                    Ok(()) => continue,
                    Err(began) => return Ok(began),
                }
            }
            let takes_tasks =
                matches!(up.server.generation, Generation::V1(tasks) if tasks.tools_call);
            let may_be_task = spec.preference != Preference::Forbid && takes_tasks;
            if form == Form::Plain && may_be_task && wants_task(&answer) {
                form = Form::Task;
                continue;
            }
            let answer = match answer {
                Ok(answer) => answer,
                Err(fault) => match modern::explained(fault) {
                    Fault::Error(error) => return Ok(Began::Ended(of_error(error))),
                    fault => return Err(fault.into()),
                },
            };
            match up.read_made(answer, form)? {
                Made::Task(sight, immediate) => {
                    return Ok(Began::Task(up.server.generation, sight, immediate));
                }
                Made::Result(result) => return Ok(Began::Ended(of_result(result))),
                Made::Asks(asked) => pending = Some(asked),
            }
        }
    }

    /// Waits for work during which nothing is under way at the server. `Err` if the call was given up.
    async fn unless_given_up<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Began> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                command = self.owner.command() => match command {
                    Command::Cancel(tell) => {
                        let _ = tell.send(Ok(()));
                        return Err(Began::Cancelled);
                    }
                    Command::Leave => return Err(Began::GivenUp(Unsettled::Left)),
                    Command::Show => self.show().await,
                },
                Some(told) = self.told.recv() => self.hear_progress(told).await,
            }
        }
    }

    /// Waits for the answer to a call, hearing its owner and its progress meanwhile. `Err` if it was given up.
    async fn await_answer(
        &mut self,
        core: &Arc<Core>,
        making: &mut Making,
        form: Form,
        cancels: &mut Cancels,
    ) -> Result<Result<Raw, Fault>, Began> {
        let options = &core.options;
        // A V1 task is made at once, and its making is never cancelled (V1-CANC-2).
        let makes_task = form == Form::Task && !making.up.server.is_modern();
        let patience = if makes_task {
            options.request
        } else {
            options.silence
        };
        let limit = Instant::now() + options.longest_call.max(patience);
        let mut patient_until = Instant::now() + patience;
        loop {
            tokio::select! {
                biased;
                answer = making.answer() => return Ok(answer),
                command = self.owner.command() => match command {
                    // A1-25: kept until the id is known.
                    Command::Cancel(tell) if makes_task => {
                        cancels.push(tell);
                        self.view.cancelling = true;
                        self.show().await;
                    }
                    Command::Cancel(tell) => {
                        let _ = tell.send(Ok(()));
                        return Err(Began::Cancelled);
                    }
                    Command::Leave => return Err(Began::GivenUp(Unsettled::Left)),
                    Command::Show => self.show().await,
                },
                Some(told) = self.told.recv() => {
                    // V1-INIT-9: progress shows that it lives, up to a limit.
                    patient_until = (Instant::now() + patience).min(limit);
                    self.hear_progress(told).await;
                }
                () = tokio::time::sleep_until(patient_until.min(limit)) => {
                    return Err(Began::GivenUp(Fault::TimedOut(patience).into()));
                }
            }
        }
    }

    /// Shows progress that came before the end and was not shown yet.
    async fn hear_last(&mut self, core: &Core, token: Option<&Id>) {
        while let Ok(told) = self.told.try_recv() {
            self.hear_progress(told).await;
        }
        if let Some(missed) = token.and_then(|token| core.ears.routes.take_missed(token)) {
            self.hear_progress(Told::Progress(Box::new(missed))).await;
        }
    }

    pub(super) async fn hear_progress(&mut self, told: Told) {
        if let Told::Progress(progress) = told {
            self.view.progress = Some(*progress);
            self.show().await;
        }
    }

    /// Shows the owner how the task stands, if that has changed.
    pub(super) async fn show_task(&mut self, task: &PeerTask) {
        let shown = self.view.task.as_ref();
        if shown.map(|shown| shown.status) != Some(task.status) {
            audit::moved(&self.view, task);
        }
        if shown != Some(task) {
            self.view.task = Some(task.clone());
            self.show().await;
        }
    }

    /// Shows the owner whether the server answers, if that has changed.
    pub(super) async fn show_outage(&mut self, fault: Option<&Fault>) {
        let before = self.view.outage.as_ref();
        let now = fault.and_then(|fault| Outage::after(before, fault));
        if before != now.as_ref() {
            self.view.outage = now;
            self.show().await;
        }
    }

    /// Shows the owner how the call stands.
    pub(super) async fn show(&mut self) {
        self.owner.changed(&self.view).await;
    }
}

impl Making {
    fn new(core: &Arc<Core>, up: &Arc<Up>, ticket: Ticket, form: Form) -> Self {
        Self {
            ticket: Some(ticket),
            up: up.clone(),
            core: (form == Form::Task).then(|| core.clone()),
            patience: core.options.request,
        }
    }

    async fn answer(&mut self) -> Result<Raw, Fault> {
        match &mut self.ticket {
            Some(ticket) => ticket.wait().await,
            None => Err(Fault::Link(LinkError::Closed)),
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // V1-CANC-1, V2-CANC-1: dropping the ticket of a plain call cancels it.
        let (Some(mut ticket), Some(core)) = (self.ticket.take(), self.core.take()) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !ticket.is_open() {
            return;
        }
        let mut kept = Some(core);
        if self.up.server.is_modern() {
            ticket.withdraw();
            kept = None;
        }
        let late = cancel_late(self.up.clone(), ticket, self.patience);
        runtime.spawn(async move {
            late.await;
            drop(kept);
        });
    }
}

/// Sends the answers to requests of a previous connection as they come. If there is no connection, the observation of the task
/// reports that. In another session the ids belong to other requests, so nothing is sent there.
async fn answer_open(core: &Arc<Core>, task: &str, open: Vec<OpenRequest>) {
    let Ok(up) = core.up().await else { return };
    if !up.exchange.is_resumed() {
        let routes = &core.ears.routes;
        return routes.undelivered(task, LinkError::SessionGone.into());
    }
    for OpenRequest { id, answer } in open {
        let (ears, task) = (core.ears.clone(), task.to_owned());
        let work = async move {
            match answer.await {
                Some(answer) => ears.reply_for(task, answer),
                None => Replied::none(),
            }
        };
        up.exchange.begin_answer(id, Box::pin(work));
    }
}

/// Cancels a task that is not wanted any more as soon as its id is known.
async fn cancel_late(up: Arc<Up>, ticket: Ticket, patience: Duration) {
    let answer = tokio::time::timeout(LATE, ticket.answer()).await;
    let Ok(Ok(answer)) = answer else { return };
    let Ok(Made::Task(sight, _)) = up.read_made(answer, Form::Task) else {
        return;
    };
    let _ = up.cancel(&sight.task.id, patience).await;
}

/// How long to wait before a call is sent again to a server that refused it without acting on it and named a time; `None`
/// if it is not sent again.
fn pause_before_repeat(answer: &Result<Raw, Fault>) -> Option<Duration> {
    let fault = answer.as_ref().err()?;
    let pause = fault.retry_after().filter(|_| fault.nothing_happened());
    pause.filter(|pause| *pause <= LONGEST_PAUSE)
}

/// The call was over before it could be cancelled.
fn finished(cancels: Cancels) {
    for tell in cancels {
        let _ = tell.send(Err(NotCancelled::Finished));
    }
}

impl CallSpec {
    /// The params as they were given, and what is changed in them when they are sent.
    fn params<'a>(&'a self, tool: &'a Raw, token: &'a Raw) -> Result<(Raw, Rewrite<'a>), Fault> {
        let mut rewrite = Rewrite {
            drop: self.without.members,
            drop_meta: self.without.meta,
            set: vec![("name", tool.borrow())],
            set_meta: vec![(meta::PROGRESS_TOKEN, token.borrow())],
        };
        if let Some(arguments) = &self.arguments {
            if !arguments.borrow().is_object() {
                return Err(modern::odd("arguments"));
            }
            rewrite.set.push(("arguments", arguments.borrow()));
        }
        if let Some((key, value)) = &self.meta {
            rewrite.set_meta.push((key, value.borrow()));
        }
        let base = self.params.clone().unwrap_or_else(Raw::empty_object);
        Ok((base, rewrite))
    }
}

/// How often a call is sent again to a server that has not seen it.
const REPEATS: u32 = 3;

/// A server that wants to be left alone for longer refuses the call.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the answer to a call that nobody wants any more is waited for.
const LATE: Duration = Duration::from_secs(600);
