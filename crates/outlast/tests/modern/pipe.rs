//! A client on a pipe that speaks by hand, in both eras.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use outlast::front::Front;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use crate::schema;

/// The other end of a pipe.
pub(crate) struct Pipe {
    write: Option<WriteHalf<DuplexStream>>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: i64,
    /// The methods of modern requests.
    modern: HashMap<String, String>,
    early: VecDeque<Value>,
}

impl Pipe {
    pub(crate) fn connect(front: Arc<Front>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(async move {
            outlast::transport::stdio::serve_on(front, BufReader::new(read), write).await
        });
        let (read, write) = tokio::io::split(ours);
        Self {
            write: Some(write),
            lines: BufReader::new(read).lines(),
            next: 0,
            modern: HashMap::new(),
            early: VecDeque::new(),
        }
    }

    /// Sends a modern request that declares tasks and every question, and returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Value {
        self.send_with(method, params, everything()).await
    }

    /// Sends a modern request with these capabilities, and returns its id.
    pub(crate) async fn send_with(&mut self, method: &str, params: Value, can: Value) -> Value {
        self.next += 1;
        let id = json!(format!("m{}", self.next));
        self.modern.insert(id.to_string(), method.to_owned());
        self.write(json!({
            "jsonrpc": "2.0", "id": id, "method": method, "params": said(params, can),
        }))
        .await;
        id
    }

    /// Sends a modern request and waits for its answer; what else arrives is kept.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer_to(&id).await
    }

    pub(crate) async fn call_with(&mut self, method: &str, params: Value, can: Value) -> Value {
        let id = self.send_with(method, params, can).await;
        self.answer_to(&id).await
    }

    /// Calls a tool without arguments.
    pub(crate) async fn tool(&mut self, name: &str) -> Value {
        self.call("tools/call", json!({ "name": name })).await
    }

    /// Calls a tool that becomes a task, and returns the task's id.
    pub(crate) async fn task(&mut self, name: &str) -> String {
        let created = self.tool(name).await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        created["result"]["taskId"].as_str().unwrap().to_owned()
    }

    /// What `tasks/get` says.
    pub(crate) async fn status(&mut self, task: &str) -> Value {
        let got = self.call("tasks/get", json!({ "taskId": task })).await;
        got["result"].clone()
    }

    /// Waits until a task has this status, and returns it.
    pub(crate) async fn until(&mut self, task: &str, status: &str) -> Value {
        loop {
            let now = self.status(task).await;
            if now["status"] == status {
                return now;
            }
            assert!(now.is_object(), "{now}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Sends a legacy request and waits for its answer.
    pub(crate) async fn legacy(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        self.answer_to(&id).await
    }

    pub(crate) async fn answer_to(&mut self, id: &Value) -> Value {
        self.find(|message| message["id"] == *id && message.get("method").is_none())
            .await
    }

    /// The next notification with that method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn write(&mut self, message: Value) {
        let line = format!("{message}\n");
        let write = self.write.as_mut().unwrap();
        write.write_all(line.as_bytes()).await.unwrap();
    }

    /// Says nothing more, and returns what arrives until the other end closes.
    pub(crate) async fn close(&mut self) -> Vec<Value> {
        self.write.take().unwrap().shutdown().await.unwrap();
        let mut rest = Vec::from(std::mem::take(&mut self.early));
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }

    /// Nothing arrives for a while.
    pub(crate) async fn silence(&mut self) {
        assert_eq!(self.early.pop_front(), None);
        let heard = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let message = self.read().await;
            if wanted(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(3_600), self.lines.next_line());
        let line = line.await.expect("an answer").unwrap();
        let message: Value = serde_json::from_str(&line.expect("the pipe is open")).unwrap();
        let method = self.modern.get(&message["id"].to_string());
        let legacy = message["id"].is_i64() || message["method"] == "notifications/tasks/status";
        if !legacy {
            schema::check(&message, method.map(String::as_str));
        }
        message
    }
}

/// Capabilities of a client that can do everything.
pub(crate) fn everything() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {},
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

/// Capabilities of a client that takes no tasks.
pub(crate) fn no_tasks() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

/// `params` with what every modern request says.
pub(crate) fn said(mut params: Value, can: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can;
    let info = &mut params["_meta"]["io.modelcontextprotocol/clientInfo"];
    if info.is_null() {
        *info = json!({ "name": "by-hand", "version": "1" });
    }
    params
}
