//! The client: one connection to one server, and everything that can be asked of it.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::envelope::Id;
use outlast_wire::headers::{self, HeaderParam};
use outlast_wire::v2;
use outlast_wire::{PeerTask, Raw, Status, codes, method, object};
use serde_json::json;
use tokio::time::Instant;

use super::call::Call;
use super::connection::{Connection, Opener, Restart, Ups};
use super::conversation::{Draft, Up};
use super::driver::Driver;
use super::era::{Era, Introduction, Patience};
use super::error::{Fault, PeerError};
use super::execution::{CallOwner, Execution, Unsettled, View};
use super::handler::{Host, NoHost, capabilities};
use super::inbound::{Ears, Notices};
use super::modern::Listener;
use super::poll_schedule::{Habit, Pace};
use super::receiver::{Receiver, ReceiverOptions};
use super::reference::{InUse, Kept, OpenRequest, Reference, References};
use super::request::Request;
use super::request_ids::Ids;
use super::server_description::Server;
use super::target::Target;
use super::task_report::Brings;
use super::tool_cache::{Age, Pages, Reading, ToolInfo, ToolShelf, header_params};
use super::{legacy, modern};
use crate::transport::link::LinkError;

/// A connection to a server. Cheap to clone; it is closed when the last clone and the last execution are gone.
#[derive(Clone)]
pub struct Client(Arc<Core>);

/// How a client is set up.
#[derive(Clone)]
pub struct ClientOptions {
    /// What we call the server. Its endpoint if nothing is said.
    pub server: Option<Arc<str>>,
    /// In which era the server is spoken to.
    pub era: Era,
    /// Who we are: name and version.
    pub identity: (String, String),
    /// Who answers the server's questions.
    pub host: Arc<dyn Host>,
    /// Whether and how sampling and elicitation are hosted as tasks. Off if nothing is said (S1-23).
    pub receiver_tasks: Option<ReceiverOptions>,
    /// Whether and how a connection that was lost is made again. A session that the server has forgotten is always
    /// opened anew.
    pub restart: Option<Restart>,
    /// Where references of tasks are kept, if anywhere.
    pub references: Option<References>,
    /// Hears notifications that belong to no call: logs, and lists and resources that changed.
    pub notices: Option<Notices>,
    /// How long the handshake may take.
    pub handshake: Duration,
    /// How long a server may take to answer in the modern era before it is greeted in the legacy one (A3-1).
    pub probe: Duration,
    /// How long a request may take that is answered at once.
    pub request: Duration,
    /// How long `tasks/result` may wait at a time; looks go on meanwhile and afterwards (V1-INIT-9, A1-26).
    pub result: Duration,
    /// How long a plain call may go on without progress.
    pub silence: Duration,
    /// How long a plain call may take in all.
    pub longest_call: Duration,
}

/// What a client and its executions share.
pub(crate) struct Core {
    connection: Connection,
    pub(crate) listener: Listener,
    /// Whether requests have headers on their way.
    headers: bool,
    pub(crate) ears: Arc<Ears>,
    pub(crate) shelf: ToolShelf,
    pub(crate) options: ClientOptions,
    pub(crate) endpoint: String,
    ids: Arc<Ids>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            server: None,
            era: Era::default(),
            identity: ("outlast".into(), env!("CARGO_PKG_VERSION").into()),
            host: Arc::new(NoHost),
            receiver_tasks: None,
            restart: None,
            references: None,
            notices: None,
            handshake: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            request: Duration::from_secs(60),
            result: Duration::from_secs(600),
            silence: Duration::from_secs(600),
            longest_call: Duration::from_secs(24 * 3_600),
        }
    }
}

impl Client {
    /// Connects to a server and introduces us.
    pub async fn connect(target: Target, options: ClientOptions) -> Result<Self, Fault> {
        let endpoint = target.endpoint();
        let server = options.server.clone();
        let server = server.unwrap_or_else(|| endpoint.as_str().into());
        let host = options.host.clone();
        let mut declared = capabilities(host.accepts());
        let receiver = match options.receiver_tasks.clone() {
            Some(receiver) => {
                declared = Receiver::declare(&declared, host.accepts());
                let receiver = Receiver::open(receiver, host.clone()).await;
                Some(receiver.map_err(|error| Fault::Unsupported(error.to_string()))?)
            }
            None => None,
        };
        let ears = Arc::new(Ears::new(server, host, options.notices.clone(), receiver));
        let (name, version) = &options.identity;
        let info = json!({ "name": name, "version": version });
        let we = Introduction {
            capabilities: declared,
            info: Raw::encode(&info).expect("two strings are JSON"),
            accepts: ears.accepts,
        };
        let headers = target.has_headers();
        let ids = Arc::new(Ids::default());
        let opener = Opener {
            name: ears.server.clone(),
            target,
            era: options.era,
            we,
            patience: Patience {
                handshake: options.handshake,
                probe: options.probe,
            },
            restart: options.restart,
            inbound: ears.clone(),
            ids: ids.clone(),
        };
        let connection = Connection::open(opener).await?;
        let listener = Listener::new(connection.ups(), ears.clone());
        Ok(Self(Arc::new(Core {
            connection,
            listener,
            headers,
            ears,
            shelf: ToolShelf::default(),
            options,
            endpoint,
            ids,
        })))
    }

    /// The server as it introduced itself last.
    pub async fn server(&self) -> Result<Server, Fault> {
        Ok(self.0.up().await?.server.clone())
    }

    /// Asks whether the server is there.
    pub async fn ping(&self) -> Result<(), Fault> {
        let up = self.0.up().await?;
        let method = if up.server.is_modern() {
            v2::method::DISCOVER
        } else {
            method::PING
        };
        let draft = Draft::new(method, None);
        up.request(&draft, self.0.options.request).await.map(drop)
    }

    /// Any request with unopened params, answered with an unopened result. It is framed as the server's era has it, and
    /// questions that come before the result go to the host.
    pub async fn request(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        self.short_request(method, params.cloned()).await
    }

    /// The same, with more to set up.
    pub(crate) fn short_request(&self, method: &str, params: Option<Raw>) -> Request {
        Request::new(self.0.clone(), method, params).at_once()
    }

    /// The same for a request that may take its time: within the limits of calls, not of requests.
    pub fn long_request(&self, method: &str, params: Option<Raw>) -> Request {
        Request::new(self.0.clone(), method, params)
    }

    /// Any notification.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), Fault> {
        let up = self.0.up().await?;
        up.notify(method, params.map(Raw::borrow)).await
    }

    /// Hears of changes of a resource from now on, by [`ClientOptions::notices`].
    pub async fn subscribe(&self, uri: &str) -> Result<(), Fault> {
        self.listen_to(uri, true).await
    }

    /// Does not want to hear of changes of a resource any more.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Fault> {
        self.listen_to(uri, false).await
    }

    async fn listen_to(&self, uri: &str, wanted: bool) -> Result<(), Fault> {
        let up = self.0.up().await?;
        if up.server.is_modern() {
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

    /// Tells the server that the host's roots have changed (V1-ROOT-1). A modern server asks when it needs them
    /// (V2-ROOT-1).
    pub async fn roots_changed(&self) -> Result<(), Fault> {
        let up = self.0.up().await?;
        if up.server.is_modern() {
            Ok(())
        } else {
            up.notify(method::ROOTS_CHANGED, None).await
        }
    }

    /// The tools of the server, from all pages; from memory until the server says that they have changed, or as long as
    /// it allows. Without those that cannot be called over HTTP (V2-PARAM-3).
    pub async fn tools(&self) -> Result<Arc<[ToolInfo]>, Fault> {
        let up = self.0.up().await?;
        self.0.tools(&up, Age::Fresh).await
    }

    /// The tools of the server as it lists them now.
    pub(crate) async fn fresh_tools(&self) -> Result<Arc<[ToolInfo]>, Fault> {
        self.0.shelf.forget();
        self.tools().await
    }

    /// A call of a tool with these arguments, an object: `client.call_tool("x", args).ttl(60_000).await?`.
    pub fn call_tool(&self, tool: impl Into<Arc<str>>, arguments: Option<Raw>) -> Call {
        Call::new(self.0.clone(), tool.into(), arguments)
    }

    /// Goes on with a task that was left, or that an earlier life of this program began.
    pub fn resume(&self, reference: Reference) -> Result<Execution, InUse> {
        let references = self.0.options.references.as_ref();
        if references.is_some_and(|references| references.is_in_use(&reference)) {
            return Err(InUse(reference.task));
        }
        Ok(Execution::continued(self.0.clone(), reference))
    }

    /// The same without a task of the runtime, as [`CheckedCall::drive`](super::call::CheckedCall::drive), under a name as
    /// of [`Call::named`]. The answers to `open` go to the server as answers to its requests.
    pub(crate) async fn drive_task<O: CallOwner>(
        &self,
        reference: Reference,
        open: Vec<OpenRequest>,
        name: Arc<str>,
        owner: &mut O,
    ) -> Result<Outcome, Unsettled> {
        let core = self.0.clone();
        let view = View::new(core.ears.server.clone(), reference.tool.as_str().into());
        let driver = Driver::new(view, owner);
        driver.resume(core, reference, open, Some(name)).await
    }

    /// Our tasks at the server, from all pages.
    pub async fn list_tasks(&self) -> Result<Vec<PeerTask>, Fault> {
        let up = self.0.up().await?;
        if !up.server.generation.lists() {
            return Err(Fault::Unsupported("listing tasks".into()));
        }
        let mut tasks = Vec::new();
        let mut pages = Pages::default();
        loop {
            let page = legacy::page(&up, pages.cursor(), self.0.options.request).await?;
            tasks.extend(page.tasks);
            if !pages.turn(page.next_cursor, tasks.len())? {
                return Ok(tasks);
            }
        }
    }

    /// How a task stands.
    pub async fn get_task(&self, task: &str) -> Result<PeerTask, Fault> {
        let up = self.0.up().await?;
        let sight = up.look(task, self.0.options.request).await?;
        Ok(sight.task)
    }

    /// What the call of a task would have answered; waits for its end, within the limit of the options. Questions of the
    /// task are not answered meanwhile: [`Client::resume`] does that.
    pub async fn task_result(&self, task: &str) -> Result<Raw, Fault> {
        let up = self.0.up().await?;
        let patience = self.0.options.result;
        if !up.server.is_modern() {
            return legacy::fetch(&up, task, patience).await;
        }
        let ended = tokio::time::timeout(patience, self.0.outcome(task)).await;
        ended.unwrap_or(Err(Fault::TimedOut(patience)))
    }

    /// Cancels a task, and says how it stands then. A V2 task may go on for a while, and end in another way.
    pub async fn cancel_task(&self, task: &str) -> Result<PeerTask, Fault> {
        let up = self.0.up().await?;
        match up.cancel(task, self.0.options.request).await? {
            Some(task) => Ok(task),
            None => self.get_task(task).await,
        }
    }

    /// Its conversations, for one who does not keep the connection open.
    pub(crate) fn ups(&self) -> Ups {
        self.0.connection.ups()
    }

    /// Whether the connection is over for good.
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Closes the connection, whoever uses it, and waits until that is done.
    pub async fn close(&self) {
        self.0.connection.close().await;
    }
}

impl Core {
    /// The open conversation, or the one that is on its way back, within the limit for requests.
    pub(crate) async fn up(&self) -> Result<Arc<Up>, Fault> {
        let patience = self.options.request;
        let up = tokio::time::timeout(patience, self.connection.up()).await;
        up.unwrap_or(Err(Fault::TimedOut(patience)))
    }

    /// The outcome of a V2 task, once it has one.
    async fn outcome(&self, task: &str) -> Result<Raw, Fault> {
        loop {
            let up = self.up().await?;
            let sight = up.look(task, self.options.request).await?;
            match (sight.brings, sight.task.status) {
                (Brings::Result(result), _) => return modern::complete(&result),
                (Brings::Error(error), _) => {
                    let read = PeerError::read(error.borrow());
                    let odd = || Fault::Malformed("its error is none".into());
                    return Err(read.map_or_else(odd, Fault::Error));
                }
                (_, Status::Cancelled) => {
                    let error = codes::task_cancelled(task);
                    return Err(Fault::Error(error.into()));
                }
                _ => {}
            }
            let now = Instant::now();
            let pace = Pace::new(Habit::V2, now, sight.task.poll_interval_ms);
            tokio::time::sleep_until(pace.next()).await;
        }
    }

    /// The tools of the server.
    pub(crate) async fn tools(&self, up: &Arc<Up>, age: Age) -> Result<Arc<[ToolInfo]>, Fault> {
        let reading = Reading {
            patience: self.options.request,
            headers: self.headers,
        };
        self.shelf.tools(up, &self.ears, age, reading).await
    }

    /// The headers of a call besides those that every request has (V2-PARAM-1). A list that cannot be had costs the
    /// headers, and the server says so if it wants them.
    pub(crate) async fn call_headers(
        &self,
        up: &Arc<Up>,
        arguments: Option<&Raw>,
        called: &str,
        params: &Raw,
    ) -> Vec<(String, String)> {
        if !self.headers || !up.server.is_modern() {
            return Vec::new();
        }
        let Ok(tools) = self.tools(up, Age::Any).await else {
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

    /// Whether a call with this answer may be made again because the server certainly has not run it: the session was
    /// gone, the headers were those of an older list (V2-PARAM-6), or the version is served after all (V2-VER-2).
    pub(crate) fn may_repeat(&self, up: &Up, answer: &Result<Raw, Fault>) -> bool {
        let outdated = up.server.is_modern() && self.headers;
        match answer {
            Err(Fault::Link(LinkError::SessionGone)) => true,
            Err(fault) if outdated && fault.code() == Some(codes::HEADER_MISMATCH) => {
                self.shelf.forget();
                true
            }
            Err(fault) => modern::is_confused(fault),
            Ok(_) => false,
        }
    }

    /// Whether the connection is over for good.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.over().is_some()
    }

    /// A token for the progress of one call (V1-PRG-1).
    pub(crate) fn fresh_token(&self) -> Id {
        self.ids.fresh()
    }

    /// Stores a reference, if they are kept.
    pub(crate) async fn keep(&self, reference: &Reference) -> Kept {
        match &self.options.references {
            Some(references) => references.keep(reference).await,
            None => Kept::nowhere(),
        }
    }
}
