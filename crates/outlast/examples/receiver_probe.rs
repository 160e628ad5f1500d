//! A server that creates tasks at its client: it sends sampling and elicitation with `task`, polls,
//! fetches and cancels on command, and returns a record of every message.
//!
//! It reads and writes standard input and output without our library, so that the record shows
//! exactly what the client sent. `cargo run --example receiver_probe -- [FILE]`: the record also
//! goes to FILE.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, StdinLock, Write};
use std::time::Duration;

use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let file = std::env::args().nth(1).map(File::create).transpose()?;
    let mut probe = Probe {
        lines: std::io::stdin().lock(),
        file,
        declared: Value::Null,
        record: Vec::new(),
        answers: HashMap::new(),
        next: 0,
    };
    while let Some(message) = probe.read()? {
        if message["method"] == "tools/call" {
            probe.record.clear();
            let arguments = &message["params"]["arguments"];
            let record = match probe.act(arguments)? {
                Some(record) => record,
                None => break,
            };
            probe.answer(&message, reply_to(&record))?;
        } else {
            probe.serve(&message)?;
        }
    }
    // The client has disconnected.
    probe.note(json!({ "ended": true }))
}

/// The server.
struct Probe {
    lines: StdinLock<'static>,
    file: Option<File>,
    /// The task capability of the client.
    declared: Value,
    record: Vec<Value>,
    /// Responses that arrived early.
    answers: HashMap<String, Value>,
    next: u64,
}

impl Probe {
    /// Executes a call of the tool. `None` if the client has disconnected.
    fn act(&mut self, arguments: &Value) -> Result<Option<Value>, Failure> {
        let method = arguments["request"].as_str().unwrap_or_default();
        let (kind, mut params) = match method {
            "sampling/createMessage" => ("sampling", sampling()),
            _ => ("elicitation", elicitation()),
        };
        // The client declares, a server only reads.
        let name = method.rsplit('/').next().unwrap_or_default();
        if self.declared["requests"][kind].get(name).is_none() {
            return Ok(Some(json!({ "refused": "the client takes no such tasks" })));
        }
        params["task"] = match &arguments["ttl"] {
            Value::Null => json!({}),
            ttl => json!({ "ttl": ttl }),
        };
        let Some(created) = self.ask(method, params)? else {
            return Ok(None);
        };
        let task = json!({ "taskId": created["result"]["task"]["taskId"] });
        let went = match arguments["then"].as_str() {
            Some("leave") => {
                self.until_asked(&task)?;
                std::process::exit(0)
            }
            Some("cancel") => self.cancel(&task)?,
            Some("wait") => self.ask("tasks/result", task.clone())?,
            _ => self.poll(&task)?,
        };
        if went.is_none() {
            return Ok(None);
        }
        // Its last status, from `tasks/get` and in the list.
        let last = self.ask("tasks/get", task)?;
        let list = self.ask("tasks/list", json!({}))?;
        let record = std::mem::take(&mut self.record);
        Ok(last.and(list).map(|_| json!({ "record": record })))
    }

    /// Polls at the client's interval until the task has ended, then fetches the result.
    fn poll(&mut self, task: &Value) -> Result<Option<Value>, Failure> {
        loop {
            let Some(look) = self.ask("tasks/get", task.clone())? else {
                return Ok(None);
            };
            let look = &look["result"];
            if !matches!(look["status"].as_str(), Some("working" | "input_required")) {
                return self.ask("tasks/result", task.clone());
            }
            let pause = look["pollInterval"].as_u64().unwrap_or(1_000);
            std::thread::sleep(Duration::from_millis(pause));
        }
    }

    /// Polls until the task waits for the user or has ended.
    fn until_asked(&mut self, task: &Value) -> Result<(), Failure> {
        while let Some(look) = self.ask("tasks/get", task.clone())? {
            if look["result"]["status"] != "working" {
                break;
            }
        }
        Ok(())
    }

    /// Requests the result, cancels the task, and cancels it again.
    fn cancel(&mut self, task: &Value) -> Result<Option<Value>, Failure> {
        self.until_asked(task)?;
        let waiting = self.send("tasks/result", task.clone())?;
        let cancelled = self.ask("tasks/cancel", task.clone())?;
        let waited = self.await_answer(&waiting)?;
        let again = self.ask("tasks/cancel", task.clone())?;
        Ok(cancelled.and(waited).and(again))
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Option<Value>, Failure> {
        let id = self.send(method, params)?;
        self.await_answer(&id)
    }

    fn send(&mut self, method: &str, params: Value) -> Result<String, Failure> {
        self.next += 1;
        let id = format!("probe-{}", self.next);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.note(json!({ "sent": request }))?;
        say(&request)?;
        Ok(id)
    }

    /// The response to a request, serving the client meanwhile. `None` if the client disconnects.
    fn await_answer(&mut self, id: &str) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(answer) = self.answers.remove(id) {
                return Ok(Some(answer));
            }
            let Some(message) = self.read()? else {
                return Ok(None);
            };
            match (&message["method"], message["id"].as_str()) {
                (Value::Null, Some(id)) => {
                    self.note(json!({ "received": message }))?;
                    self.answers.insert(id.to_owned(), message);
                }
                (Value::String(method), _) if method == "notifications/tasks/status" => {
                    self.note(json!({ "received": message }))?;
                }
                _ => self.serve(&message)?,
            }
        }
    }

    /// The next message of the client. `None` at the end of the input.
    fn read(&mut self) -> Result<Option<Value>, Failure> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }

    /// Answers the standard requests of a client.
    fn serve(&mut self, request: &Value) -> Result<(), Failure> {
        match request["method"].as_str() {
            Some("initialize") => {
                self.declared = request["params"]["capabilities"]["tasks"].clone();
                let hello = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "receiver-probe", "version": "1" },
                });
                self.answer(request, hello)
            }
            Some("tools/list") => self.answer(request, json!({ "tools": [tool()] })),
            Some("ping") => self.answer(request, json!({})),
            Some(_) if request.get("id").is_some() => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                say(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }))
            }
            _ => Ok(()),
        }
    }

    fn answer(&self, request: &Value, result: Value) -> Result<(), Failure> {
        say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
    }

    fn note(&mut self, entry: Value) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{entry}")?;
        }
        self.record.push(entry);
        Ok(())
    }
}

fn say(message: &Value) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()?;
    Ok(())
}

fn reply_to(record: &Value) -> Value {
    let text = json!({ "type": "text", "text": record.to_string() });
    json!({ "content": [text], "structuredContent": record })
}

fn tool() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "name": "probe",
        "description": "Makes a task at the client and records what becomes of it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "request": text("sampling/createMessage or elicitation/create"),
                "ttl": { "type": "integer", "description": "How long the task shall live, in milliseconds." },
                "then": text("poll (and fetch), wait (for the result), cancel, or leave (the process ends)"),
            },
            "required": ["request"],
        },
    })
}

fn sampling() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Say hello." } });
    json!({ "messages": [message], "maxTokens": 100 })
}

fn elicitation() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    json!({ "mode": "form", "message": "Who is there?", "requestedSchema": schema })
}
