//! The backend: what the server side serves.
//!
//! The server side knows sessions, tasks and streams, and nothing of what it serves. Tools of this process, an rmcp
//! server and an upstream server are each a [`Backend`] for the server side and a
//! [`Runner`](outlast_engine::engine::Runner) for the engine: the backend describes what there is, the runner runs it.
//!
//! | the client sends | the server side uses |
//! |---|---|
//! | `initialize` | [`Backend::describe`] |
//! | `tools/list` | [`Backend::list_tools`] |
//! | `tools/call` | [`Backend::prepare`], then the engine, which runs it by [`PreparedCall::runner`] |
//! | any other request that is not about tasks | the engine if [`Backend::runner_for`] names a runner, else [`Backend::request`] |
//! | any other notification | [`Backend::notification`] |

use std::any::Any;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use outlast_engine::engine::CallContext;
use outlast_engine::task::Handle;
use outlast_engine::{Accepts, Origin, Outcome, Retry};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, RawRef, codes};

use super::{ClientHandle, IncomingRequest, McpServer, Reply, TaskPolicy, WaitPolicy};

/// What the server side serves. No method depends on an era: the server side adds or removes what only one era has.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// What the server says of itself to this client. Asked once for each session, and again when a session of an
    /// earlier life of the process is taken up.
    async fn describe(&self, client: &Arc<ClientHandle>)
    -> Result<BackendDescription, ErrorObject>;

    /// Whether any of its tools runs as a task, if that is known without asking anybody.
    fn has_tasks(&self, client: &ClientHandle) -> Option<bool> {
        let _ = client;
        None
    }

    /// A page of tools: the result of `tools/list`, each tool with `execution.taskSupport` unless it never runs as a
    /// task.
    async fn list_tools(&self, client: &Arc<ClientHandle>, params: Option<&Raw>) -> Reply;

    /// Prepares one call of a tool: how it may be called, and what its runner needs. `None` if there is no such tool.
    async fn prepare(
        &self,
        client: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject>;

    /// Starts a prepared call before its task is stored, where [`PreparedCall::prestarts`] is set: the server decides at
    /// once whether it accepts the call, and `Err` is its refusal. The task is kept for `ttl` milliseconds. The runner
    /// continues with what it put into the reservation.
    async fn prestart(
        &self,
        reservation: &Reservation,
        call: &Origin,
        ttl: u64,
    ) -> Result<PrestartInfo, Outcome> {
        let _ = (reservation, call, ttl);
        Ok(PrestartInfo::default())
    }

    /// The runner by which the engine runs requests of this method like calls: they can ask their caller and say how
    /// far they are. Requests that need neither are answered by [`Backend::request`].
    fn runner_for(&self, method: &str) -> Option<Arc<str>> {
        let _ = method;
        None
    }

    /// The runner of all its calls, where several backends share an engine: its endpoint lists only the tasks of that
    /// runner, and takes only sessions that began there.
    fn only_runner(&self) -> Option<Arc<str>> {
        None
    }

    /// How calls of a client that takes no tasks are held when they take long. Without a word they are not stored, and
    /// answered when they have ended.
    fn wait_policy(&self, client: &ClientHandle) -> Option<WaitPolicy> {
        let _ = client;
        None
    }

    /// InputResponseReceiver a request that is neither about tools nor about tasks: prompts, resources, completion, a method of its
    /// own. Dropped when the client cancels the request.
    async fn request(&self, client: &Arc<ClientHandle>, request: IncomingRequest) -> Reply {
        let _ = client;
        Reply::from(codes::method_not_found(&request.method))
    }

    /// Somebody without a session listens for changes, of these resources among others, as long as what is returned
    /// lives. With a session it is `resources/subscribe` that says so.
    async fn listen(
        &self,
        client: &Arc<ClientHandle>,
        resources: &[String],
    ) -> Option<ListenGuard> {
        let _ = (client, resources);
        None
    }

    /// Takes note of a notification. `notifications/initialized` and `notifications/cancelled` are the front's.
    fn notification(&self, client: &Arc<ClientHandle>, method: &str, params: Option<RawRef<'_>>) {
        let _ = (client, method, params);
    }

    /// Stands behind `front` from now on: [`McpServer::announce`] tells clients what changes. Called once for each front,
    /// before it is there.
    fn attach(&self, server: &Weak<McpServer>) {
        let _ = server;
    }
}

/// What a service keeps while somebody listens.
pub type ListenGuard = Box<dyn Any + Send + Sync>;

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct BackendDescription {
    /// What it can do, without tasks: an object.
    pub capabilities: Raw,
    /// Its name and version: an object.
    pub info: Raw,
    /// What the model should know about it.
    pub instructions: Option<String>,
    /// Whether any of its tools runs as a task.
    pub tasks: bool,
}

/// What a backend holds for one call from [`Backend::prepare`] until its runner takes it, such as a connection and a
/// permit. It is released if the call is not run.
pub type Reservation = Arc<dyn Any + Send + Sync>;

/// A prepared call: how its tool may be called, and what its runner needs.
#[derive(Clone)]
pub struct PreparedCall {
    /// The runner that runs it.
    pub runner: Arc<str>,
    /// Whether it runs as a task.
    pub support: TaskSupport,
    /// Whether it may run again when nobody knows how far it came.
    pub retry: Retry,
    /// The text for the model while its task runs (V1-CREATE-11).
    pub immediate: Option<Arc<str>>,
    /// When a call becomes a task whose caller leaves that to the server.
    pub task_policy: TaskPolicy,
    /// How long its task lives, in milliseconds, if the caller wants nothing in particular; if nothing is said here
    /// either, as long as the engine grants.
    pub ttl: Option<u64>,
    /// What a caller must be able to answer for the tool to be of any use.
    pub needs: Accepts,
    /// Arguments that are repeated in headers.
    pub headers: Arc<[HeaderParam]>,
    /// What its runner finds in [`RequestParts::reservation`].
    pub reservation: Option<Reservation>,
    /// Whether [`Backend::prestart`] comes before its task is stored.
    pub prestarts: bool,
}

/// What is known of a call that was started before its task is stored.
#[derive(Clone, Debug, Default)]
pub struct PrestartInfo {
    /// The text for the model while the task runs (V1-CREATE-11).
    pub immediate: Option<Arc<str>>,
    /// The status message of the server's own task.
    pub message: Option<Arc<str>>,
    /// How the server's task is found again after a restart.
    pub handle: Option<Handle>,
}

/// How a call came here. Its runner finds this in
/// [`CallContext::parts`](outlast_engine::engine::CallContext::parts), unless an earlier life of the process began
/// the call.
#[derive(Clone)]
pub struct RequestParts {
    /// Who calls.
    pub client: Arc<ClientHandle>,
    /// The head of the HTTP request, if it was one.
    pub http: Option<Arc<HttpParts>>,
    /// What its backend holds for it.
    pub reservation: Option<Reservation>,
}

impl RequestParts {
    /// Whether progress of a call is the status message of its task, too. That its caller is gone is no reason to
    /// keep it back.
    pub(crate) fn progress_is_status(cx: &CallContext, has_token: bool) -> bool {
        let parts = cx.parts::<Self>();
        parts.is_none_or(|parts| !parts.client.receives_progress(has_token))
    }
}

/// The head of an HTTP request: method, address, headers.
pub type HttpParts = hyper::http::request::Parts;
