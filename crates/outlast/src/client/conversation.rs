//! An open conversation with a server. It frames requests and reads responses for the server's era
//! and generation; no other module distinguishes them.

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

/// An open conversation with a server.
pub(crate) struct Conversation {
    pub(crate) channel: Arc<RpcChannel>,
    pub(crate) server: ServerDescription,
    /// The framing of requests in the modern era; `None` in the legacy era.
    framing: Option<modern::ModernFraming>,
}

/// A request before it is framed.
#[derive(Clone, Debug)]
pub(crate) struct RequestDraft<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<RawRef<'a>>,
    /// Changes that are made to the params, if any.
    pub(crate) rewrite: Option<Rewrite<'a>>,
    /// Whether the request declares the tasks extension, in the modern era.
    pub(crate) tasks: bool,
    /// Additional headers, where the transport has headers.
    pub(crate) headers: Vec<(String, String)>,
    /// What is sent to a legacy server if the request is dropped before its response.
    pub(crate) on_drop: OnDrop,
}

/// The response to a call.
pub(crate) enum CallResponse {
    /// A task, and the text for the model until it ends.
    Task(TaskReport, Option<String>),
    Result(Raw),
    /// Input requests that precede the result (V2-MRTR-1).
    InputRequired(InputRequired),
}

/// The response to a request that creates no task.
pub(crate) enum PlainResponse {
    /// The result as the server sent it.
    Result(Raw),
    /// Input requests that precede the result (V2-MRTR-1).
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

    /// Sends a request with an id from [`RpcChannel::fresh_id`].
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

    /// Sends a request and waits up to `timeout` for its response.
    pub(crate) async fn request(
        &self,
        draft: &RequestDraft<'_>,
        timeout: Duration,
    ) -> Result<Raw, Error> {
        let work = async { self.send(draft).await?.response().await };
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

    /// Polls a task.
    pub(crate) async fn poll(&self, task: &str, timeout: Duration) -> Result<TaskReport, Error> {
        match self.framing {
            Some(_) => self.poll_modern(task, timeout).await,
            None => legacy::poll(self, task, timeout)
                .await
                .map(TaskReport::plain),
        }
    }

    /// Cancels a task. Returns the task if the server sends it.
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

    /// Reads the response to a call of this form.
    pub(crate) fn read_call_response(
        &self,
        response: Raw,
        form: CallForm,
    ) -> Result<CallResponse, Error> {
        match (&self.framing, form) {
            (None, CallForm::Plain) => Ok(CallResponse::Result(response)),
            (None, CallForm::Task) => legacy::read_call_response(response),
            (Some(_), form) => match ResultType::of(response.borrow()) {
                // V2-CAP-7; V2-RT-6: a task is valid only if the request allowed one.
                ResultType::Task if form == CallForm::Task => {
                    let task = v2::read_created(response.borrow());
                    let task = task.map_err(|error| Error::Malformed(error.to_string()))?;
                    Ok(CallResponse::Task(TaskReport::brief(task), None))
                }
                _ => Ok(match self.read_response(tool::CALL, response)? {
                    PlainResponse::Result(result) => CallResponse::Result(result),
                    PlainResponse::InputRequired(input) => CallResponse::InputRequired(input),
                }),
            },
        }
    }

    /// Reads the response to a request that creates no task.
    pub(crate) fn read_response(
        &self,
        method: &str,
        response: Raw,
    ) -> Result<PlainResponse, Error> {
        if self.framing.is_none() {
            return Ok(PlainResponse::Result(response));
        }
        // V2-MRTR-1.
        let may_ask = v2::method::MULTI_ROUND_TRIP.contains(&method);
        match ResultType::of(response.borrow()) {
            ResultType::InputRequired if may_ask => match InputRequired::read(response.borrow()) {
                Some(input) => Ok(PlainResponse::InputRequired(input)),
                None => Err(Error::Malformed(
                    "`input_required` result without input requests".into(),
                )),
            },
            _ => modern::check_complete(&response).map(|()| PlainResponse::Result(response)),
        }
    }
}
