//! Any request that may take its time: the server can ask while it works, and say how far it is.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::notice::Progress;
use outlast_wire::object::Rewrite;
use outlast_wire::{Raw, RawRef, meta, tool};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::call::Without;
use super::client::Core;
use super::conversation::{Answered, Draft};
use super::error::Fault;
use super::modern::{self, Asker, Rounds};
use super::routes::{LAG, Told};
use super::rpc::Ticket;

/// A request to be made: set it up, then `.await` it for its result. Dropping the future cancels it.
#[must_use = "a request is made when it is awaited"]
pub struct Request {
    core: Arc<Core>,
    method: String,
    params: Option<Raw>,
    name: Option<Arc<str>>,
    progress: Option<Hear>,
    patience: Patience,
    changes: ParamChanges,
    keeps_type: bool,
}

/// Changes of params, made while they are sent.
#[derive(Default)]
pub(crate) struct ParamChanges {
    /// What is not sent.
    pub(crate) without: Without,
    /// Members that are set.
    pub(crate) set: Vec<(&'static str, Raw)>,
    /// Keys of `_meta` that are set.
    pub(crate) set_meta: Vec<(&'static str, Raw)>,
}

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// As long as a call.
    Call,
    /// As long as a request that is answered at once.
    Request,
}

/// Hears how far a request has come.
type Hear = Box<dyn Fn(Progress) + Send + Sync>;

impl Request {
    pub(crate) fn new(core: Arc<Core>, method: &str, params: Option<Raw>) -> Self {
        Self {
            core,
            method: method.to_owned(),
            params,
            name: None,
            progress: None,
            patience: Patience::Call,
            changes: ParamChanges::default(),
            keeps_type: false,
        }
    }

    /// The same for one that is answered at once.
    pub(crate) fn at_once(mut self) -> Self {
        self.patience = Patience::Request;
        self
    }

    /// Gives it a name, as [`Call::named`](super::Call::named).
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sends the params with these changes.
    pub(crate) fn changed(mut self, changes: ParamChanges) -> Self {
        self.changes = changes;
        self
    }

    /// Leaves `resultType` in the result.
    pub(crate) fn keeping_type(mut self) -> Self {
        self.keeps_type = true;
        self
    }

    /// Lets `hear` hear how far it has come.
    pub fn progress(mut self, hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(hear));
        self
    }

    async fn answer(self) -> Result<Raw, Fault> {
        let core = &self.core;
        let (ear, mut told) = mpsc::channel(LAG);
        let token = core.fresh_token();
        let written = token.to_raw();
        let token_sent = self.progress.is_some().then_some(written.borrow());
        let first = self.changes.rewrite(self.params.is_some(), token_sent);
        let routes = &core.ears.routes;
        let _progress = routes.hear_progress(token, ear);
        let empty = Raw::empty_object();
        let base = self.params.as_ref().unwrap_or(&empty);
        // The params of a repetition with input responses.
        let mut answering: Option<Raw> = None;
        let asker = Asker::new(&core.ears, self.name.clone());
        let mut rounds = Rounds::default();
        let mut repeats = 0;
        loop {
            let up = core.up().await?;
            let params = answering.as_ref().or(self.params.as_ref());
            let mut draft = Draft::new(&self.method, params.map(Raw::borrow));
            if answering.is_none() {
                draft.rewrite = first.clone();
            }
            // V2-CAP-1: task methods are for those who declare it; no other answer shall be a task.
            draft.tasks = self.method.starts_with("tasks/");
            if self.method == tool::CALL {
                let called = tool::called(base.borrow()).unwrap_or_default();
                draft.headers = core.call_headers(&up, None, &called, base).await;
            }
            let id = up.exchange.fresh_id();
            let name = self.name.clone();
            let _named = name.map(|name| routes.name_request(id.clone(), name));
            let answer = match up.send_as(id, &draft).await {
                Ok(ticket) => self.wait(ticket, &mut told).await,
                Err(fault) => Err(fault),
            };
            if repeats < REPEATS && core.may_repeat(&up, &answer) {
                repeats += 1;
                continue;
            }
            match up.read_answer(&self.method, answer.map_err(modern::explained)?)? {
                Answered::Result(result) if self.keeps_type => return Ok(result),
                Answered::Result(result) => return Ok(modern::unlabelled(&result)),
                Answered::Asks(asked) => {
                    rounds.another(&asked)?;
                    let plain = first.clone().unwrap_or_default().apply(base.borrow());
                    let plain = plain.map_err(|_| modern::odd("params"))?;
                    let retry = rounds.retry(&asker, plain.borrow(), asked).await;
                    let retry = retry.map_err(|refused| Fault::Error(refused.into_error()))?;
                    answering = Some(retry);
                }
            }
        }
    }

    async fn wait(
        &self,
        mut ticket: Ticket,
        told: &mut mpsc::Receiver<Told>,
    ) -> Result<Raw, Fault> {
        let options = &self.core.options;
        let (silence, longest) = match self.patience {
            Patience::Call => (options.silence, options.longest_call),
            Patience::Request => (options.request, options.request),
        };
        let limit = Instant::now() + longest;
        let mut patient_until = Instant::now() + silence;
        loop {
            tokio::select! {
                biased;
                answer = ticket.wait() => return answer,
                Some(told) = told.recv() => {
                    // V1-INIT-9: progress shows that it lives, up to a limit.
                    patient_until = Instant::now() + silence;
                    if let (Told::Progress(progress), Some(hear)) = (told, &self.progress) {
                        hear(*progress);
                    }
                }
                () = tokio::time::sleep_until(patient_until.min(limit)) => {
                    return Err(Fault::TimedOut(silence));
                }
            }
        }
    }
}

impl ParamChanges {
    /// All changes, with the token under which progress is wanted. `None` if nothing changes.
    fn rewrite<'a>(&'a self, has_params: bool, token: Option<RawRef<'a>>) -> Option<Rewrite<'a>> {
        let borrowed = |all: &'a [(&'static str, Raw)]| {
            let all = all.iter();
            all.map(|(name, value)| (*name, value.borrow())).collect()
        };
        let mut rewrite = Rewrite {
            drop: self.without.members,
            drop_meta: self.without.meta,
            set: borrowed(&self.set),
            set_meta: borrowed(&self.set_meta),
        };
        let token = token.map(|token| (meta::PROGRESS_TOKEN, token));
        rewrite.set_meta.extend(token);
        let sets = !rewrite.set.is_empty() || !rewrite.set_meta.is_empty();
        let drops = !rewrite.drop.is_empty() || !rewrite.drop_meta.is_empty();
        (sets || has_params && drops).then_some(rewrite)
    }
}

impl IntoFuture for Request {
    type Output = Result<Raw, Fault>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

/// How often a request is sent again to a server that has not seen it.
const REPEATS: u32 = 3;
