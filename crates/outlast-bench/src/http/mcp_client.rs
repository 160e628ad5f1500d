//! The messages of a client of either generation, assembled from parts that are prepared before the
//! measurement.

use std::io::Write as _;
use std::time::Duration;

use super::client::HttpConnection;
use crate::BenchResult;

/// How a client does tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// MCP 2025-11-25: a session, and calls that request a task.
    V1,
    /// MCP 2025-11-25 without task support: a session, and calls that return their result.
    Plain,
    /// The extension on 2026-07-28: no session, and the server decides which calls become tasks.
    V2,
}

/// One client on one connection.
pub(crate) struct McpClient {
    connection: HttpConnection,
    generation: Generation,
    /// The headers of every request.
    head: String,
    next: u64,
    request: Vec<u8>,
    body: Vec<u8>,
    task: String,
}

impl McpClient {
    /// Performs the handshake, if its generation has one.
    pub(crate) async fn handshake(
        connection: HttpConnection,
        generation: Generation,
        headers: &str,
    ) -> BenchResult<Self> {
        let version = match generation {
            Generation::V1 | Generation::Plain => "2025-11-25",
            Generation::V2 => "2026-07-28",
        };
        let mut client = Self {
            connection,
            generation,
            head: format!("{HEAD}{headers}"),
            next: 0,
            request: Vec::new(),
            body: Vec::new(),
            task: String::new(),
        };
        if generation != Generation::V2 {
            let capabilities = match generation {
                Generation::V1 => r#"{"tasks":{}}"#,
                _ => "{}",
            };
            let params = format!(r#"{INITIALIZE},"capabilities":{capabilities}"#);
            let reply = client.send_request("initialize", None, &params).await?;
            let session = reply.header("mcp-session-id").map(str::to_owned);
            if let Some(session) = session {
                client.head += &format!("mcp-session-id: {session}\r\n");
            }
        }
        client.head += &format!("mcp-protocol-version: {version}\r\n");
        if generation != Generation::V2 {
            client.body.clear();
            client.body.extend_from_slice(INITIALIZED.as_bytes());
            client.post("").await?;
        }
        Ok(client)
    }

    /// Replaces the TCP connection; the session stays.
    pub(crate) async fn reopen(&mut self) -> BenchResult<()> {
        self.connection.reopen().await
    }

    /// A call that becomes a task.
    async fn create(&mut self, tool: &str) -> BenchResult<()> {
        let task = match self.generation {
            Generation::V1 => r#","task":{"ttl":3600000}"#,
            Generation::V2 | Generation::Plain => "",
        };
        let params = format!(r#"{{"name":"{tool}","arguments":{ARGUMENTS}{task}"#);
        let reply = self.send_request("tools/call", Some(tool), &params).await?;
        let id = reply.string("taskId")?.to_owned();
        self.task = id;
        Ok(())
    }

    /// Polls the task that was created last. Returns whether it is completed.
    pub(crate) async fn get(&mut self) -> BenchResult<bool> {
        let reply = self.task_request("tasks/get").await?;
        Ok(reply.string("status")? == "completed")
    }

    /// The result of the task that was created last.
    async fn result(&mut self) -> BenchResult<()> {
        let reply = self.task_request("tasks/result").await?;
        reply.string("text").map(drop)
    }

    /// A call whose response is its result.
    pub(crate) async fn call(&mut self, tool: &str) -> BenchResult<()> {
        let params = format!(r#"{{"name":"{tool}","arguments":{ARGUMENTS}"#);
        let reply = self.send_request("tools/call", Some(tool), &params).await?;
        reply.string("text").map(drop)
    }

    /// A task from creation to result.
    pub(crate) async fn lifecycle(&mut self) -> BenchResult<()> {
        self.create("nothing").await?;
        match self.generation {
            Generation::V1 | Generation::Plain => {
                self.get().await?;
                self.result().await
            }
            Generation::V2 => {
                // A task that has not ended is polled again after a pause: much sooner than servers
                // recommend, but not immediately.
                while !self.get().await? {
                    tokio::time::sleep(POLL_PAUSE).await;
                }
                Ok(())
            }
        }
    }

    async fn task_request(&mut self, method: &str) -> BenchResult<super::client::HttpResponse<'_>> {
        let task = std::mem::take(&mut self.task);
        let params = format!(r#"{{"taskId":"{task}""#);
        self.task.clone_from(&task);
        self.send_request(method, Some(&task), &params).await
    }

    /// Sends a request. `params` has no closing brace, so that the metadata of V2 can be appended.
    async fn send_request(
        &mut self,
        method: &str,
        name: Option<&str>,
        params: &str,
    ) -> BenchResult<super::client::HttpResponse<'_>> {
        self.next += 1;
        let (meta, headers) = match (self.generation, name) {
            (Generation::V1 | Generation::Plain, _) => ("", String::new()),
            (Generation::V2, None) => (META, format!("mcp-method: {method}\r\n")),
            (Generation::V2, Some(name)) => {
                let headers = format!("mcp-method: {method}\r\nmcp-name: {name}\r\n");
                (META, headers)
            }
        };
        self.body.clear();
        write!(
            self.body,
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}{meta}}}}}"#,
            self.next
        )?;
        self.post(&headers).await
    }

    /// Sends the prepared body.
    async fn post(&mut self, headers: &str) -> BenchResult<super::client::HttpResponse<'_>> {
        self.request.clear();
        let (head, length) = (&self.head, self.body.len());
        write!(
            self.request,
            "{head}{headers}content-length: {length}\r\n\r\n"
        )?;
        self.request.extend_from_slice(&self.body);
        self.connection.send(&self.request).await
    }
}

/// The pause between two polls of a running task.
const POLL_PAUSE: Duration = Duration::from_millis(2);

const HEAD: &str = "\
POST /mcp HTTP/1.1\r
host: 127.0.0.1\r
content-type: application/json\r
accept: application/json, text/event-stream\r
";

const INITIALIZE: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","#,
    r#""clientInfo":{"name":"bench","version":"1"}"#,
);

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

const META: &str = concat!(
    r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":"#,
    r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#,
);

/// About 200 bytes.
pub(crate) const ARGUMENTS: &str = concat!(
    r#"{"text":""#,
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    r#"89012345678901234567890123456789012345678901234567890123456789012345678901234567890123"}"#,
);
