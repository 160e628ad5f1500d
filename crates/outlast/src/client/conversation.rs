//! A conversation that is open. What is said there is said as the server's era and generation have it: this is the only
//! place where they are told apart.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::Id;
use outlast_wire::object::Rewrite;
use outlast_wire::v2::{self, InputRequired, ResultType};
use outlast_wire::{PeerTask, Raw, RawRef, tool};

use super::call::Form;
use super::era::Introduction;
use super::error::Fault;
use super::rpc::{Exchange, GiveUp, Ticket, Wrap};
use super::server_description::Server;
use super::task_report::Sight;
use super::{legacy, modern};

/// A conversation that is open.
pub(crate) struct Up {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) server: Server,
    /// How every request is framed, in the modern era.
    manner: Option<modern::Manner>,
}

/// A request before it is framed.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<RawRef<'a>>,
    /// What is changed in the params, where something is.
    pub(crate) rewrite: Option<Rewrite<'a>>,
    /// Whether the request declares the tasks extension, where there is one.
    pub(crate) tasks: bool,
    /// Headers besides those that every request has, where each has some.
    pub(crate) headers: Vec<(String, String)>,
    /// What a legacy server hears if nobody waits for the answer any more.
    pub(crate) on_drop: GiveUp,
}

/// What became of a call.
pub(crate) enum Made {
    /// A task, and what the model may hear meanwhile.
    Task(Sight, Option<String>),
    Result(Raw),
    /// Questions first (V2-MRTR-1).
    Asks(InputRequired),
}

/// The answer to a request that makes no task.
pub(crate) enum Answered {
    /// As the server sent it.
    Result(Raw),
    /// Questions first (V2-MRTR-1).
    Asks(InputRequired),
}

impl<'a> Draft<'a> {
    pub(crate) fn new(method: &'a str, params: Option<RawRef<'a>>) -> Self {
        Self {
            method,
            params,
            rewrite: None,
            tasks: false,
            headers: Vec::new(),
            on_drop: GiveUp::Cancel,
        }
    }

    pub(crate) fn with_tasks(mut self) -> Self {
        self.tasks = true;
        self
    }
}

impl Up {
    pub(crate) fn new(exchange: Arc<Exchange>, server: Server, we: &Introduction) -> Self {
        Self {
            exchange,
            manner: server.is_modern().then(|| modern::Manner::new(we)),
            server,
        }
    }

    /// Sends a request.
    pub(crate) async fn send(&self, draft: &Draft<'_>) -> Result<Ticket, Fault> {
        self.send_as(self.exchange.fresh_id(), draft).await
    }

    /// Sends a request under an id of [`Exchange::fresh_id`].
    pub(crate) async fn send_as(&self, id: Id, draft: &Draft<'_>) -> Result<Ticket, Fault> {
        match &self.manner {
            None => {
                let wrap = Wrap {
                    polled: true,
                    ..Wrap::legacy(draft.on_drop)
                };
                let params = draft.rewrite.as_ref().map(|rewrite| {
                    let params = draft.params.unwrap_or(RawRef::EMPTY_OBJECT);
                    rewrite.apply(params).map_err(|_| modern::odd("params"))
                });
                let params = params.transpose()?;
                let params = params.as_ref().map(Raw::borrow).or(draft.params);
                self.exchange.send_as(id, draft.method, params, wrap).await
            }
            Some(manner) => {
                let (params, mut wrap) = manner.frame(draft)?;
                wrap.polled = true;
                self.exchange
                    .send_as(id, draft.method, Some(params.borrow()), wrap)
                    .await
            }
        }
    }

    /// Sends a request and waits for its answer, at most as long as `patience`.
    pub(crate) async fn request(
        &self,
        draft: &Draft<'_>,
        patience: Duration,
    ) -> Result<Raw, Fault> {
        let work = async { self.send(draft).await?.answer().await };
        let answered = tokio::time::timeout(patience, work).await;
        let answered = answered.unwrap_or(Err(Fault::TimedOut(patience)));
        answered.map_err(modern::explained)
    }

    /// Sends a notification.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> Result<(), Fault> {
        let headers = match self.manner {
            None => Vec::new(),
            Some(_) => modern::general_headers(method),
        };
        self.exchange.notify(method, params, headers).await
    }

    /// How a task stands.
    pub(crate) async fn look(&self, task: &str, patience: Duration) -> Result<Sight, Fault> {
        match self.manner {
            Some(_) => self.look_modern(task, patience).await,
            None => legacy::look(self, task, patience).await.map(Sight::plain),
        }
    }

    /// Cancels a task; says how it stands if the server does.
    pub(crate) async fn cancel(
        &self,
        task: &str,
        patience: Duration,
    ) -> Result<Option<PeerTask>, Fault> {
        if !self.server.generation.cancels() {
            return Err(Fault::Unsupported("cancelling tasks".into()));
        }
        match self.manner {
            Some(_) => self.cancel_modern(task, patience).await.map(|()| None),
            None => legacy::cancel(self, task, patience).await.map(Some),
        }
    }

    /// Reads the answer to a call that was made in this form.
    pub(crate) fn read_made(&self, answer: Raw, form: Form) -> Result<Made, Fault> {
        match (&self.manner, form) {
            (None, Form::Plain) => Ok(Made::Result(answer)),
            (None, Form::Task) => legacy::read_made(answer),
            (Some(_), form) => match ResultType::of(answer.borrow()) {
                // V2-CAP-7; V2-RT-6: only where it was declared.
                ResultType::Task if form == Form::Task => {
                    let task = v2::read_created(answer.borrow());
                    let task = task.map_err(|error| Fault::Malformed(error.to_string()))?;
                    Ok(Made::Task(Sight::brief(task), None))
                }
                _ => Ok(match self.read_answer(tool::CALL, answer)? {
                    Answered::Result(result) => Made::Result(result),
                    Answered::Asks(asked) => Made::Asks(asked),
                }),
            },
        }
    }

    /// Reads the answer to a request that makes no task.
    pub(crate) fn read_answer(&self, method: &str, answer: Raw) -> Result<Answered, Fault> {
        if self.manner.is_none() {
            return Ok(Answered::Result(answer));
        }
        // V2-MRTR-1.
        let may_ask = v2::method::MULTI_ROUND_TRIP.contains(&method);
        match ResultType::of(answer.borrow()) {
            ResultType::InputRequired if may_ask => match InputRequired::read(answer.borrow()) {
                Some(asked) => Ok(Answered::Asks(asked)),
                None => Err(Fault::Malformed("it asks, but nothing".into())),
            },
            _ => modern::check_complete(&answer).map(|()| Answered::Result(answer)),
        }
    }
}
