//! The client: one connection to one server, and everything that can be asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use outlast_wire::envelope::Id;
use outlast_wire::{PeerTask, Raw};
use serde_json::json;

use super::call::Call;
use super::connection::{Connection, Opener, Restart, Up};
use super::ears::{Ears, Notices};
use super::execution::Execution;
use super::fault::Fault;
use super::host::{Host, NoHost, capabilities};
use super::legacy::{self, Introduction};
use super::receiver::{Receiver, ReceiverOptions};
use super::reference::{InUse, Kept, Reference, References};
use super::request::Request;
use super::server::Server;
use super::target::Target;
use super::tools::{Pages, ToolInfo, ToolShelf};

/// A connection to a server. Cheap to clone; it is closed when the last clone and the last execution are gone.
#[derive(Clone)]
pub struct Client(Arc<Core>);

/// How a client is set up.
#[derive(Clone)]
pub struct ClientOptions {
    /// What we call the server. Its endpoint if nothing is said.
    pub server: Option<Arc<str>>,
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
    /// Hears notifications that belong to no call.
    pub notices: Option<Notices>,
    /// How long the handshake may take.
    pub handshake: Duration,
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
    pub(crate) ears: Arc<Ears>,
    pub(crate) shelf: ToolShelf,
    pub(crate) options: ClientOptions,
    pub(crate) endpoint: String,
    tokens: AtomicI64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            server: None,
            identity: ("outlast".into(), env!("CARGO_PKG_VERSION").into()),
            host: Arc::new(NoHost),
            receiver_tasks: None,
            restart: None,
            references: None,
            notices: None,
            handshake: Duration::from_secs(60),
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
        };
        let opener = Opener {
            target,
            we,
            patience: options.handshake,
            restart: options.restart,
            inbound: ears.clone(),
            ids: Arc::new(AtomicI64::new(1)),
        };
        let connection = Connection::open(opener).await?;
        Ok(Self(Arc::new(Core {
            connection,
            ears,
            shelf: ToolShelf::default(),
            options,
            endpoint,
            tokens: AtomicI64::new(1),
        })))
    }

    /// The server as it introduced itself last.
    pub async fn server(&self) -> Result<Server, Fault> {
        Ok(self.0.up().await?.server.clone())
    }

    /// Asks whether the server is there.
    pub async fn ping(&self) -> Result<(), Fault> {
        self.request("ping", None).await.map(drop)
    }

    /// Any request with unopened params, answered with an unopened result.
    pub async fn request(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        let up = self.0.up().await?;
        let params = params.map(Raw::borrow);
        up.exchange
            .request(method, params, self.0.options.request)
            .await
    }

    /// The same for a request that may take its time: within the limits of calls, not of requests.
    pub fn long_request(&self, method: &str, params: Option<Raw>) -> Request {
        Request::new(self.0.clone(), method, params)
    }

    /// Any notification.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), Fault> {
        let up = self.0.up().await?;
        up.exchange.notify(method, params.map(Raw::borrow)).await
    }

    /// Tells the server that the host's roots have changed (V1-ROOT-1).
    pub async fn roots_changed(&self) -> Result<(), Fault> {
        self.notify("notifications/roots/list_changed", None).await
    }

    /// The tools of the server, from all pages; from memory until the server says that they have changed.
    pub async fn tools(&self) -> Result<Arc<[ToolInfo]>, Fault> {
        let up = self.0.up().await?;
        let patience = self.0.options.request;
        self.0.shelf.tools(&up, &self.0.ears, patience).await
    }

    /// A call of a tool with these arguments, an object: `client.call_tool("x", args).ttl(60_000).await?`.
    pub fn call_tool(&self, tool: impl Into<Arc<str>>, arguments: Option<Raw>) -> Call {
        Call::new(self.0.clone(), tool.into(), arguments)
    }

    /// Goes on with a task that was left, or that an earlier life of this program began.
    pub fn resume(&self, reference: Reference) -> Result<Execution, InUse> {
        self.resume_named(reference, None)
    }

    /// The same under a name, as of [`Call::named`].
    pub fn resume_named(
        &self,
        reference: Reference,
        name: Option<Arc<str>>,
    ) -> Result<Execution, InUse> {
        let references = self.0.options.references.as_ref();
        if references.is_some_and(|references| references.is_in_use(&reference)) {
            return Err(InUse(reference.task));
        }
        Ok(Execution::continued(self.0.clone(), reference, name))
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
            let page = legacy::page(&up.exchange, pages.cursor(), self.0.options.request).await?;
            tasks.extend(page.tasks);
            if !pages.turn(page.next_cursor, tasks.len())? {
                return Ok(tasks);
            }
        }
    }

    /// How a task stands.
    pub async fn get_task(&self, task: &str) -> Result<PeerTask, Fault> {
        let up = self.0.up().await?;
        legacy::look(&up.exchange, task, self.0.options.request).await
    }

    /// What the call of a task would have answered; waits for its end, within the limit of the options.
    pub async fn task_result(&self, task: &str) -> Result<Raw, Fault> {
        let up = self.0.up().await?;
        legacy::fetch(&up.exchange, task, self.0.options.result).await
    }

    /// Cancels a task.
    pub async fn cancel_task(&self, task: &str) -> Result<PeerTask, Fault> {
        let up = self.0.up().await?;
        if !up.server.generation.cancels() {
            return Err(Fault::Unsupported("cancelling tasks".into()));
        }
        legacy::cancel(&up.exchange, task, self.0.options.request).await
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

    /// Whether the connection is over for good.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.over().is_some()
    }

    /// A token for the progress of one call (V1-PRG-1).
    pub(crate) fn fresh_token(&self) -> Id {
        Id::from(self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// Stores a reference, if they are kept.
    pub(crate) async fn keep(&self, reference: &Reference) -> Kept {
        match &self.options.references {
            Some(references) => references.keep(reference).await,
            None => Kept::nowhere(),
        }
    }
}
