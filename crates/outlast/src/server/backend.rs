//! The backend: what the server side serves.
//!
//! The server side knows sessions, tasks and streams, and nothing of what it serves. Tools of this
//! process, an rmcp server and an upstream server are each a [`Backend`] for the server side and a
//! [`Runner`](outlast_engine::engine::Runner) for the engine: the backend describes what there is,
//! the runner runs it.
//!
//! | the client sends | the server side uses |
//! |---|---|
//! | `initialize` | [`Backend::describe`] |
//! | `tools/list` | [`Backend::list_tools`] |
//! | `tools/call` | [`Backend::prepare`], then the engine with [`PreparedCall::runner`] |
//! | another request, if [`Backend::runner_for`] names a runner | the engine with this runner |
//! | another request that is not about tasks | [`Backend::request`] |
//! | any other notification | [`Backend::notification`] |

use std::any::Any;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use outlast_engine::engine::CallContext;
use outlast_engine::task::ResumeState;
use outlast_engine::{InputKinds, Origin, Outcome, RetryClass};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, RawRef, codes};

use super::{ClientHandle, IncomingRequest, McpServer, Reply, TaskPolicy, WaitPolicy};

/// What the server side serves. No method depends on the era: the server side adds and removes what
/// exists in one era only.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Describes the server to this client. Called once for each session, and again when a session
    /// is restored after a restart.
    async fn describe(&self, client: &Arc<ClientHandle>)
    -> Result<BackendDescription, ErrorObject>;

    /// Whether any tool can run as a task, if that is known without a request to an upstream.
    fn has_tasks(&self, client: &ClientHandle) -> Option<bool> {
        let _ = client;
        None
    }

    /// A page of tools: the result of `tools/list`. A tool has `execution.taskSupport` unless it
    /// never runs as a task.
    async fn list_tools(&self, client: &Arc<ClientHandle>, params: Option<&Raw>) -> Reply;

    /// Prepares one tool call: how the tool may be called, and what its runner needs. `None` if the
    /// tool does not exist.
    async fn prepare(
        &self,
        client: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject>;

    /// Starts a prepared call before its task is stored. Called only if [`PreparedCall::prestarts`]
    /// is set. The server decides at once whether it accepts the call; `Err` is its rejection. The
    /// task is kept for `ttl` milliseconds. The runner continues with what this method put into the
    /// reservation.
    async fn prestart(
        &self,
        reservation: &Reservation,
        call: &Origin,
        ttl: u64,
    ) -> Result<PrestartInfo, Outcome> {
        let _ = (reservation, call, ttl);
        Ok(PrestartInfo::default())
    }

    /// The runner by which the engine executes requests of this method like calls, so that they can
    /// send input requests and progress. Other requests go to [`Backend::request`].
    fn runner_for(&self, method: &str) -> Option<Arc<str>> {
        let _ = method;
        None
    }

    /// The runner of all calls of this backend, if several backends share an engine. Its endpoint
    /// lists only tasks of that runner and accepts only sessions that were created there.
    fn only_runner(&self) -> Option<Arc<str>> {
        None
    }

    /// Whether a connection to it has state, so that all requests of one owner should reach the
    /// same node. It must be the same on every node, and must not change.
    fn is_stateful(&self) -> bool {
        false
    }

    /// How long a client without task support waits for a slow call. With `None`, its calls are
    /// never stored, and the response is sent when the call ends.
    fn wait_policy(&self, client: &ClientHandle) -> Option<WaitPolicy> {
        let _ = client;
        None
    }

    /// Replies to a request that concerns neither tools nor tasks: prompts, resources, completion,
    /// a custom method. The future is dropped when the client cancels the request.
    async fn request(&self, client: &Arc<ClientHandle>, request: IncomingRequest) -> Reply {
        let _ = client;
        Reply::from(codes::method_not_found(&request.method))
    }

    /// A client without a session listens for changes, among others of these resources, until the
    /// returned guard is dropped. A client with a session sends `resources/subscribe` instead.
    async fn listen(
        &self,
        client: &Arc<ClientHandle>,
        resources: &[String],
    ) -> Option<ListenGuard> {
        let _ = (client, resources);
        None
    }

    /// Handles a notification. The server side handles `notifications/initialized` and
    /// `notifications/cancelled` itself.
    fn notification(&self, client: &Arc<ClientHandle>, method: &str, params: Option<RawRef<'_>>) {
        let _ = (client, method, params);
    }

    /// Attaches the backend to a server, so that it can call [`McpServer::announce`]. Called once
    /// for each server while it is built: `server` cannot be upgraded yet.
    fn attach(&self, server: &Weak<McpServer>) {
        let _ = server;
    }
}

/// Kept for as long as a client listens.
pub type ListenGuard = Box<dyn Any + Send + Sync>;

/// How a backend describes itself to a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackendDescription {
    /// The capabilities without tasks: an object.
    pub capabilities: Raw,
    /// Its name and version: an object.
    pub info: Raw,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Whether any tool can run as a task.
    pub tasks: bool,
}

impl BackendDescription {
    /// A backend with that name and version, without capabilities and tasks.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            capabilities: Raw::empty_object(),
            info: Raw::from(&serde_json::json!({ "name": name, "version": version })),
            instructions: None,
            tasks: false,
        }
    }
}

/// What a backend reserves for one call between [`Backend::prepare`] and its runner, such as a
/// connection and a permit. It is released if the call does not run.
pub type Reservation = Arc<dyn Any + Send + Sync>;

/// A prepared call: how its tool may be called, and what its runner needs.
#[derive(Clone)]
#[non_exhaustive]
pub struct PreparedCall {
    /// The runner that executes the call.
    pub runner: Arc<str>,
    /// Whether the tool can run as a task.
    pub support: TaskSupport,
    /// Whether the call may run again after its outcome was lost.
    pub retry: RetryClass,
    /// The text for the model while its task runs (V1-CREATE-11).
    pub immediate: Option<Arc<str>>,
    /// When the call becomes a task, for a caller that leaves this to the server.
    pub task_policy: TaskPolicy,
    /// The TTL of the task in milliseconds, if the request has none. With `None`, the engine's
    /// default applies.
    pub ttl: Option<u64>,
    /// The input requests that the tool depends on. A caller that does not accept them is rejected.
    pub needs: InputKinds,
    /// Arguments that HTTP clients repeat in headers.
    pub headers: Arc<[HeaderParam]>,
    /// Passed to the runner as [`RequestParts::reservation`].
    pub reservation: Option<Reservation>,
    /// Whether [`Backend::prestart`] is called before the task is stored.
    pub prestarts: bool,
}

impl Default for PreparedCall {
    fn default() -> Self {
        Self::new()
    }
}

impl PreparedCall {
    /// A call that the runner of its [`Server`](crate::Server) executes. It cannot be a task and
    /// never runs again.
    pub fn new() -> Self {
        Self {
            runner: super::RUNNER.into(),
            support: TaskSupport::Forbidden,
            retry: RetryClass::Never,
            immediate: None,
            task_policy: TaskPolicy::default(),
            ttl: None,
            needs: InputKinds::NONE,
            headers: Arc::default(),
            reservation: None,
            prestarts: false,
        }
    }
}

/// What is known of a call that was started before its task is stored.
#[derive(Clone, Debug, Default)]
pub struct PrestartInfo {
    /// The text for the model while the task runs (V1-CREATE-11).
    pub immediate: Option<Arc<str>>,
    /// The status message of the upstream's own task.
    pub message: Option<Arc<str>>,
    /// How the upstream's task is found again after a restart.
    pub resume_state: Option<ResumeState>,
}

/// Where a call comes from. Its runner gets this from
/// [`CallContext::local_data`](outlast_engine::engine::CallContext::local_data), unless the call
/// was recovered after a restart.
#[derive(Clone)]
pub struct RequestParts {
    /// The client that calls.
    pub client: Arc<ClientHandle>,
    /// The head of the HTTP request, if the transport is HTTP.
    pub http: Option<Arc<HttpParts>>,
    /// What the backend has reserved for the call.
    pub reservation: Option<Reservation>,
}

impl RequestParts {
    /// Whether progress of a call also becomes the status message of its task. It does if the
    /// client receives no progress, and for a recovered call, whose client is unknown.
    pub(crate) fn progress_is_status(cx: &CallContext, has_token: bool) -> bool {
        let parts = cx.local_data::<Self>();
        parts.is_none_or(|parts| !parts.client.receives_progress(has_token))
    }
}

/// The head of an HTTP request: method, URI, headers.
pub type HttpParts = http::request::Parts;
