//! A client on a pipe. A test may have every message checked, with the method of the request that
//! it responds to.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use super::Line;

/// A client whose messages the test writes.
pub struct LineClient {
    line: Line,
    last_id: i64,
    methods: HashMap<String, String>,
    check: Check,
    /// How many messages of the log are checked.
    checked: usize,
}

/// Checks a message of the server; the method is that of the request that it responds to.
pub type Check = fn(message: &Value, method: Option<&str>);

impl LineClient {
    /// A client on `line` that has `check` look at every message it reads.
    pub fn new(line: Line, check: Check) -> Self {
        Self {
            line,
            last_id: 0,
            methods: HashMap::new(),
            check,
            checked: 0,
        }
    }

    /// Introduces the client and returns the result.
    pub async fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let response = self.call("initialize", params).await;
        self.line
            .notify("notifications/initialized", json!({}))
            .await;
        response
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.fresh_id();
        self.send_as(&json!(id), method, params).await;
        id
    }

    /// Sends a request under an id of choice.
    pub async fn send_as(&mut self, id: &Value, method: &str, params: Value) {
        self.methods.insert(id.to_string(), method.to_owned());
        self.line.request(id, method, params).await;
    }

    /// An id that no request had.
    pub fn fresh_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Sends a request and waits for its response; what else arrives is kept.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.response_to(id).await
    }

    /// The response to a request.
    pub async fn response_to(&mut self, id: impl Into<Value>) -> Value {
        let response = self.line.response_to(&id.into()).await;
        self.check_new();
        response
    }

    /// The next request or notification with that method.
    pub async fn next_message(&mut self, method: &str) -> Value {
        let message = self.line.next_message(method).await;
        self.check_new();
        message
    }

    /// The next message, whichever it is.
    pub async fn next(&mut self) -> Value {
        let message = self.line.next().await;
        self.check_new();
        message
    }

    fn check_new(&mut self) {
        for (_, message) in &self.line.log()[self.checked..] {
            let method = self.methods.get(&message["id"].to_string());
            let responds = message.get("method").is_none();
            let method = method.filter(|_| responds).map(String::as_str);
            (self.check)(message, method);
        }
        self.checked = self.line.log().len();
    }
}

impl Deref for LineClient {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl DerefMut for LineClient {
    fn deref_mut(&mut self) -> &mut Line {
        &mut self.line
    }
}
