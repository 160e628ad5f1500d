//! Any request that may take its time: the server can ask while it works, and say how far it is.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::notice::Progress;
use outlast_wire::{Raw, meta, tool};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::Core;
use super::exchange::Ticket;
use super::fault::Fault;
use super::modern::{self, Asker, Rounds};
use super::routes::{LAG, Told};
use super::up::{Answered, Draft};

/// A request to be made: set it up, then `.await` it for its result. Dropping the future cancels it.
#[must_use = "a request is made when it is awaited"]
pub struct Request {
    core: Arc<Core>,
    method: String,
    params: Option<Raw>,
    name: Option<Arc<str>>,
    progress: Option<Hear>,
    patience: Patience,
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

    /// Lets `hear` hear how far it has come.
    pub fn progress(mut self, hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(hear));
        self
    }

    async fn answer(self) -> Result<Raw, Fault> {
        let core = &self.core;
        let (ear, mut told) = mpsc::channel(LAG);
        let token = core.fresh_token();
        let params = match &self.progress {
            Some(_) => {
                let params = self.params.clone().unwrap_or_else(Raw::empty_object);
                let odd = |_| Fault::Malformed("params must be an object".into());
                let value = token.to_raw();
                let marked = meta::set(params.borrow(), meta::PROGRESS_TOKEN, value.borrow());
                Some(marked.map_err(odd)?)
            }
            None => self.params.clone(),
        };
        let routes = &core.ears.routes;
        let _progress = routes.hear_progress(token, ear);
        let first = params.clone().unwrap_or_else(Raw::empty_object);
        let mut said = params;
        let asker = Asker::new(&core.ears, self.name.clone());
        let mut rounds = Rounds::default();
        let mut repeats = 0;
        loop {
            let up = core.up().await?;
            let mut draft = Draft::new(&self.method, said.as_ref().map(Raw::borrow));
            // V2-CAP-1: task methods are for those who declare it; no other answer shall be a task.
            draft.tasks = self.method.starts_with("tasks/");
            if self.method == tool::CALL {
                let called = tool::called(first.borrow()).unwrap_or_default();
                draft.headers = core.call_headers(&up, None, &called, &first).await;
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
                Answered::Result(result) => return Ok(modern::unlabelled(&result)),
                Answered::Asks(asked) => {
                    rounds.another(&asked)?;
                    let retry = rounds.retry(&asker, first.borrow(), asked).await;
                    said = Some(retry.map_err(|refused| Fault::Error(refused.into_error()))?);
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

impl IntoFuture for Request {
    type Output = Result<Raw, Fault>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

/// How often a request is sent again to a server that has not seen it.
const REPEATS: u32 = 3;
