//! The context of a running tool: status, progress, logs, input requests and cancellation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use outlast_engine::engine::{CallContext, DetachedTask, InputError, Progress};
use outlast_engine::{
    InputKey, InputKind, InputRequest, InputResponse, InputTiming, Origin, TaskId,
};
use outlast_wire::Raw;
use outlast_wire::log::{Level, Log};
use serde::Serialize;
use serde_json::{Value, json};

use crate::input_check;
use crate::server::RequestParts;

/// Connects a running tool to its caller. Cheap to clone.
///
/// ```
/// use outlast::prelude::*;
///
/// let count = Tool::new("count", "Counts to ten", |_, cx| async move {
///     for n in 1..=10 {
///         if cx.is_cancelled() {
///             return Err("stopped".into());
///         }
///         cx.progress(n.into(), 10.0);
///         cx.status(&format!("at {n}"));
///     }
///     Ok(text("ten"))
/// });
/// # drop(count);
/// ```
#[derive(Clone)]
pub struct ToolContext {
    pub(super) call: CallContext,
    /// The detached task, if the tool has given its work away.
    pub(super) detached: Arc<OnceLock<DetachedTask>>,
    /// Whether the tool handles cancellation itself.
    handles_cancellation: Arc<AtomicBool>,
    /// Whether progress is also the status message of the task.
    progress_is_status: bool,
}

/// Why an input request returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// It could not be sent, for example because the client lacks the capability, or it was
    /// withdrawn.
    #[error(transparent)]
    NotSent(InputError),
    /// The client responded with this JSON-RPC error.
    #[error("the client responded with an error: {}", .0.as_str())]
    Rejected(Raw),
    /// The type cannot be a form or a request; the text says why.
    #[error("the type cannot be sent as an input request: {0}")]
    NotAForm(String),
    /// The client's response does not fit the type; the text says where.
    #[error("the response of the client does not fit the type: {0}")]
    Unreadable(String),
}

impl ToolContext {
    pub(crate) fn new(call: CallContext, origin: &Origin) -> Self {
        Self {
            progress_is_status: RequestParts::progress_is_status(
                &call,
                origin.progress_token.is_some(),
            ),
            call,
            detached: Arc::default(),
            handles_cancellation: Arc::default(),
        }
    }

    /// The id of the call. If the call is or becomes a task, it is the id of the task.
    pub fn id(&self) -> TaskId {
        self.call.id()
    }

    /// Sets the status message of the task.
    pub fn status(&self, message: &str) {
        self.call.status(message);
    }

    /// Reports progress.
    pub fn progress(&self, done: f64, total: f64) {
        self.report(Progress {
            done,
            total: Some(total),
            message: None,
        });
    }

    /// Reports progress. A client that gets no progress notifications for its tasks gets it as the
    /// status message.
    pub fn report(&self, progress: Progress) {
        if self.progress_is_status {
            self.call.progress_as_status(&progress);
        }
        self.call.progress(progress);
    }

    /// Sends a log message: a text, or any JSON. It is not stored. A client gets it, with the tool
    /// as logger, if the level is at least the one that it has set.
    pub fn log(&self, level: Level, data: impl Serialize) {
        match Raw::encode(&data) {
            Ok(data) => self.call.log(Log {
                level,
                logger: self.call.tool(),
                data,
            }),
            Err(error) => tracing::warn!(%error, "could not encode a log message as JSON"),
        }
    }

    /// Asks the user of the client. `form` is the params of `elicitation/create`.
    pub async fn elicit_raw(&self, form: Value) -> Result<Value, ElicitError> {
        let kind = match form["mode"].as_str() {
            Some("url") => InputKind::ElicitUrl,
            _ => InputKind::ElicitForm,
        };
        self.request_input(kind, form).await
    }

    /// Asks the model of the client. `params` is the params of `sampling/createMessage`.
    pub async fn sample_raw(&self, params: Value) -> Result<Value, ElicitError> {
        let kind = match params.get("tools") {
            Some(_) => InputKind::SampleWithTools,
            None => InputKind::Sample,
        };
        self.request_input(kind, params).await
    }

    /// Requests the root folders of the client.
    pub async fn roots(&self) -> Result<Value, ElicitError> {
        self.request_input(InputKind::Roots, json!({})).await
    }

    /// Sends an input request before any work is done. If the protocol supports it, the client gets
    /// the request as the response to its call and repeats the call.
    pub async fn request_input_first(
        &self,
        kind: InputKind,
        params: Value,
    ) -> Result<Value, ElicitError> {
        let mut request = request(kind, &params);
        request.timing = InputTiming::BeforeWork;
        let params = request.params.clone();
        to_value(
            kind,
            params.as_ref(),
            self.call.request_input(request).await,
        )
    }

    /// Like [`Self::request_input_first`], under a key that the tool chooses and uses once. A
    /// client that knows the key can send the response with its call.
    pub async fn request_input_first_as(
        &self,
        key: &str,
        kind: InputKind,
        params: Value,
    ) -> Result<Value, ElicitError> {
        let mut request = request(kind, &params);
        request.timing = InputTiming::BeforeWork;
        let params = request.params.clone();
        let answered = self
            .call
            .request_input_as(InputKey::new(key), request)
            .await;
        let answered = answered.map_err(ElicitError::NotSent)?;
        let answer = answered.response.clone();
        if let Err(error) = answered.confirm().await {
            tracing::info!(%error, "could not confirm an input response; it stays stored");
        }
        to_value(kind, params.as_ref(), Ok(answer))
    }

    /// Whether the caller has cancelled the call.
    pub fn is_cancelled(&self) -> bool {
        self.handles_cancellation.store(true, Ordering::Relaxed);
        self.call.is_cancelled()
    }

    /// Resolves when the caller cancels the call. A tool that calls this or [`Self::is_cancelled`]
    /// has time for cleanup; any other tool is dropped.
    pub async fn cancelled(&self) {
        self.handles_cancellation.store(true, Ordering::Relaxed);
        self.call.cancelled().await;
    }

    /// Resolves when the caller cancels the call and the tool does not handle cancellation itself.
    pub(crate) async fn cancelled_unhandled(&self) {
        self.call.cancelled().await;
        if self.handles_cancellation.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn request_input(&self, kind: InputKind, params: Value) -> Result<Value, ElicitError> {
        let request = request(kind, &params);
        let params = request.params.clone();
        to_value(
            kind,
            params.as_ref(),
            self.call.request_input(request).await,
        )
    }
}

fn request(kind: InputKind, params: &Value) -> InputRequest {
    InputRequest::new(kind, Raw::encode(params).ok())
}

fn to_value(
    kind: InputKind,
    params: Option<&Raw>,
    answer: Result<InputResponse, InputError>,
) -> Result<Value, ElicitError> {
    match input_check::checked(kind, params, answer.map_err(ElicitError::NotSent)?) {
        InputResponse::Result(result) => Ok(result.open().unwrap_or_default()),
        InputResponse::Error(error) => Err(ElicitError::Rejected(error)),
    }
}
