//! Tools that run as tasks of 2026-07-28. Tasks exist as long as the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ClientCapabilities, ErrorData};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::rounds::{ELICIT, input_required};
use crate::{Context, ToolResponse, form, text, typed, untyped};

/// All tasks, by id.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Arc<Task>>>);

/// One task: its `tasks/get` result, and the responses to its input requests.
struct Task {
    shown: Mutex<Value>,
    responses: Mutex<Map<String, Value>>,
    changed: Notify,
}

impl Tasks {
    /// The response of a tool that runs as a task; `None` for any other, or without a task.
    pub(crate) async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Option<ToolResponse>, ErrorData> {
        let arguments = untyped(&request.arguments)?;
        let can = untyped(&context.client_capabilities())?;
        let takes_tasks = can["extensions"][EXTENSION].is_object();
        let work = match &*request.name {
            "slow_compute" => Work::Compute(
                arguments["seconds"].as_f64().unwrap_or(1.0),
                arguments["label"].as_str().unwrap_or("it").to_owned(),
            ),
            "failing_job" => Work::Fail,
            "protocol_error_job" => Work::Break,
            "confirm_delete" => Work::Delete(
                arguments["filename"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            ),
            "multi_input" => Work::AskTwice,
            "test_tool_with_task" => {
                let responses = untyped(&request.input_responses)?;
                let name = responses["user_name"]["content"]["name"].as_str();
                match name {
                    Some(name) => Work::Greet(name.to_owned()),
                    None if takes_tasks => {
                        let input = form("What is your name?", "name", "string");
                        return Ok(Some(input_required([("user_name", ELICIT, input)], None)));
                    }
                    None => Work::Greet(String::new()),
                }
            }
            _ => return Ok(None),
        };
        if !takes_tasks {
            return match work {
                Work::Compute(seconds, label) => {
                    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                    Ok(Some(ToolResponse::Result(text(format!(
                        "{label} is computed"
                    )))))
                }
                _ => {
                    let needed = json!({ "extensions": { EXTENSION: {} } });
                    let needed: ClientCapabilities = typed(needed)?;
                    Err(ErrorData::missing_required_client_capability(needed))
                }
            };
        }
        Ok(Some(ToolResponse::Task(self.start(work))))
    }

    fn start(&self, work: Work) -> Value {
        let mut all = lock(&self.0);
        let id = format!("task-{}", all.len() + 1);
        let mut shown = json!({
            "taskId": id,
            "status": "working",
            "createdAt": NOW,
            "lastUpdatedAt": NOW,
            "ttlMs": 300_000,
            "pollIntervalMs": 100,
        });
        let task = Arc::new(Task {
            shown: Mutex::new(shown.clone()),
            responses: Mutex::default(),
            changed: Notify::new(),
        });
        all.insert(id, task.clone());
        tokio::spawn(work.run(task));
        shown["resultType"] = json!("task");
        shown
    }

    pub(crate) fn get(&self, id: &str) -> Result<Value, ErrorData> {
        let task = self.find(id)?;
        let mut shown = lock(&task.shown).clone();
        shown["resultType"] = json!("complete");
        Ok(shown)
    }

    pub(crate) fn update(&self, id: &str, responses: &Value) -> Result<(), ErrorData> {
        let task = self.find(id)?;
        {
            let (mut shown, mut answered) = (lock(&task.shown), lock(&task.responses));
            for (key, response) in responses.as_object().into_iter().flatten() {
                let open = shown["inputRequests"].as_object_mut();
                if open.is_some_and(|open| open.remove(key).is_some()) {
                    answered.insert(key.clone(), response.clone());
                }
            }
        }
        task.changed.notify_one();
        Ok(())
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.find(id)?.end("cancelled", None);
        Ok(())
    }

    fn find(&self, id: &str) -> Result<Arc<Task>, ErrorData> {
        let task = lock(&self.0).get(id).cloned();
        task.ok_or_else(|| ErrorData::invalid_params("task not found", None))
    }
}

impl Task {
    /// Ends the task, unless it has ended.
    fn end(&self, status: &str, outcome: Option<(&str, Value)>) {
        let mut shown = lock(&self.shown);
        if !matches!(shown["status"].as_str(), Some("working" | "input_required")) {
            return;
        }
        shown["status"] = json!(status);
        if let Some(members) = shown.as_object_mut() {
            members.remove("inputRequests");
            if let Some((name, value)) = outcome {
                members.insert(name.into(), value);
            }
        }
        drop(shown);
        self.changed.notify_one();
    }

    /// Sends input requests and waits for all responses.
    async fn ask(&self, asks: &[(&str, Value)]) -> Map<String, Value> {
        let request = |params: &Value| json!({ "method": ELICIT, "params": params });
        let requests = asks
            .iter()
            .map(|(key, params)| ((*key).into(), request(params)));
        let requests: Map<_, _> = requests.collect();
        {
            let mut shown = lock(&self.shown);
            shown["status"] = json!("input_required");
            shown["inputRequests"] = Value::Object(requests);
        }
        while lock(&self.responses).len() < asks.len() {
            self.changed.notified().await;
        }
        let mut shown = lock(&self.shown);
        if shown["status"] == "input_required" {
            shown["status"] = json!("working");
            if let Some(members) = shown.as_object_mut() {
                members.remove("inputRequests");
            }
        }
        lock(&self.responses).clone()
    }
}

/// What a task does.
enum Work {
    /// Takes this number of seconds.
    Compute(f64, String),
    Fail,
    /// Ends in a JSON-RPC error.
    Break,
    Delete(String),
    AskTwice,
    Greet(String),
}

impl Work {
    async fn run(self, task: Arc<Task>) {
        let result = match self {
            Self::Compute(seconds, label) => {
                tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
                text(format!("{label} is computed"))
            }
            Self::Fail => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut result = text("the job failed");
                result["isError"] = json!(true);
                result
            }
            Self::Break => {
                tokio::time::sleep(SHORT_DELAY).await;
                let error = json!({ "code": -32603, "message": "the job broke" });
                return task.end("failed", Some(("error", error)));
            }
            Self::Delete(file) => {
                let request = form(&format!("Delete {file}?"), "confirm", "boolean");
                let answers = task.ask(&[("confirm", request)]).await;
                let word = if answers["confirm"]["content"]["confirm"] == true {
                    "deleted"
                } else {
                    "kept"
                };
                text(format!("{file} {word}"))
            }
            Self::AskTwice => {
                let name = form("What is your name?", "name", "string");
                let sure = form("Are you sure?", "confirm", "boolean");
                let answers = task.ask(&[("name", name), ("sure", sure)]).await;
                text(Value::Object(answers).to_string())
            }
            Self::Greet(name) => {
                tokio::time::sleep(SHORT_DELAY).await;
                text(format!("Hello, {name}!"))
            }
        };
        task.end("completed", Some(("result", result)));
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A constant time, which the suite does not check.
const NOW: &str = "2026-08-10T08:00:00Z";

/// Shorter than the default grace period.
const SHORT_DELAY: Duration = Duration::from_millis(200);
