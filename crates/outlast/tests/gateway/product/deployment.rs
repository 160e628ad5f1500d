//! A server and the gateway in front of it. Each can crash and restart.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::client::Target;
use outlast::engine::Engine;
use outlast::gateway::{Settings, Upstream};
use outlast::resources::Resources;
use outlast::server::McpServer;
use outlast::store::{MemoryStore, Store};
use outlast::task::Policy;
use outlast::transport::http::{self, HttpOptions, HttpServer};
use outlast::transport::http_client::{self, HttpClientOptions};
use outlast::transport::link::{Link, TransportError};
use outlast::transport::{duplex, stdio};
use outlast_engine::store::Filter;
use outlast_testkit::mcp::caller::Caller;
use outlast_testkit::mcp::endpoint::{ServerEndpoint, Transport};
use outlast_testkit::within;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::caller::pipe;
use crate::cell::{Cell, ServerKind};
use crate::events::without_notifications;
use crate::gate::Gate;
use crate::harness::{quick, start_server, started, tools, until_attached};

/// Options of a deployment.
pub(super) struct DeploymentOptions {
    /// The gateway's settings for the server.
    pub(super) settings: Settings,
    /// The policy of the server.
    pub(super) behind: Policy,
    /// Whether notifications of the server are lost.
    pub(super) lossy: bool,
}

impl Default for DeploymentOptions {
    fn default() -> Self {
        Self {
            settings: quick(),
            behind: Policy::default(),
            lossy: false,
        }
    }
}

pub(super) struct Deployment {
    pub(super) cell: Cell,
    pub(super) gate: Arc<Gate>,
    pub(super) endpoint: ServerEndpoint,
    behind: ServerSide,
    target: Target,
    settings: Settings,
    store: Arc<dyn Store>,
    engine: Engine,
    /// The HTTP listener for clients.
    before: Option<HttpServer>,
}

impl Deployment {
    pub(super) async fn new(cell: Cell) -> Self {
        Self::with_options(cell, DeploymentOptions::default()).await
    }

    pub(super) async fn with_options(cell: Cell, plan: DeploymentOptions) -> Self {
        let gate = Gate::new();
        let behind = ServerSide::new(cell, plan.behind, &gate).await;
        let target = behind.target(plan.lossy);
        let settings = plan.settings.with_era(cell.server.era());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (engine, mcp_server) = gateway(&target, &settings, &store).await;
        let (before, endpoint) = match cell.client_transport {
            Transport::Pipe => (None, pipe(&mcp_server)),
            Transport::Http => {
                let before = listen(&mcp_server, FREE_PORT.parse().unwrap()).await;
                let authority = before.local_addr().to_string();
                let token = None;
                (Some(before), ServerEndpoint::Http { authority, token })
            }
        };
        Self {
            cell,
            gate,
            endpoint,
            behind,
            target,
            settings,
            store,
            engine,
            before,
        }
    }

    pub(super) async fn caller(&self) -> Caller {
        Caller::connect(self.cell.client, &self.endpoint).await
    }

    /// The server itself, without the gateway.
    pub(super) fn direct(&self) -> Arc<McpServer> {
        self.behind
            .lines
            .lock()
            .unwrap()
            .mcp_server
            .clone()
            .unwrap()
    }

    /// Waits until the gateway has stored the server's task.
    pub(super) async fn until_attached(&self, task: &str) {
        until_attached(&self.store, task).await;
    }

    /// Waits until the gateway has stored a task.
    pub(super) async fn until_stored(&self) {
        // Not `eventually`: the future of an async closure cannot be spawned.
        let stored = async {
            loop {
                let page = self.store.search(&Filter::default(), None, 1).await;
                if !page.unwrap().tasks.is_empty() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("a task is stored", stored).await;
    }

    /// Crashes the server and starts another at the same address.
    pub(super) async fn crash_server(&mut self) {
        self.behind.crash().await;
    }

    /// Stops the gateway and starts another at the same address with the same store.
    pub(super) async fn restart_gateway(&mut self) {
        let address = self.before.take().map(|before| before.local_addr());
        self.engine.clone().shutdown(Duration::ZERO).await.unwrap();
        let (engine, mcp_server) = gateway(&self.target, &self.settings, &self.store).await;
        self.engine = engine;
        match address {
            Some(address) => self.before = Some(listen(&mcp_server, address).await),
            None => self.endpoint = pipe(&mcp_server),
        }
    }
}

/// The server and its transport.
struct ServerSide {
    server: ServerKind,
    policy: Policy,
    gate: Arc<Gate>,
    engine: Engine,
    lines: Arc<Mutex<ServedPipes>>,
    listening: Option<HttpServer>,
}

/// The server behind the pipes, unless it is down, and the tasks that serve the pipes.
struct ServedPipes {
    mcp_server: Option<Arc<McpServer>>,
    open: Vec<JoinHandle<()>>,
}

impl ServerSide {
    async fn new(cell: Cell, policy: Policy, gate: &Arc<Gate>) -> Self {
        let server = cell.server;
        let begun = start_server(tools(server, gate), policy.clone(), Resources::new(), gate);
        let (engine, mcp_server) = begun.await;
        let listening = match cell.server_transport {
            Transport::Pipe => None,
            Transport::Http => Some(listen(&mcp_server, FREE_PORT.parse().unwrap()).await),
        };
        let open = Vec::new();
        Self {
            server,
            policy,
            gate: gate.clone(),
            engine,
            lines: Arc::new(Mutex::new(ServedPipes {
                mcp_server: Some(mcp_server),
                open,
            })),
            listening,
        }
    }

    fn target(&self, lossy: bool) -> Target {
        if let Some(listening) = &self.listening {
            let options = HttpClientOptions::new(listening.url());
            if lossy {
                let url = options.url.clone();
                return Target::other(url, move || {
                    http_client::connect(&options).map(without_notifications)
                });
            }
            return Target::http(options);
        }
        let lines = self.lines.clone();
        Target::other("behind", move || {
            let link = lines.lock().unwrap().open();
            link.map(|link| {
                if lossy {
                    without_notifications(link)
                } else {
                    link
                }
            })
        })
    }

    async fn crash(&mut self) {
        let listening = self.listening.take();
        let address = listening.map(|listening| listening.local_addr());
        // Messages that the shutdown causes are not delivered.
        if let Some(address) = address {
            let gone = async {
                while TcpStream::connect(address).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            within("the end of the server", gone).await;
        }
        let open = self.lines.lock().unwrap().cut();
        for line in open {
            line.abort();
            let _ = line.await;
        }
        self.engine.clone().shutdown(Duration::ZERO).await.unwrap();
        self.gate.until_waiting(0).await;
        let begun = start_server(
            tools(self.server, &self.gate),
            self.policy.clone(),
            Resources::new(),
            &self.gate,
        );
        let (engine, mcp_server) = begun.await;
        self.engine = engine;
        self.lines.lock().unwrap().mcp_server = Some(mcp_server.clone());
        if let Some(address) = address {
            self.listening = Some(listen(&mcp_server, address).await);
        }
    }
}

impl ServedPipes {
    fn open(&mut self) -> Result<Link, TransportError> {
        let down = || TransportError::Unreachable("it is down".into());
        let mcp_server = self.mcp_server.clone().ok_or_else(down)?;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        self.open.push(tokio::spawn(async move {
            let _ = stdio::serve_on(mcp_server, BufReader::new(read), write).await;
        }));
        let (read, write) = tokio::io::split(ours);
        Ok(duplex::over(read, write))
    }

    /// Stops the server and returns the tasks that serve its pipes.
    fn cut(&mut self) -> Vec<JoinHandle<()>> {
        self.mcp_server = None;
        std::mem::take(&mut self.open)
    }
}

async fn gateway(
    target: &Target,
    settings: &Settings,
    store: &Arc<dyn Store>,
) -> (Engine, Arc<McpServer>) {
    let upstream = Upstream::new("behind", target.clone(), settings.clone());
    let outlast = outlast::Outlast::builder()
        .policy(outlast::gateway::policy())
        .store(store.clone());
    started(outlast.build().upstream(upstream)).await
}

/// Listens on `bind` as soon as the previous listener is closed.
async fn listen(mcp_server: &Arc<McpServer>, bind: SocketAddr) -> HttpServer {
    let mut patience = 500;
    loop {
        let options = HttpOptions::default().with_bind(bind);
        match http::serve(mcp_server.clone(), options).await {
            Ok(listening) => return listening,
            Err(error) => assert!(patience > 0, "{error}"),
        }
        patience -= 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const FREE_PORT: &str = "127.0.0.1:0";
