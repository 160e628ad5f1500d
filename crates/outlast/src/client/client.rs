//! The client: a connection to one server, and the requests that can be sent on it.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::envelope::Id;
use outlast_wire::headers::{self, HeaderParam};
use outlast_wire::v1::TaskPage;
use outlast_wire::v2;
use outlast_wire::{PeerTask, Raw, Status, codes, method, object};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::call::Call;
use super::connection::{
    ConnectionChanges, ConnectionState, Connector, ConversationWatch, ReconnectPolicy,
    ReconnectingConnection,
};
use super::conversation::{Conversation, RequestDraft};
use super::driver::Driver;
use super::era::{ClientDescription, Era, OpenTimeouts};
use super::error::{Error, PeerError};
use super::execution::{CallController, Execution, ExecutionStatus, OutcomeError};
use super::handler::{ClientHandler, NoHandler, capabilities};
use super::hosted_tasks::HostedTasks;
use super::inbound::{InboundHandler, NotificationHandler};
use super::modern::Subscriptions;
use super::observer::MessageObserver;
use super::poll_schedule::{PollDefaults, PollSchedule};
use super::receiver::{Receiver, ReceiverOptions};
use super::reference::{
    OpenInputRequest, ReferenceGuard, ReferenceInUse, ReferenceStore, TaskReference,
};
use super::request::Request;
use super::request_ids::RequestIds;
use super::server_description::ServerDescription;
use super::target::Target;
use super::task_report::ReportPayload;
use super::tool_cache::{Freshness, ListOptions, PageCursor, ToolCache, ToolInfo, header_params};
use super::{legacy, modern};
use crate::transport::link::TransportError;

/// A connection to a server. Cheap to clone. The connection closes when the last clone and the last
/// execution are dropped.
///
/// ```no_run
/// use outlast::prelude::*;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let target = Target::url("http://127.0.0.1:8040/mcp");
/// let client = Client::connect(target, ClientOptions::default()).await?;
/// for tool in client.tools().await?.iter() {
///     println!("{}", tool.name);
/// }
/// let call = client.call_tool("research", serde_json::json!({ "topic": "tides" })).await?;
/// println!("{}", call.result().await?.text());
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Core>);

/// The settings of a client.
///
/// ```
/// use outlast::client::{ClientOptions, Era};
///
/// let options = ClientOptions::default().with_era(Era::Legacy).with_server_name("files");
/// # drop(options);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The name of the server in input requests and logs. The default is its endpoint.
    pub server_name: Option<Arc<str>>,
    /// The era to use.
    pub era: Era,
    /// Name and version of this client.
    pub identity: (String, String),
    /// Responds to the server's input requests.
    pub handler: Arc<dyn ClientHandler>,
    /// Hosts sampling and elicitation requests of the server as tasks. Off by default (S1-23).
    pub receiver_tasks: Option<ReceiverOptions>,
    /// Reconnects after a lost connection. If the server has dropped the session, the client opens
    /// a new one even without this.
    pub reconnect: Option<ReconnectPolicy>,
    /// Where task references are stored. Without it they are not stored.
    pub references: Option<ReferenceStore>,
    /// Receives notifications that belong to no call: logs, changed lists, changed resources.
    pub on_notification: Option<NotificationHandler>,
    /// Receives every message of the connection.
    pub observer: Option<Arc<dyn MessageObserver>>,
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// How long the client waits for the response to the modern probe before it sends the legacy
    /// handshake (A3-1).
    pub probe_timeout: Duration,
    /// How long a request may take. Calls without a task, [`Client::long_request`] and a waiting
    /// `tasks/result` have the limits below.
    pub request_timeout: Duration,
    /// How long one `tasks/result` may wait. Polling continues meanwhile and afterwards (V1-INIT-9,
    /// A1-26).
    pub result_timeout: Duration,
    /// How long a call without a task may run without progress.
    pub idle_timeout: Duration,
    /// How long a call without a task may run in total.
    pub call_timeout: Duration,
}

outlast_engine::option_setters! { ClientOptions:
    some_text with_server_name(server_name: Arc<str>);
    set with_era(era: Era);
    set with_identity(identity: (String, String));
    set with_handler(handler: Arc<dyn ClientHandler>);
    maybe with_receiver_tasks(receiver_tasks: ReceiverOptions);
    maybe with_reconnect(reconnect: ReconnectPolicy);
    maybe with_references(references: ReferenceStore);
    some with_on_notification(on_notification: NotificationHandler);
    some with_observer(observer: Arc<dyn MessageObserver>);
    set with_handshake_timeout(handshake_timeout: Duration);
    set with_probe_timeout(probe_timeout: Duration);
    set with_request_timeout(request_timeout: Duration);
    set with_result_timeout(result_timeout: Duration);
    set with_idle_timeout(idle_timeout: Duration);
    set with_call_timeout(call_timeout: Duration);
}

/// The state that a client and its executions share.
pub(crate) struct Core {
    connection: ReconnectingConnection,
    pub(crate) listener: Subscriptions,
    /// Whether the transport has headers.
    headers: bool,
    pub(crate) inbound: Arc<InboundHandler>,
    pub(crate) tool_cache: ToolCache,
    pub(crate) options: ClientOptions,
    pub(crate) endpoint: String,
    declared: Raw,
    ids: Arc<RequestIds>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            server_name: None,
            era: Era::default(),
            identity: ("outlast".into(), env!("CARGO_PKG_VERSION").into()),
            handler: Arc::new(NoHandler),
            receiver_tasks: None,
            reconnect: None,
            references: None,
            on_notification: None,
            observer: None,
            handshake_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(60),
            result_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(600),
            call_timeout: Duration::from_secs(24 * 3_600),
        }
    }
}

impl Client {
    /// Connects to a server and opens the conversation.
    pub async fn connect(target: Target, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = target.endpoint();
        let server = options.server_name.clone();
        let server = server.unwrap_or_else(|| endpoint.as_str().into());
        let handler = options.handler.clone();
        let mut declared = capabilities(handler.accepts());
        let receiver = match options.receiver_tasks.clone() {
            Some(receiver) => {
                declared = Receiver::declare(&declared, handler.accepts());
                let receiver = Receiver::open(receiver, handler.clone()).await;
                Some(receiver.map_err(|error| Error::Unsupported(error.to_string()))?)
            }
            None => None,
        };
        let inbound = Arc::new(InboundHandler::new(
            server,
            handler,
            options.on_notification.clone(),
            receiver,
        ));
        let (name, version) = &options.identity;
        let info = json!({ "name": name, "version": version });
        let description = ClientDescription {
            capabilities: declared.clone(),
            info: Raw::encode(&info).expect("two strings are JSON"),
            accepts: inbound.accepts,
        };
        let headers = target.has_headers();
        let ids = Arc::new(RequestIds::default());
        let opener = Connector {
            name: inbound.server.clone(),
            target,
            era: options.era,
            description,
            timeouts: OpenTimeouts {
                handshake: options.handshake_timeout,
                probe: options.probe_timeout,
            },
            reconnect: options.reconnect,
            inbound: inbound.clone(),
            observer: options.observer.clone(),
            ids: ids.clone(),
        };
        let connection = ReconnectingConnection::open(opener).await?;
        let listener = Subscriptions::new(connection.conversations(), inbound.clone());
        Ok(Self(Arc::new(Core {
            connection,
            listener,
            headers,
            inbound,
            tool_cache: ToolCache::default(),
            options,
            endpoint,
            declared,
            ids,
        })))
    }

    /// The description that the server sent last.
    pub async fn server(&self) -> Result<ServerDescription, Error> {
        Ok(self.0.conversation().await?.server.clone())
    }

    /// The capabilities that this client declares, unopened.
    pub fn declared_capabilities(&self) -> &Raw {
        &self.0.declared
    }

    /// The address of the server: a URL, or a command with its arguments.
    pub fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// Checks that the server responds.
    pub async fn ping(&self) -> Result<(), Error> {
        let conversation = self.0.conversation().await?;
        let method = if conversation.server.is_modern() {
            v2::method::DISCOVER
        } else {
            method::PING
        };
        let draft = RequestDraft::new(method, None);
        conversation
            .request(&draft, self.0.options.request_timeout)
            .await
            .map(drop)
    }

    /// Sends a request with unopened params and returns the unopened result. The request is framed
    /// for the server's era. Input requests that precede the result go to the handler.
    pub async fn request(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Error> {
        self.short_request(method, params.cloned()).await
    }

    /// As [`Client::request`], with more settings.
    pub(crate) fn short_request(&self, method: &str, params: Option<Raw>) -> Request {
        Request::new(self.0.clone(), method, params).with_short_timeout()
    }

    /// As [`Client::request`], for a request that may take long: the limits of calls apply, not
    /// those of requests.
    pub fn long_request(&self, method: &str, params: Option<Raw>) -> Request {
        Request::new(self.0.clone(), method, params)
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), Error> {
        let conversation = self.0.conversation().await?;
        conversation.notify(method, params.map(Raw::borrow)).await
    }

    /// Subscribes to changes of a resource. They arrive at [`ClientOptions::on_notification`].
    pub async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        self.set_subscription(uri, true).await
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        self.set_subscription(uri, false).await
    }

    async fn set_subscription(&self, uri: &str, wanted: bool) -> Result<(), Error> {
        let conversation = self.0.conversation().await?;
        if conversation.server.is_modern() {
            self.0.listener.resource(uri, wanted);
            return Ok(());
        }
        let method = if wanted {
            method::RESOURCES_SUBSCRIBE
        } else {
            method::RESOURCES_UNSUBSCRIBE
        };
        let params = Raw::encode(&json!({ "uri": uri })).expect("a string is JSON");
        self.request(method, Some(&params)).await.map(drop)
    }

    /// Notifies the server that the roots of the handler have changed (V1-ROOT-1). A modern server
    /// is not notified: it requests the roots when it needs them (V2-ROOT-1).
    pub async fn roots_changed(&self) -> Result<(), Error> {
        let conversation = self.0.conversation().await?;
        if conversation.server.is_modern() {
            Ok(())
        } else {
            conversation.notify(method::ROOTS_CHANGED, None).await
        }
    }

    /// The tools of the server, from all pages. They are cached until the server reports a change
    /// or its cache hint expires. Tools that cannot be called over HTTP are omitted (V2-PARAM-3).
    pub async fn tools(&self) -> Result<Arc<[ToolInfo]>, Error> {
        let conversation = self.0.conversation().await?;
        self.0.tools(&conversation, Freshness::AsServerAllows).await
    }

    /// The tools of the server, without the cache.
    pub async fn fresh_tools(&self) -> Result<Arc<[ToolInfo]>, Error> {
        self.0.tool_cache.forget();
        self.tools().await
    }

    /// Prepares a call of a tool: `client.call_tool("render", json!({ "pages": 3 })).await?`. The
    /// arguments are a struct, a map or a JSON object; `()` stands for none.
    pub fn call_tool(&self, tool: impl Into<Arc<str>>, arguments: impl Serialize) -> Call {
        Call::new(self.0.clone(), tool.into(), &arguments)
    }

    /// Follows a task again that was detached, or that a previous run of this program created.
    pub fn resume(&self, reference: TaskReference) -> Result<Execution, ReferenceInUse> {
        let references = self.0.options.references.as_ref();
        if references.is_some_and(|references| references.is_in_use(&reference)) {
            return Err(ReferenceInUse(reference.task));
        }
        Ok(Execution::resume(self.0.clone(), reference))
    }

    /// As [`Client::resume`], but without a spawned task, as in
    /// [`CheckedCall::drive`](super::call::CheckedCall::drive). `name` has the meaning of
    /// [`Call::named`]. The responses of `open` are sent as responses to the server's requests.
    pub(crate) async fn drive_task<O: CallController>(
        &self,
        reference: TaskReference,
        open: Vec<OpenInputRequest>,
        name: Arc<str>,
        controller: &mut O,
    ) -> Result<Outcome, OutcomeError> {
        let core = self.0.clone();
        let status =
            ExecutionStatus::new(core.inbound.server.clone(), reference.tool.as_str().into());
        let driver = Driver::new(status, controller);
        driver.resume(core, reference, open, Some(name)).await
    }

    /// The tasks of this client at the server, from all pages.
    pub async fn list_tasks(&self) -> Result<Vec<PeerTask>, Error> {
        let conversation = self.0.conversation().await?;
        if !conversation.server.generation.lists() {
            return Err(Error::Unsupported("listing tasks".into()));
        }
        let mut tasks = Vec::new();
        let mut pages = PageCursor::default();
        loop {
            let page = legacy::page(
                &conversation,
                pages.cursor(),
                self.0.options.request_timeout,
            )
            .await?;
            tasks.extend(page.tasks);
            if !pages.advance(page.next_cursor, tasks.len())? {
                return Ok(tasks);
            }
        }
    }

    /// One page of the tasks of this client at the server, after `cursor` (S4-54).
    pub async fn list_tasks_page(&self, cursor: Option<&str>) -> Result<TaskPage, Error> {
        let conversation = self.0.conversation().await?;
        if !conversation.server.generation.lists() {
            return Err(Error::Unsupported("listing tasks".into()));
        }
        legacy::page(&conversation, cursor, self.0.options.request_timeout).await
    }

    /// The tasks that this client hosts for the server on the current connection; `None` if
    /// [`ClientOptions::receiver_tasks`] is off.
    pub async fn hosted_tasks(&self) -> Result<Option<HostedTasks>, Error> {
        let conversation = self.0.conversation().await?;
        let receiver = self.0.inbound.receiver();
        Ok(receiver.map(|receiver| receiver.hosted_tasks(&conversation.channel)))
    }

    /// Polls a task once.
    pub async fn get_task(&self, task: &str) -> Result<PeerTask, Error> {
        let conversation = self.0.conversation().await?;
        let report = conversation
            .poll(task, self.0.options.request_timeout)
            .await?;
        Ok(report.task)
    }

    /// The result of the call behind a task. Waits for the end of the task, up to `result_timeout`.
    /// Input requests of the task get no response meanwhile; [`Client::resume`] handles them.
    pub async fn task_result(&self, task: &str) -> Result<Raw, Error> {
        let conversation = self.0.conversation().await?;
        let timeout = self.0.options.result_timeout;
        if !conversation.server.is_modern() {
            return legacy::fetch(&conversation, task, timeout).await;
        }
        let ended = tokio::time::timeout(timeout, self.0.outcome(task)).await;
        ended.unwrap_or(Err(Error::TimedOut(timeout)))
    }

    /// Cancels a task and returns its state. A V2 task may run on for a while, and may end with
    /// another status.
    pub async fn cancel_task(&self, task: &str) -> Result<PeerTask, Error> {
        let conversation = self.0.conversation().await?;
        match conversation
            .cancel(task, self.0.options.request_timeout)
            .await?
        {
            Some(task) => Ok(task),
            None => self.get_task(task).await,
        }
    }

    /// The conversations of the connection, without keeping the connection open.
    pub(crate) fn conversations(&self) -> ConversationWatch {
        self.0.connection.conversations()
    }

    /// The state of the connection.
    pub fn connection_state(&self) -> ConnectionState {
        self.0.connection.conversations().state()
    }

    /// The changes of the state of the connection from now on. They do not keep the connection
    /// open.
    pub fn connection_changes(&self) -> ConnectionChanges {
        ConnectionChanges(self.conversations())
    }

    /// Whether the connection has ended and will not be opened again.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Closes the connection, even if other clones use it, and waits until it is closed.
    pub async fn close(&self) {
        self.0.connection.close().await;
    }
}

impl Core {
    /// The open conversation. While the client reconnects, waits for the next one, up to
    /// `request_timeout`.
    pub(crate) async fn conversation(&self) -> Result<Arc<Conversation>, Error> {
        let timeout = self.options.request_timeout;
        let conversation = tokio::time::timeout(timeout, self.connection.conversation()).await;
        conversation.unwrap_or(Err(Error::TimedOut(timeout)))
    }

    /// Waits for the outcome of a V2 task.
    async fn outcome(&self, task: &str) -> Result<Raw, Error> {
        loop {
            let conversation = self.conversation().await?;
            let report = conversation
                .poll(task, self.options.request_timeout)
                .await?;
            match (report.payload, report.task.status) {
                (ReportPayload::Result(result), _) => return modern::complete(&result),
                (ReportPayload::Error(error), _) => {
                    let read = PeerError::read(error.borrow());
                    let not_an_object = || {
                        Error::Malformed("the task's `error` is not a JSON-RPC error object".into())
                    };
                    return Err(read.map_or_else(not_an_object, Error::Peer));
                }
                (_, Status::Cancelled) => {
                    let error = codes::task_cancelled(task);
                    return Err(Error::Peer(error.into()));
                }
                _ => {}
            }
            let now = Instant::now();
            let schedule = PollSchedule::new(PollDefaults::V2, now, report.task.poll_interval_ms);
            tokio::time::sleep_until(schedule.next()).await;
        }
    }

    /// The tools of the server.
    pub(crate) async fn tools(
        &self,
        conversation: &Arc<Conversation>,
        freshness: Freshness,
    ) -> Result<Arc<[ToolInfo]>, Error> {
        let list_options = ListOptions {
            timeout: self.options.request_timeout,
            headers: self.headers,
        };
        self.tool_cache
            .tools(conversation, &self.inbound, freshness, list_options)
            .await
    }

    /// The headers that mirror the arguments of a call (V2-PARAM-1). If the tool list cannot be
    /// read, the call has no such headers, and the server rejects the call if it needs them.
    pub(crate) async fn call_headers(
        &self,
        conversation: &Arc<Conversation>,
        arguments: Option<&Raw>,
        called: &str,
        params: &Raw,
    ) -> Vec<(String, String)> {
        if !self.headers || !conversation.server.is_modern() {
            return Vec::new();
        }
        let Ok(tools) = self.tools(conversation, Freshness::Any).await else {
            return Vec::new();
        };
        let found = tools.iter().find(|tool| &*tool.name == called);
        let marked = found.and_then(|tool| header_params(tool).ok());
        let arguments = arguments.map(Raw::borrow);
        let arguments = arguments.or_else(|| object::find(params.borrow(), &["arguments"]));
        let mirrored = |marked: Vec<HeaderParam>| {
            let all = headers::mirrored_params(&marked, arguments).into_iter();
            all.map(|(name, value)| (name.to_owned(), value)).collect()
        };
        marked.map(mirrored).unwrap_or_default()
    }

    /// Whether a call with this response may be sent again because the server has certainly not
    /// executed it: the session was gone, the headers followed an outdated tool list (V2-PARAM-6),
    /// or the server rejected a version that it supports (V2-VER-2).
    pub(crate) fn may_retry(
        &self,
        conversation: &Conversation,
        response: &Result<Raw, Error>,
    ) -> bool {
        let outdated = conversation.server.is_modern() && self.headers;
        match response {
            Err(Error::Transport(TransportError::SessionGone)) => true,
            Err(error) if outdated && error.code() == Some(codes::HEADER_MISMATCH) => {
                self.tool_cache.forget();
                true
            }
            Err(error) => modern::refused_own_version(error),
            Ok(_) => false,
        }
    }

    /// Whether the connection has ended and will not be opened again.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.end_reason().is_some()
    }

    /// A progress token for one call (V1-PRG-1).
    pub(crate) fn fresh_token(&self) -> Id {
        self.ids.fresh()
    }

    /// Stores a reference if a reference store is set.
    pub(crate) async fn store_reference(&self, reference: &TaskReference) -> ReferenceGuard {
        match &self.options.references {
            Some(references) => references.acquire(reference).await,
            None => ReferenceGuard::unstored(),
        }
    }
}
