//! `outlast stdio`, for the configuration file of a host: a relay to the gateway of a store. If no
//! gateway runs, the relay starts one in the background, which outlives the host.
//!
//! If the gateway ends, the relay connects to the next one, or starts it, and continues the
//! conversation. The host keeps its connection.
//!
//! If the relay cannot start, it answers the host's first requests with the error, prints the error
//! and exits.

mod conversation;
mod gateway_connector;
mod request;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast::wire::Id;
use outlast_wire::envelope::{Limits, Message, Outcome};
use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::args;
use crate::dirs;
use crate::exit::Failure;
use crate::gateway::{FirstLine, ServerRequest};
use crate::logs;
use conversation::{Conversation, FromGateway, MessageLine};
use gateway_connector::{GatewayConnection, GatewayConnector};

/// Relays between the host and a gateway until the host closes its pipe.
pub(crate) async fn run(args: args::Stdio) -> Result<(), Failure> {
    let relay = Arc::new(Relay::default());
    // Spawned: messages that the host sends during the start are kept for the gateway.
    let mut asking = tokio::spawn(
        relay
            .clone()
            .take_from_host(BufReader::new(tokio::io::stdin())),
    );
    let (connector, first) = match start(args).await {
        Ok(started) => started,
        Err(failure) => return Err(relay.refuse_start(failure).await),
    };
    let mut responses = tokio::spawn(relay.clone().take_from_gateways(connector, first));
    tokio::select! {
        // The host has closed its pipe. Its requests are still answered. Tasks continue.
        _ = &mut asking => {}
        ended = &mut responses => return ended.map_err(std::io::Error::other)?,
    }
    tokio::select! {
        _ = tokio::time::timeout(LAST_RESPONSES_TIMEOUT, relay.answered()) => {}
        ended = &mut responses => return ended.map_err(std::io::Error::other)?,
    }
    let closed = async {
        relay.close().await;
        let _ = responses.await;
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
    Ok(())
}

/// Connects to the first gateway.
async fn start(args: args::Stdio) -> Result<(GatewayConnector, GatewayConnection), Failure> {
    let store = match &args.store {
        Some(store) => store.clone(),
        None => dirs::gateway_store()?,
    };
    logs::check(&args.logs)?;
    let connector = GatewayConnector {
        store,
        first: FirstLine::Server(ServerRequest::of(&args)?),
        logs: args.logs,
    };
    let connection = connector.connect().await?;
    Ok((connector, connection))
}

/// The state that both directions share.
#[derive(Default)]
struct Relay {
    /// Never locked across an `.await`.
    conversation: Mutex<Conversation>,
    /// The connection to the gateway, if there is one. It stays locked while messages are recorded
    /// and sent, so a message is either sent on this connection or known to the next one.
    gateway: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
    /// Notified when the host has sent something or has closed its pipe.
    host_wrote: Notify,
    /// Notified when a request of the host may have its response.
    responded: Notify,
    /// Whether the host has closed its pipe.
    host_left: AtomicBool,
    /// Whether this relay has closed its connection, after the host left. The gateway then ends it.
    closed: AtomicBool,
}

impl Relay {
    /// Sends the host's messages to the gateway until the host closes its pipe.
    async fn take_from_host(self: Arc<Self>, mut host: impl AsyncBufRead + Unpin) {
        while let Some(line) = next_line(&mut host).await {
            let mut gateway = self.gateway.lock().await;
            self.conversation
                .lock()
                .take_from_host(&line, gateway.is_some());
            if let Some(write) = &mut *gateway {
                // If this fails, the other direction reads the end of the connection.
                let _ = write.write_all(&line).await;
            }
            drop(gateway);
            self.host_wrote.notify_one();
        }
        self.host_left.store(true, Ordering::SeqCst);
        self.host_wrote.notify_one();
    }

    /// Resolves when every request of the host has its response.
    async fn answered(&self) {
        while self.conversation.lock().awaits_responses() {
            self.responded.notified().await;
        }
    }

    /// Closes our end of the connection. The gateway then cancels the requests that still run
    /// without a task.
    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Some(write) = &mut *self.gateway.lock().await {
            let _ = write.shutdown().await;
        }
    }

    /// Sends the messages of one gateway after the other to the host.
    async fn take_from_gateways(
        self: Arc<Self>,
        connector: GatewayConnector,
        first: GatewayConnection,
    ) -> Result<(), Failure> {
        let mut host = Host(tokio::io::stdout());
        let mut next = Some(first);
        let mut lost = 0;
        loop {
            let connected = match next.take() {
                Some(connection) => Ok(connection),
                None => connector.connect().await,
            };
            let continued = match connected {
                Ok(connection) => self.continue_on(connection, &mut host).await?,
                Err(failure) => Continuation::Failed(failure.to_string()),
            };
            match continued {
                Continuation::On(mut read) => {
                    lost = 0;
                    let mut detached = JoinSet::new();
                    while let Some(line) = next_line(&mut read).await {
                        self.take_from_gateway(line, &mut host, &mut detached)
                            .await?;
                    }
                    // They must not write to the next connection.
                    while detached.join_next().await.is_some() {}
                    let mut gateway = self.gateway.lock().await;
                    *gateway = None;
                    let lines = self.conversation.lock().lost();
                    // If this relay closed the connection, the gateway has not stopped.
                    if !self.closed.load(Ordering::SeqCst) {
                        host.send(lines).await?;
                    }
                    self.responded.notify_one();
                }
                // The gateway ended during `initialize`.
                Continuation::Lost if lost < MAX_LOST_GATEWAYS => {
                    lost += 1;
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
                failed => {
                    lost = 0;
                    let lines = self.conversation.lock().fail(&failed.why());
                    host.send(lines).await?;
                    self.responded.notify_one();
                    self.host_writes().await;
                }
            }
            if self.host_left() {
                return Ok(());
            }
            // A gateway that was stopped in order starts again only when the host needs it.
            if connector.is_stopped()? && !self.conversation.lock().is_waiting() {
                self.host_writes().await;
            }
        }
    }

    /// Answers the first requests of the host with the reason why this relay cannot start. Hosts
    /// show the error of `initialize`, but not the standard error of a process that ends first.
    async fn refuse_start(&self, failure: Failure) -> Failure {
        // On a terminal there is no host to wait for.
        if !std::io::stdin().is_terminal() {
            let _ = tokio::time::timeout(FIRST_REQUEST_TIMEOUT, self.host_writes()).await;
        }
        let why = format!("`outlast stdio` cannot start: {failure}");
        let lines = self.conversation.lock().fail(&why);
        // If the host is gone, the caller prints the failure all the same.
        let _ = Host(tokio::io::stdout()).send(lines).await;
        failure
    }

    /// Sends `initialize` to the gateway, then the open messages.
    async fn continue_on(
        &self,
        mut connection: GatewayConnection,
        host: &mut Host,
    ) -> Result<Continuation, Failure> {
        let initialize_request = self
            .conversation
            .lock()
            .initialize_request(connection.gateway);
        if let Some((id, line)) = initialize_request {
            if connection.write.write_all(&line).await.is_err() {
                return Ok(Continuation::Lost);
            }
            loop {
                let Some(line) = next_line(&mut connection.read).await else {
                    return Ok(Continuation::Lost);
                };
                let result = result_of(&id, &line);
                let what = self.conversation.lock().take_from_gateway(&line);
                self.responded.notify_one();
                match what {
                    FromGateway::Pass => host.write(&line).await?,
                    FromGateway::Closing => return Ok(Continuation::Lost),
                    FromGateway::Drop | FromGateway::Respond(_) => {
                        if let Some(Err(why)) = result {
                            return Ok(Continuation::Failed(why));
                        }
                    }
                }
                if result.is_some() {
                    break;
                }
            }
        }
        let mut gateway = self.gateway.lock().await;
        let lines = self.conversation.lock().remaining_messages();
        for line in lines {
            // If this fails, the connection has ended.
            let _ = connection.write.write_all(&line).await;
        }
        if self.host_left() && !self.conversation.lock().awaits_responses() {
            self.closed.store(true, Ordering::SeqCst);
            let _ = connection.write.shutdown().await;
        }
        *gateway = Some(connection.write);
        Ok(Continuation::On(connection.read))
    }

    async fn take_from_gateway(
        self: &Arc<Self>,
        line: MessageLine,
        host: &mut Host,
        detached: &mut JoinSet<()>,
    ) -> Result<(), Failure> {
        let what = self.conversation.lock().take_from_gateway(&line);
        self.responded.notify_one();
        match what {
            FromGateway::Pass => host.write(&line).await?,
            FromGateway::Drop => {}
            // Dropping our end shows the gateway that no more messages follow. It responds to those
            // that it has received.
            FromGateway::Closing => {
                let relay = self.clone();
                // Spawned: the other direction can hold the lock while it waits for the gateway to
                // read.
                detached.spawn(async move {
                    *relay.gateway.lock().await = None;
                });
            }
            FromGateway::Respond(response) => {
                let relay = self.clone();
                // Spawned: the gateway must be able to write while it reads this.
                detached.spawn(async move {
                    if let Some(write) = &mut *relay.gateway.lock().await {
                        let _ = write.write_all(&response).await;
                    }
                });
            }
        }
        Ok(())
    }

    /// Resolves when the host has sent something or has closed its pipe.
    async fn host_writes(&self) {
        while !self.host_left() && !self.conversation.lock().is_waiting() {
            self.host_wrote.notified().await;
        }
    }

    fn host_left(&self) -> bool {
        self.host_left.load(Ordering::SeqCst)
    }
}

/// The result of a new connection.
enum Continuation {
    On(BufReader<tokio::net::unix::OwnedReadHalf>),
    /// The connection ended.
    Lost,
    /// The server of this relay, or the gateway, does not start.
    Failed(String),
}

impl Continuation {
    fn why(&self) -> String {
        match self {
            Self::On(_) | Self::Lost => "the gateway ended while it was starting the server".into(),
            Self::Failed(why) => format!("the gateway cannot serve this request: {why}"),
        }
    }
}

/// The host's end of the relay.
struct Host(tokio::io::Stdout);

impl Host {
    async fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.0.write_all(line).await?;
        self.0.flush().await
    }

    async fn send(&mut self, lines: Vec<String>) -> std::io::Result<()> {
        for line in lines {
            self.write(line.as_bytes()).await?;
        }
        Ok(())
    }
}

/// Returns the next line with its newline, or `None` at the end or after an error.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<MessageLine> {
    let mut line = Vec::new();
    match input.read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            Some(line)
        }
    }
}

/// Whether `line` is the response to request `id`, and its error if it has one.
fn result_of(id: &Id, line: &[u8]) -> Option<Result<(), String>> {
    match Message::parse(line.trim_ascii_end(), &Limits::default()) {
        Ok(Message::Response(response)) if response.id.as_ref() == Some(id) => {
            Some(match response.outcome {
                Outcome::Result(_) => Ok(()),
                Outcome::Error(error) => Err(error.message.into_owned()),
            })
        }
        _ => None,
    }
}

/// How long a relay that cannot start waits for a request of the host, to answer it.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long requests may run after the host has closed its pipe.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the gateway may take to end a connection that this relay has closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay after a gateway that ended during `initialize`.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// How often a gateway may end during `initialize` before the host gets an error.
const MAX_LOST_GATEWAYS: u32 = 5;
