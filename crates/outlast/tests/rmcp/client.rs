//! A server with a lab behind it, and clients that speak by hand on a pipe.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast::engine::{Engine, Store};
use outlast::front::Front;
use outlast::rmcp::RmcpServer;
use outlast::{Outlast, TaskSupport};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use crate::lab::{Equipment, Told};

/// A running server.
pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) front: Arc<Front>,
    pub(crate) equipment: Arc<Equipment>,
    pub(crate) told: Told,
}

/// A client on a pipe.
pub(crate) struct Client {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: i64,
    methods: BTreeMap<i64, String>,
    /// What arrived while something else was waited for.
    early: VecDeque<Value>,
}

/// A lab whose tools run as tasks, all but `echo`.
pub(crate) fn lab(outlast: &Outlast, equipment: &Arc<Equipment>) -> RmcpServer {
    let equipment = equipment.clone();
    let server = outlast.rmcp(move || equipment.lab());
    let tools = [
        "gated",
        "boom",
        "flagged",
        "steps",
        "elicit",
        "elicit apart",
        "sample and roots",
        "listens",
        "deaf",
        "shout",
        "caller",
    ];
    tools.into_iter().fold(server, |server, tool| {
        server.task(tool, TaskSupport::Optional)
    })
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::of(Outlast::builder().build()).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>) -> Self {
        Self::of(Outlast::builder().store(store).build()).await
    }

    async fn of(outlast: Outlast) -> Self {
        let (equipment, told) = Equipment::new();
        let server = lab(&outlast, &equipment).server();
        let (engine, front) = server.open().await.unwrap();
        Self {
            engine,
            front,
            equipment,
            told,
        }
    }

    /// A client that can be asked everything, introduced at 2025-11-25.
    pub(crate) async fn client(&self) -> Client {
        let mut client = Client::connect(self.front.clone());
        let all = json!({ "elicitation": {}, "sampling": {}, "roots": {}, "tasks": {} });
        client.introduce(all).await;
        client
    }

    /// Waits until a handler tells this.
    pub(crate) async fn hear(&mut self, wanted: &str) {
        loop {
            let told = tokio::time::timeout(LONG, self.told.recv()).await;
            let told = told.unwrap_or_else(|_| panic!("nobody told {wanted}"));
            if told.as_deref() == Some(wanted) {
                return;
            }
        }
    }
}

impl Client {
    pub(crate) fn connect(front: Arc<Front>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(async move {
            outlast::transport::stdio::serve_on(front, BufReader::new(read), write).await
        });
        let (read, write) = tokio::io::split(ours);
        Self {
            write,
            lines: BufReader::new(read).lines(),
            next: 0,
            methods: BTreeMap::new(),
            early: VecDeque::new(),
        }
    }

    pub(crate) async fn introduce(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let answer = self.call("initialize", params).await;
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.methods.insert(id, method.into());
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer_to(id).await
    }

    /// A request of 2026-07-28 by a client that takes tasks and can be asked for a form, and its answer.
    pub(crate) async fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "2" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": { "form": {} },
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        self.next += 1;
        let id = self.next;
        // The schema here is that of 2025-11-25.
        self.methods.insert(id, "modern".into());
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        self.answer_to(id).await
    }

    /// Calls a tool plainly and returns the text of its result.
    pub(crate) async fn tool(&mut self, name: &str) -> String {
        let answer = self.call("tools/call", json!({ "name": name })).await;
        text(&answer)
    }

    /// Calls a tool as a task and returns the task.
    pub(crate) async fn task(&mut self, name: &str) -> String {
        let params = json!({ "name": name, "task": {}, "_meta": { "progressToken": "p" } });
        let created = self.call("tools/call", params).await;
        let task = created["result"]["task"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    pub(crate) async fn result(&mut self, task: &str) -> Value {
        self.call("tasks/result", json!({ "taskId": task })).await
    }

    pub(crate) async fn status(&mut self, task: &str) -> String {
        let answer = self.call("tasks/get", json!({ "taskId": task })).await;
        answer["result"]["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) async fn answer_to(&mut self, id: i64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// The next request or notification with that method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        let method = method.to_owned();
        self.find(move |message| message["method"] == method).await
    }

    /// Whether such a message has arrived that nobody waited for.
    pub(crate) fn has_early(&self, method: &str) -> bool {
        self.early.iter().any(|message| message["method"] == method)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn respond(&mut self, id: &Value, result: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Answers a question for a name.
    pub(crate) async fn name(&mut self, asked: &Value, name: &str) {
        let result = json!({ "action": "accept", "content": { "name": name } });
        self.respond(&asked["id"], result).await;
    }

    async fn write(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let line = tokio::time::timeout(LONG, self.lines.next_line()).await;
            let line = line.expect("an answer").unwrap().expect("the pipe is open");
            let message: Value = serde_json::from_str(&line).unwrap();
            self.check(&message);
            if wanted(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// Holds a message of the server against the official schema.
    fn check(&self, message: &Value) {
        let method = message["method"].as_str();
        let (shape, part) = match (message["id"].as_i64(), method) {
            (_, Some(method)) => (of_method(method), message),
            (_, None) if message.get("error").is_some() => ("JSONRPCErrorResponse", message),
            (Some(id), None) => (result_of(&self.methods[&id], message), &message["result"]),
            (None, None) => panic!("{message} is no message"),
        };
        static SCHEMA: OnceLock<Value> = OnceLock::new();
        let schema = SCHEMA.get_or_init(|| {
            let text = include_str!("../../../outlast-wire/tests/schemas/mcp-2025-11-25.json");
            serde_json::from_str(text).unwrap()
        });
        let mut of_shape = schema.clone();
        of_shape["$ref"] = format!("#/$defs/{shape}").into();
        let validator = jsonschema::validator_for(&of_shape).unwrap();
        if let Err(error) = validator.validate(part) {
            panic!("{message} is no {shape}: {error}");
        }
    }
}

/// The first text of a result, or the message of an error.
pub(crate) fn text(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.or(answer["error"]["message"].as_str());
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn of_method(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        "notifications/tasks/status" => "TaskStatusNotification",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        other => panic!("{other} is not expected here"),
    }
}

fn result_of(method: &str, message: &Value) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "tools/list" => "ListToolsResult",
        "tools/call" if message["result"].get("task").is_some() => "CreateTaskResult",
        "tools/call" | "tasks/result" => "CallToolResult",
        "tasks/get" => "GetTaskResult",
        "tasks/cancel" => "CancelTaskResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        _ => "Result",
    }
}

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(3_600);
