//! A measured server: a child process, its clients, and its processor time.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::client::HttpConnection;
use super::mcp_client::{Generation, McpClient};
use super::serve::Server;
use crate::BenchResult;
use crate::machine::processor_of;
use crate::rounds::median;

/// A server and its clients. The server ends when this is dropped.
pub(crate) struct MeasuredServer {
    child: Child,
    address: SocketAddr,
    generation: Generation,
    /// The headers of every request.
    headers: String,
    clients: Vec<McpClient>,
}

/// The operation that clients repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOperation {
    /// A task from creation to result.
    Lifecycle,
    /// `tasks/get` of one task that has ended.
    Get,
    /// A call that does not become a task.
    Call,
}

/// The latency that clients see, and the cost of an operation for the server.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) per_second: f64,
    /// The median time from request to response, in microseconds.
    pub(crate) latency: f64,
    /// The processor time of one operation, in microseconds.
    pub(crate) processor: f64,
}

impl MeasuredServer {
    /// Starts one of the servers of this program.
    pub(crate) fn start(server: &Server, generation: Generation) -> BenchResult<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").args(server.args());
        Self::spawn(command, generation)
    }

    /// Runs a command that prints its address.
    pub(crate) fn spawn(mut command: Command, generation: Generation) -> BenchResult<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let stdout = child.stdout.take().ok_or("a child has no stdout")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        let bare = address.trim_end().trim_start_matches("http://");
        let address = bare
            .trim_end_matches("/mcp")
            .parse()
            .map_err(|_| format!("{command:?} did not print its address"))?;
        Ok(Self::new(child, address, generation))
    }

    /// Runs a command that will listen at `address`. Its output is ignored.
    pub(crate) fn at(
        mut command: Command,
        address: SocketAddr,
        generation: Generation,
    ) -> BenchResult<Self> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let target = Self::new(child, address, generation);
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            if Instant::now() > deadline {
                return Err(format!("{command:?} does not listen at {address}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(target)
    }

    fn new(child: Child, address: SocketAddr, generation: Generation) -> Self {
        Self {
            child,
            address,
            generation,
            headers: String::new(),
            clients: Vec::new(),
        }
    }

    /// Sends this token with every request.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.headers = format!("authorization: Bearer {token}\r\n");
        self
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The process of the server.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Closes the server's standard input and waits until the process has ended.
    pub(crate) fn stop(mut self) -> BenchResult<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a server ended with {status}").into())
        }
    }

    /// Opens this number of connections, with one client each.
    pub(crate) async fn connect(
        &mut self,
        connections: usize,
        operation: ClientOperation,
    ) -> BenchResult<()> {
        self.clients.clear();
        for _ in 0..connections {
            let mut client = self.client().await?;
            match operation {
                ClientOperation::Get => client.lifecycle().await?,
                ClientOperation::Lifecycle | ClientOperation::Call => {}
            }
            self.clients.push(client);
        }
        Ok(())
    }

    /// A client with its own connection.
    async fn client(&self) -> BenchResult<McpClient> {
        let connection = HttpConnection::open(self.address).await?;
        McpClient::handshake(connection, self.generation, &self.headers).await
    }

    /// Runs every client for about `turn`.
    pub(crate) fn measure(
        &mut self,
        runtime: &Runtime,
        operation: ClientOperation,
        turn: Duration,
    ) -> BenchResult<Cost> {
        runtime.block_on(async {
            for client in &mut self.clients {
                client.reopen().await?;
            }
            BenchResult::Ok(())
        })?;
        let before = processor_of(self.child.id())?;
        let began = Instant::now();
        let times = runtime.block_on(async {
            let mut busy = JoinSet::new();
            for mut client in self.clients.drain(..) {
                busy.spawn(async move {
                    let mut times = Vec::new();
                    while began.elapsed() < turn {
                        let began = Instant::now();
                        match operation {
                            ClientOperation::Lifecycle => client.lifecycle().await?,
                            ClientOperation::Get => drop(client.get().await?),
                            ClientOperation::Call => client.call("plain").await?,
                        }
                        times.push(began.elapsed().as_secs_f64() * 1e6);
                    }
                    BenchResult::Ok((client, times))
                });
            }
            let mut all = Vec::new();
            while let Some(done) = busy.join_next().await {
                let (client, times) = done??;
                self.clients.push(client);
                all.extend(times);
            }
            BenchResult::Ok(all)
        })?;
        let processor = processor_of(self.child.id())? - before;
        Ok(Cost::from_times(&times, began.elapsed(), processor))
    }
}

impl Cost {
    /// The cost of operations with these times in microseconds, and the processor time in seconds.
    pub(crate) fn from_times(times: &[f64], took: Duration, processor: f64) -> Self {
        let operations = times.len() as f64;
        Self {
            per_second: operations / took.as_secs_f64(),
            latency: median(times.iter().copied()),
            processor: processor * 1e6 / operations,
        }
    }
}

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);
