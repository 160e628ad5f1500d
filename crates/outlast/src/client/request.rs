//! The builder of any request. While the request runs, the server may send input requests and
//! progress.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::notice::Progress;
use outlast_wire::object::Rewrite;
use outlast_wire::{Raw, RawRef, meta, tool};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::call::OmittedParams;
use super::client::Core;
use super::conversation::{PlainResponse, RequestDraft};
use super::error::Error;
use super::modern::{self, InputDispatcher, InputRounds};
use super::pending_response::PendingResponse;
use super::routes::{CallEvent, EVENT_CAPACITY};

/// A request that is not sent yet. Configure it, then `.await` it to get its result. Dropping the
/// future cancels it.
#[must_use = "a request is sent when it is awaited"]
pub struct Request {
    core: Arc<Core>,
    method: String,
    params: Option<Raw>,
    name: Option<Arc<str>>,
    progress: Option<OnProgress>,
    timeout: RequestTimeout,
    changes: ParamChanges,
    keeps_type: bool,
}

/// Changes that are made to the params when they are sent.
#[derive(Default)]
pub(crate) struct ParamChanges {
    /// Members that are not sent.
    pub(crate) omit: OmittedParams,
    /// Members that are set.
    pub(crate) set: Vec<(&'static str, Raw)>,
    /// Keys of `_meta` that are set.
    pub(crate) set_meta: Vec<(&'static str, Raw)>,
}

/// Which time limit applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestTimeout {
    /// The limits of a call.
    Call,
    /// The limit of a short request.
    Request,
}

/// Receives the progress of a request.
type OnProgress = Box<dyn Fn(Progress) + Send + Sync>;

impl Request {
    pub(crate) fn new(core: Arc<Core>, method: &str, params: Option<Raw>) -> Self {
        Self {
            core,
            method: method.to_owned(),
            params,
            name: None,
            progress: None,
            timeout: RequestTimeout::Call,
            changes: ParamChanges::default(),
            keeps_type: false,
        }
    }

    /// Applies the limit of a short request.
    pub(crate) fn with_short_timeout(mut self) -> Self {
        self.timeout = RequestTimeout::Request;
        self
    }

    /// Names the request, as [`Call::named`](super::Call::named) does.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sends the params with these changes.
    pub(crate) fn changed(mut self, changes: ParamChanges) -> Self {
        self.changes = changes;
        self
    }

    /// Keeps `resultType` in the result.
    pub(crate) fn keeping_type(mut self) -> Self {
        self.keeps_type = true;
        self
    }

    /// Reports progress to `on_progress`.
    pub fn progress(mut self, on_progress: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(on_progress));
        self
    }

    async fn send(self) -> Result<Raw, Error> {
        let core = &self.core;
        let (event_sender, mut events) = mpsc::channel(EVENT_CAPACITY);
        let token = core.fresh_token();
        let written = token.to_raw();
        let token_sent = self.progress.is_some().then_some(written.borrow());
        let first = self.changes.rewrite(self.params.is_some(), token_sent);
        let routes = &core.inbound.routes;
        let _progress = routes.route_progress(token, event_sender);
        let empty = Raw::empty_object();
        let base = self.params.as_ref().unwrap_or(&empty);
        // The params of a retry with input responses.
        let mut retry_params: Option<Raw> = None;
        let dispatcher = InputDispatcher::new(&core.inbound, self.name.clone());
        let mut rounds = InputRounds::default();
        let mut retries = 0;
        loop {
            let conversation = core.conversation().await?;
            let params = retry_params.as_ref().or(self.params.as_ref());
            let mut draft = RequestDraft::new(&self.method, params.map(Raw::borrow));
            if retry_params.is_none() {
                draft.rewrite = first.clone();
            }
            // V2-CAP-1: task methods require the declared extension; other requests must not become
            // tasks.
            draft.tasks = self.method.starts_with("tasks/");
            if self.method == tool::CALL {
                let called = tool::called(base.borrow()).unwrap_or_default();
                draft.headers = core.call_headers(&conversation, None, &called, base).await;
            }
            let id = conversation.channel.fresh_id();
            let name = self.name.clone();
            let _named = name.map(|name| routes.name_request(id.clone(), name));
            let response = match conversation.send_with_id(id, &draft).await {
                Ok(pending) => self.wait(pending, &mut events).await,
                Err(error) => Err(error),
            };
            if retries < MAX_RETRIES && core.may_retry(&conversation, &response) {
                retries += 1;
                continue;
            }
            match conversation.read_response(
                &self.method,
                response.map_err(modern::explain_version_error)?,
            )? {
                PlainResponse::Result(result) if self.keeps_type => return Ok(result),
                PlainResponse::Result(result) => return Ok(modern::without_result_type(&result)),
                PlainResponse::InputRequired(round) => {
                    rounds.record_round(&round)?;
                    let plain = first.clone().unwrap_or_default().apply(base.borrow());
                    let plain = plain.map_err(|_| modern::not_an_object("params"))?;
                    let retry = rounds.retry(&dispatcher, plain.borrow(), round).await;
                    let retry = retry.map_err(|refused| Error::Peer(refused.into_error()))?;
                    retry_params = Some(retry);
                }
            }
        }
    }

    async fn wait(
        &self,
        mut pending: PendingResponse,
        events: &mut mpsc::Receiver<CallEvent>,
    ) -> Result<Raw, Error> {
        let options = &self.core.options;
        let (silence, longest) = match self.timeout {
            RequestTimeout::Call => (options.idle_timeout, options.call_timeout),
            RequestTimeout::Request => (options.request_timeout, options.request_timeout),
        };
        let limit = Instant::now() + longest;
        let mut idle_until = Instant::now() + silence;
        loop {
            tokio::select! {
                biased;
                response = pending.wait() => return response,
                Some(events) = events.recv() => {
                    // V1-INIT-9: progress restarts the idle timeout, up to the total limit.
                    idle_until = Instant::now() + silence;
                    if let (CallEvent::Progress(progress), Some(on_progress)) = (events, &self.progress) {
                        on_progress(*progress);
                    }
                }
                () = tokio::time::sleep_until(idle_until.min(limit)) => {
                    return Err(Error::TimedOut(silence));
                }
            }
        }
    }
}

impl ParamChanges {
    /// All changes, including the progress token. `None` if nothing changes.
    fn rewrite<'a>(&'a self, has_params: bool, token: Option<RawRef<'a>>) -> Option<Rewrite<'a>> {
        let borrowed = |all: &'a [(&'static str, Raw)]| {
            let all = all.iter();
            all.map(|(name, value)| (*name, value.borrow())).collect()
        };
        let mut rewrite = Rewrite {
            drop: self.omit.members,
            drop_meta: self.omit.meta,
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
    type Output = Result<Raw, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// How often a request is sent again if the server has not executed it.
const MAX_RETRIES: u32 = 3;
