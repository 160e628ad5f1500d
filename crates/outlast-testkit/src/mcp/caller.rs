//! A client of each kind, which calls a tool in its own way and drives the call to its end, over a
//! pipe or HTTP.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::endpoint::{ServerEndpoint, Wire};
use super::http_request::with_modern_meta;
use crate::limit::POLL_INTERVAL;
use crate::within;

/// How a client does tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// No tasks, with a session.
    PlainLegacy,
    /// No tasks, without a session.
    PlainModern,
    /// Tasks of 2025-11-25.
    V1,
    /// Tasks of 2026-07-28.
    V2,
}

impl ClientKind {
    /// The word for it in documents.
    pub fn word(self) -> &'static str {
        match self {
            Self::PlainLegacy => "no tasks, up to 2025-11-25",
            Self::PlainModern => "no tasks, 2026-07-28",
            Self::V1 => "V1",
            Self::V2 => "V2",
        }
    }

    /// The version that it speaks.
    fn version(self) -> &'static str {
        match self {
            Self::PlainLegacy => "2025-06-18",
            Self::V1 => "2025-11-25",
            Self::PlainModern | Self::V2 => "2026-07-28",
        }
    }

    fn is_modern(self) -> bool {
        matches!(self, Self::PlainModern | Self::V2)
    }

    /// Whether it has tasks.
    pub fn has_tasks(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }
}

/// Every kind.
pub const CLIENT_KINDS: [ClientKind; 4] = [
    ClientKind::PlainLegacy,
    ClientKind::PlainModern,
    ClientKind::V1,
    ClientKind::V2,
];

/// The end of a call, without the parts that depend on the generation.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEnd {
    /// A result.
    Result(Value),
    /// A code and a message.
    Error(i64, String),
    /// It was cancelled.
    Cancelled,
}

/// The response to an input request: a result or an error.
pub type Responder = fn(&str, &Value) -> Result<Value, Value>;

/// A client whose calls the test makes.
pub struct Caller {
    /// How it does tasks.
    pub kind: ClientKind,
    name: &'static str,
    /// How it responds to input requests.
    pub responder: Responder,
    /// Leaves input requests open, and records them like notifications.
    pub leaves_input_open: bool,
    /// The capabilities that it declares.
    pub capabilities: Value,
    /// Every input request that it received, with its method.
    pub input_requests: Vec<(String, Value)>,
    /// The notifications of the server.
    pub notifications: Vec<Value>,
    /// The result of `initialize` or `server/discover`.
    pub server_info: Value,
    wire: Wire,
    skipped: VecDeque<Value>,
    next: i64,
}

impl Caller {
    /// A client named `by-hand` that accepts every kind of input request.
    pub async fn connect(kind: ClientKind, endpoint: &ServerEndpoint) -> Self {
        Self::connect_as(kind, endpoint, "by-hand", everything()).await
    }

    /// A client named `name` that declares these capabilities.
    pub async fn connect_as(
        kind: ClientKind,
        endpoint: &ServerEndpoint,
        name: &'static str,
        capabilities: Value,
    ) -> Self {
        let mut caller = Self {
            kind,
            name,
            responder: accepting,
            leaves_input_open: false,
            capabilities,
            input_requests: Vec::new(),
            notifications: Vec::new(),
            server_info: Value::Null,
            wire: Wire::to(endpoint, kind.version()),
            skipped: VecDeque::new(),
            next: 0,
        };
        caller.introduce().await;
        caller
    }

    async fn introduce(&mut self) {
        if self.kind.is_modern() {
            self.server_info = self.request("server/discover", json!({})).await["result"].clone();
            return;
        }
        let mut capabilities = self.capabilities.clone();
        if self.kind == ClientKind::V1 {
            capabilities["tasks"] = json!({});
        }
        let hello = json!({
            "protocolVersion": self.kind.version(),
            "capabilities": capabilities,
            "clientInfo": { "name": self.name, "version": "1" },
        });
        self.server_info = self.request("initialize", hello).await["result"].clone();
        self.notify("notifications/initialized", json!({})).await;
        if let Wire::Http(http) = &mut self.wire {
            http.listen().await;
        }
    }

    /// Closes the connection, with every request that is open on it.
    pub fn disconnect(&mut self) {
        self.skipped.clear();
        match &mut self.wire {
            Wire::Http(http) => http.disconnect(),
            Wire::Pipe { .. } | Wire::Closed => self.wire = Wire::Closed,
        }
    }

    /// Connects again: over HTTP in its session, on a pipe as a new client.
    pub async fn reconnect(&mut self, endpoint: &ServerEndpoint) {
        match &mut self.wire {
            Wire::Http(_) if self.kind.is_modern() => {}
            Wire::Http(http) => http.listen().await,
            Wire::Pipe { .. } | Wire::Closed => {
                self.wire = Wire::to(endpoint, self.kind.version());
                self.introduce().await;
            }
        }
    }

    /// Calls a tool, responds to its input requests and returns its end.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> CallEnd {
        let params = json!({ "name": tool, "arguments": arguments });
        let begun = self.begin(params.clone()).await;
        self.finish(params, begun).await
    }

    /// Calls a tool, and returns the first response.
    pub async fn begin(&mut self, mut params: Value) -> Value {
        if self.kind == ClientKind::V1 {
            params["task"] = json!({});
        }
        self.request("tools/call", params).await
    }

    /// Drives a call to its end from its first response.
    pub async fn finish(&mut self, params: Value, mut response: Value) -> CallEnd {
        loop {
            let result = &response["result"];
            let kind = result["resultType"].as_str();
            if let Some(task) = result["task"]["taskId"].as_str() {
                let task = json!({ "taskId": task });
                response = self.request("tasks/result", task).await;
            } else if kind == Some("task") {
                return self.poll(result["taskId"].clone()).await;
            } else if kind == Some("input_required") {
                response = self.retry(params.clone(), result).await;
            } else {
                return call_end(&response);
            }
        }
    }

    /// Waits for a task with the helper tool, as a client without tasks does, and responds to
    /// its input requests.
    pub async fn wait(&mut self, task: &Value) -> CallEnd {
        let params = json!({ "name": "task_wait", "arguments": task });
        loop {
            let mut response = self.request("tools/call", params.clone()).await;
            while response["result"]["resultType"] == "input_required" {
                response = self.retry(params.clone(), &response["result"]).await;
            }
            if response["result"]["structuredContent"]["ticket"].is_null() {
                return call_end(&response);
            }
        }
    }

    /// Retries a call with responses to the input requests of the first response.
    pub async fn retry(&mut self, mut params: Value, result: &Value) -> Value {
        params["inputResponses"] = self.respond(&result["inputRequests"], &mut Vec::new());
        if let Some(state) = result.get("requestState") {
            params["requestState"] = state.clone();
        }
        self.request("tools/call", params).await
    }

    async fn poll(&mut self, task: Value) -> CallEnd {
        let mut answered = Vec::new();
        let task = json!({ "taskId": task });
        loop {
            let now = self.until(&task, |now| now["status"] != "working").await;
            match now["status"].as_str().unwrap_or_else(|| panic!("{now}")) {
                "completed" | "failed" => {
                    return call_end(
                        &json!({ "result": now.get("result"), "error": now.get("error") }),
                    );
                }
                "cancelled" => return CallEnd::Cancelled,
                _ => {
                    let requests = &now["inputRequests"];
                    self.update(&task["taskId"], requests, &mut answered).await;
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// Polls a task until the result of `tasks/get` is `wanted`, and returns that result.
    pub async fn until(&mut self, task: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        // Not `wait_for`: the future of an async closure cannot be spawned.
        let reached = async {
            loop {
                let got = self.request("tasks/get", task.clone()).await;
                assert!(got.get("result").is_some(), "{got}");
                if wanted(&got["result"]) {
                    return got["result"].clone();
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        within("the state of a task", reached).await
    }

    /// Responds to input requests of a task that have no response yet.
    pub async fn update(&mut self, task: &Value, requests: &Value, answered: &mut Vec<String>) {
        let responses = self.respond(requests, answered);
        let update = json!({ "taskId": task, "inputResponses": responses });
        self.request("tasks/update", update).await;
    }

    /// The responses to input requests that have no response yet.
    fn respond(&mut self, requests: &Value, answered: &mut Vec<String>) -> Value {
        let mut responses = Map::new();
        for (key, request) in requests.as_object().expect("an object") {
            if answered.contains(key) {
                continue;
            }
            answered.push(key.clone());
            let method = request["method"].as_str().expect("a string");
            self.input_requests
                .push((method.into(), request["params"].clone()));
            // In this era a response to an input request cannot be an error.
            let response = (self.responder)(method, &request["params"]);
            responses.insert(
                key.clone(),
                response.unwrap_or_else(|_| json!({ "action": "cancel" })),
            );
        }
        Value::Object(responses)
    }

    /// Sends a request and waits for its response. Meanwhile it responds to input requests.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.response_to(id).await
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        let params = if self.kind.is_modern() {
            self.modern(params)
        } else {
            params
        };
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// The response to a request. Until it arrives, the caller responds to input requests.
    pub async fn response_to(&mut self, id: i64) -> Value {
        loop {
            let ours = |message: &Value| message["id"] == id && message.get("method").is_none();
            if let Some(at) = self.skipped.iter().position(ours) {
                return self.skipped.remove(at).expect("it is at this place");
            }
            self.receive().await;
        }
    }

    /// Waits for a notification of that method.
    pub async fn wait_for_notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self
                .notifications
                .iter()
                .position(|notification| notification["method"] == method)
            {
                return self.notifications.remove(at);
            }
            self.receive().await;
        }
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Cancels a running call: by the task that its first response names, or by the id of its
    /// request.
    pub async fn cancel(&mut self, id: i64) {
        let params = match self.kind {
            ClientKind::PlainModern if self.wire.close(id) => return,
            ClientKind::PlainLegacy | ClientKind::PlainModern => {
                let cancelled = json!({ "requestId": id, "reason": "enough" });
                return self.notify("notifications/cancelled", cancelled).await;
            }
            ClientKind::V1 => self.response_to(id).await["result"]["task"]["taskId"].clone(),
            ClientKind::V2 => self.response_to(id).await["result"]["taskId"].clone(),
        };
        let cancelled = self
            .request("tasks/cancel", json!({ "taskId": params }))
            .await;
        assert!(cancelled.get("error").is_none(), "{cancelled}");
        let task = json!({ "taskId": params });
        let ended = |now: &Value| now["status"] != "working";
        let now = self.until(&task, ended).await;
        assert_eq!(now["status"], "cancelled", "{now}");
    }

    fn modern(&self, mut params: Value) -> Value {
        let mut capabilities = self.capabilities.clone();
        if self.kind == ClientKind::V2 {
            capabilities["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
        }
        params["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({ "name": self.name, "version": "1" });
        with_modern_meta(params, capabilities)
    }

    async fn receive(&mut self) {
        let message = self.wire.receive().await;
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) if !self.leaves_input_open => {
                self.input_requests
                    .push((method.into(), message["params"].clone()));
                let answered = match (self.responder)(method, &message["params"]) {
                    Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
                };
                self.write(answered).await;
            }
            (Some(_), _) => self.notifications.push(message),
            (None, _) => self.skipped.push_back(message),
        }
    }

    /// Sends any message.
    pub async fn write(&mut self, message: Value) {
        self.wire.send(message).await;
    }
}

/// The capabilities of a client that accepts every input request.
pub fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

fn call_end(response: &Value) -> CallEnd {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        if error["data"]["status"] == "cancelled" {
            return CallEnd::Cancelled;
        }
        let message = error["message"].as_str().expect("a string").to_owned();
        return CallEnd::Error(error["code"].as_i64().expect("a number"), message);
    }
    let mut result = response["result"].clone();
    let members = result
        .as_object_mut()
        .unwrap_or_else(|| panic!("{response}"));
    members.remove("resultType");
    if let Some(Value::Object(meta)) = members.get_mut("_meta") {
        meta.remove("io.modelcontextprotocol/related-task");
        meta.remove("io.modelcontextprotocol/serverInfo");
        if meta.is_empty() {
            members.remove("_meta");
        }
    }
    CallEnd::Result(result)
}

/// The task that the response to a call names: as a handle of either generation, or in a ticket.
pub fn task_in(response: &Value) -> Option<&str> {
    let result = &response["result"];
    let places = [
        &result["task"]["taskId"],
        &result["taskId"],
        &result["structuredContent"]["ticket"]["taskId"],
    ];
    places.into_iter().find_map(Value::as_str)
}

/// Accepts every input request.
pub fn accepting(method: &str, params: &Value) -> Result<Value, Value> {
    Ok(match method {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": format!("Ada/{}", params["message"].as_str().expect("a string")) } })
        }
        "sampling/createMessage" => {
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "a thought" } })
        }
        "roots/list" => json!({ "roots": [{ "uri": "file:///home/ada" }] }),
        other => panic!("{other} is not an input request"),
    })
}

/// Declines every input request.
pub fn declining(method: &str, _: &Value) -> Result<Value, Value> {
    match method {
        "elicitation/create" => Ok(json!({ "action": "decline" })),
        _ => Err(json!({ "code": -1, "message": "User rejected sampling request" })),
    }
}
