//! What a tool can do while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_engine::engine::{CallContext, InputError, Progress};
use outlast_engine::{
    InputKey, InputKind, InputRequest, InputResponse, InputTiming, Origin, TaskId,
};
use outlast_wire::Raw;
use outlast_wire::log::{Level, Log};
use serde::Serialize;
use serde_json::{Value, json};

use crate::answers;
use crate::server::RequestParts;

/// A tool's way to its caller. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    call: CallContext,
    /// Whether the tool looks after cancellation itself.
    listens: Arc<AtomicBool>,
    /// Whether progress is the status message of the task, too.
    progress_is_status: bool,
}

/// Why a question brought no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It could not be put, or was taken back; a caller without the capability is the first case.
    Not(InputError),
    /// The caller answered with this JSON-RPC error.
    Refused(Raw),
}

impl ToolContext {
    pub(crate) fn new(call: CallContext, origin: &Origin) -> Self {
        Self {
            progress_is_status: RequestParts::progress_is_status(
                &call,
                origin.progress_token.is_some(),
            ),
            call,
            listens: Arc::default(),
        }
    }

    /// The id of the call: that of its task, if it is one or becomes one.
    pub fn id(&self) -> TaskId {
        self.call.id()
    }

    /// Says where the work stands.
    pub fn status(&self, message: &str) {
        self.call.status(message);
    }

    /// Says that `done` of `total` is done.
    pub fn progress(&self, done: f64, total: f64) {
        self.report(Progress {
            done,
            total: Some(total),
            message: None,
        });
    }

    /// Says how far the work has come. A caller that gets no progress for the whole life of a task gets it as the status
    /// message of the task.
    pub fn report(&self, progress: Progress) {
        if self.progress_is_status {
            self.call.progress_as_status(&progress);
        }
        self.call.progress(progress);
    }

    /// Says something to whoever listens: a text, or any JSON. It is not kept; a client gets it from the level on
    /// that it wants, under the name of the tool.
    pub fn log(&self, level: Level, data: impl Serialize) {
        match Raw::encode(&data) {
            Ok(data) => self.call.log(Log {
                level,
                logger: self.call.tool(),
                data,
            }),
            Err(error) => tracing::warn!(%error, "a log message is no JSON"),
        }
    }

    /// Asks the caller's person to fill in a form: the parameters of `elicitation/create`.
    pub async fn elicit(&self, form: Value) -> Result<Value, Asked> {
        let kind = match form["mode"].as_str() {
            Some("url") => InputKind::ElicitUrl,
            _ => InputKind::ElicitForm,
        };
        self.ask(kind, form).await
    }

    /// Asks the caller's model: the parameters of `sampling/createMessage`.
    pub async fn sample(&self, params: Value) -> Result<Value, Asked> {
        let kind = match params.get("tools") {
            Some(_) => InputKind::SampleWithTools,
            None => InputKind::Sample,
        };
        self.ask(kind, params).await
    }

    /// Asks for the folders the caller works in.
    pub async fn roots(&self) -> Result<Value, Asked> {
        self.ask(InputKind::Roots, json!({})).await
    }

    /// Asks before any work is done; where the protocol has it, the caller repeats its call instead.
    pub async fn ask_first(&self, kind: InputKind, params: Value) -> Result<Value, Asked> {
        let mut question = question(kind, &params);
        question.timing = InputTiming::BeforeWork;
        let params = question.params.clone();
        opened(
            kind,
            params.as_ref(),
            self.call.request_input(question).await,
        )
    }

    /// The same under a key that the tool chooses and uses once: a caller that knows it may answer before it is
    /// asked.
    pub async fn ask_first_as(
        &self,
        key: &str,
        kind: InputKind,
        params: Value,
    ) -> Result<Value, Asked> {
        let mut question = question(kind, &params);
        question.timing = InputTiming::BeforeWork;
        let params = question.params.clone();
        let answered = self
            .call
            .request_input_as(InputKey::new(key), question)
            .await;
        let answered = answered.map_err(Asked::Not)?;
        let answer = answered.response.clone();
        if let Err(error) = answered.confirm().await {
            tracing::info!(%error, "an answer is kept although it was used");
        }
        opened(kind, params.as_ref(), Ok(answer))
    }

    /// Whether the caller wants the work to stop.
    pub fn is_cancelled(&self) -> bool {
        self.listens.store(true, Ordering::Relaxed);
        self.call.is_cancelled()
    }

    /// Resolves when the caller wants the work to stop. A tool that never asks is dropped then; one that
    /// does has time to tidy up.
    pub async fn cancelled(&self) {
        self.listens.store(true, Ordering::Relaxed);
        self.call.cancelled().await;
    }

    /// Resolves when the caller wants the work to stop and the tool does not look after that itself.
    pub(crate) async fn given_up(&self) {
        self.call.cancelled().await;
        if self.listens.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn ask(&self, kind: InputKind, params: Value) -> Result<Value, Asked> {
        let question = question(kind, &params);
        let params = question.params.clone();
        opened(
            kind,
            params.as_ref(),
            self.call.request_input(question).await,
        )
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Not(error) => error.fmt(f),
            Self::Refused(error) => write!(f, "the caller refused: {}", error.as_str()),
        }
    }
}

fn question(kind: InputKind, params: &Value) -> InputRequest {
    InputRequest::new(kind, Raw::encode(params).ok())
}

fn opened(
    kind: InputKind,
    params: Option<&Raw>,
    answer: Result<InputResponse, InputError>,
) -> Result<Value, Asked> {
    match answers::checked(kind, params, answer.map_err(Asked::Not)?) {
        InputResponse::Result(result) => Ok(result.open().unwrap_or_default()),
        InputResponse::Error(error) => Err(Asked::Refused(error)),
    }
}
