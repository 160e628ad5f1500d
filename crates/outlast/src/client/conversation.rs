//! A conversation that is open. What is said there is said as the server's era and generation have it: this is the only
//! place where they are told apart.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::Id;
use outlast_wire::object::Rewrite;
use outlast_wire::v2::{self, InputRequired, ResultType};
use outlast_wire::{PeerTask, Raw, RawRef, tool};

use super::call::CallForm;
use super::era::ClientDescription;
use super::error::Error;
use super::pending_response::{OnDrop, PendingResponse, SendOptions};
use super::rpc::RpcChannel;
use super::server_description::ServerDescription;
use super::task_report::TaskReport;
use super::{legacy, modern};

/// A conversation that is open.
pub(crate) struct Conversation {
    pub(crate) channel: Arc<RpcChannel>,
    pub(crate) server: ServerDescription,
    /// How every request is framed, in the modern era.
    framing: Option<modern::ModernFraming>,
}

/// A request before it is framed.
#[derive(Clone, Debug)]
pub(crate) struct RequestDraft<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<RawRef<'a>>,
    /// What is changed in the params, where something is.
    pub(crate) rewrite: Option<Rewrite<'a>>,
    /// Whether the request declares the tasks extension, where there is one.
    pub(crate) tasks: bool,
    /// Headers besides those that every request has, where each has some.
    pub(crate) headers: Vec<(String, String)>,
    /// What a legacy server hears if nobody waits for the answer any more.
    pub(crate) on_drop: OnDrop,
}

/// What became of a call.
pub(crate) enum CallResponse {
    /// A task, and what the model may hear meanwhile.
    Task(TaskReport, Option<String>),
    Result(Raw),
    /// Questions first (V2-MRTR-1).
    InputRequired(InputRequired),
}

/// The answer to a request that makes no task.
pub(crate) enum PlainResponse {
    /// As the server sent it.
    Result(Raw),
    /// Questions first (V2-MRTR-1).
    InputRequired(InputRequired),
}

impl<'a> RequestDraft<'a> {
    pub(crate) fn new(method: &'a str, params: Option<RawRef<'a>>) -> Self {
        Self {
            method,
            params,
            rewrite: None,
            tasks: false,
            headers: Vec::new(),
            on_drop: OnDrop::Cancel,
        }
    }

    pub(crate) fn with_tasks(mut self) -> Self {
        self.tasks = true;
        self
    }
}

impl Conversation {
    pub(crate) fn new(
        channel: Arc<RpcChannel>,
        server: ServerDescription,
        description: &ClientDescription,
    ) -> Self {
        Self {
            channel,
            framing: server
                .is_modern()
                .then(|| modern::ModernFraming::new(description)),
            server,
        }
    }

    /// Sends a request.
    pub(crate) async fn send(&self, draft: &RequestDraft<'_>) -> Result<PendingResponse, Error> {
        self.send_with_id(self.channel.fresh_id(), draft).await
    }

    /// Sends a request under an id of [`RpcChannel::fresh_id`].
    pub(crate) async fn send_with_id(
        &self,
        id: Id,
        draft: &RequestDraft<'_>,
    ) -> Result<PendingResponse, Error> {
        match &self.framing {
            None => {
                let send_options = SendOptions {
                    polled: true,
                    ..SendOptions::legacy(draft.on_drop)
                };
                let params = draft.rewrite.as_ref().map(|rewrite| {
                    let params = draft.params.unwrap_or(RawRef::EMPTY_OBJECT);
                    rewrite
                        .apply(params)
                        .map_err(|_| modern::not_an_object("params"))
                });
                let params = params.transpose()?;
                let params = params.as_ref().map(Raw::borrow).or(draft.params);
                self.channel
                    .send_with_id(id, draft.method, params, send_options)
                    .await
            }
            Some(framing) => {
                let (params, mut send_options) = framing.frame(draft)?;
                send_options.polled = true;
                self.channel
                    .send_with_id(id, draft.method, Some(params.borrow()), send_options)
                    .await
            }
        }
    }

    /// Sends a request and waits for its answer, at most as long as `patience`.
    pub(crate) async fn request(
        &self,
        draft: &RequestDraft<'_>,
        timeout: Duration,
    ) -> Result<Raw, Error> {
        let work = async { self.send(draft).await?.answer().await };
        let answered = tokio::time::timeout(timeout, work).await;
        let answered = answered.unwrap_or(Err(Error::TimedOut(timeout)));
        answered.map_err(modern::explain_version_error)
    }

    /// Sends a notification.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> Result<(), Error> {
        let headers = match self.framing {
            None => Vec::new(),
            Some(_) => modern::general_headers(method),
        };
        self.channel.notify(method, params, headers).await
    }

    /// How a task stands.
    pub(crate) async fn poll(&self, task: &str, timeout: Duration) -> Result<TaskReport, Error> {
        match self.framing {
            Some(_) => self.poll_modern(task, timeout).await,
            None => legacy::poll(self, task, timeout)
                .await
                .map(TaskReport::plain),
        }
    }

    /// CancelWaiters a task; says how it stands if the server does.
    pub(crate) async fn cancel(
        &self,
        task: &str,
        timeout: Duration,
    ) -> Result<Option<PeerTask>, Error> {
        if !self.server.generation.cancels() {
            return Err(Error::Unsupported("cancelling tasks".into()));
        }
        match self.framing {
            Some(_) => self.cancel_modern(task, timeout).await.map(|()| None),
            None => legacy::cancel(self, task, timeout).await.map(Some),
        }
    }

    /// Reads the answer to a call that was made in this form.
    pub(crate) fn read_call_response(
        &self,
        answer: Raw,
        form: CallForm,
    ) -> Result<CallResponse, Error> {
        match (&self.framing, form) {
            (None, CallForm::Plain) => Ok(CallResponse::Result(answer)),
            (None, CallForm::Task) => legacy::read_call_response(answer),
            (Some(_), form) => match ResultType::of(answer.borrow()) {
                // V2-CAP-7; V2-RT-6: only where it was declared.
                ResultType::Task if form == CallForm::Task => {
                    let task = v2::read_created(answer.borrow());
                    let task = task.map_err(|error| Error::Malformed(error.to_string()))?;
                    Ok(CallResponse::Task(TaskReport::brief(task), None))
                }
                _ => Ok(match self.read_answer(tool::CALL, answer)? {
                    PlainResponse::Result(result) => CallResponse::Result(result),
                    PlainResponse::InputRequired(asked) => CallResponse::InputRequired(asked),
                }),
            },
        }
    }

    /// Reads the answer to a request that makes no task.
    pub(crate) fn read_answer(&self, method: &str, answer: Raw) -> Result<PlainResponse, Error> {
        if self.framing.is_none() {
            return Ok(PlainResponse::Result(answer));
        }
        // V2-MRTR-1.
        let may_ask = v2::method::MULTI_ROUND_TRIP.contains(&method);
        match ResultType::of(answer.borrow()) {
            ResultType::InputRequired if may_ask => match InputRequired::read(answer.borrow()) {
                Some(asked) => Ok(PlainResponse::InputRequired(asked)),
                None => Err(Error::Malformed("it asks, but nothing".into())),
            },
            _ => modern::check_complete(&answer).map(|()| PlainResponse::Result(answer)),
        }
    }
}
