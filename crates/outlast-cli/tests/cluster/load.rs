//! Clients that create tasks of each kind and poll them, and that tolerate failed requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outlast_testkit::mcp::{HttpClient, MODERN, tasks_only, with_modern_meta};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::conversations::responses;
use crate::nodes::Cluster;

/// Clients that create tasks until [`Load::finish`].
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: JoinSet<Report>,
}

/// What the clients have in common.
struct Shared {
    stopping: AtomicBool,
    /// Numbers the calls.
    next: AtomicUsize,
}

/// What the clients saw.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The tasks whose creation was acknowledged: their calls and how they ended.
    pub(crate) tasks: BTreeMap<Call, Ending>,
    /// Calls without an acknowledgement, by the reason.
    pub(crate) refused: BTreeMap<String, usize>,
    /// All polls that failed.
    pub(crate) failed_polls: usize,
    /// The highest number of polls of one task that failed in a row.
    pub(crate) failed_in_a_row: usize,
}

/// A call by its tool and its argument `id`.
pub(crate) type Call = (&'static str, String);

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The text of its result.
    Completed(String),
    /// Its error.
    Failed(String),
}

impl Load {
    /// Starts clients of both generations for both servers.
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        let shared = Arc::new(Shared {
            stopping: AtomicBool::new(false),
            next: AtomicUsize::new(0),
        });
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS_OF_EACH_KIND {
            for server in ["child", "remote"] {
                let legacy = cluster.session(server).await;
                clients.spawn(run(legacy, shared.clone()));
                clients.spawn(run(cluster.modern_client(server), shared.clone()));
            }
        }
        Self { shared, clients }
    }

    /// Creates no more tasks, and waits until all have ended.
    pub(crate) async fn finish(mut self) -> Report {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let mut all = Report::default();
        while let Some(report) = self.clients.join_next().await {
            // A client panics if a promise is broken.
            let report =
                report.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            all.tasks.extend(report.tasks);
            for (why, count) in report.refused {
                *all.refused.entry(why).or_default() += count;
            }
            all.failed_polls += report.failed_polls;
            all.failed_in_a_row = all.failed_in_a_row.max(report.failed_in_a_row);
        }
        all
    }
}

/// Creates one task after the other.
async fn run(client: HttpClient, shared: Arc<Shared>) -> Report {
    let mut report = Report::default();
    while !shared.stopping.load(Ordering::SeqCst) {
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        let tool = TOOLS[number % TOOLS.len()];
        // A modern call becomes a task after its grace period of 700 ms.
        let ms = 800 + (number * 373) % 2_000;
        let id = format!("load-{number}");
        let arguments = json!({ "id": id, "ms": ms });
        let task = match create(&client, tool, arguments).await {
            Ok(task) => task,
            Err(why) => {
                *report.refused.entry(why).or_default() += 1;
                sleep(POLL_INTERVAL).await;
                continue;
            }
        };
        let within = timeout(MAX_TASK_TIME, follow(&client, &task, &mut report));
        let ending = within.await.unwrap_or_else(|_| {
            panic!(
                "{tool} {id}: task {task} of a client of {} has not ended",
                client.version
            )
        });
        report.tasks.insert((tool, id), ending);
    }
    report
}

/// Calls a tool as a task and returns the task's id, or why it was not acknowledged.
async fn create(client: &HttpClient, tool: &str, arguments: Value) -> Result<String, String> {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if client.version != MODERN {
        params["task"] = json!({});
    }
    let response = request(client, "tools/call", params).await?;
    let result = &response["result"];
    let task = result["task"]["taskId"].as_str();
    let task = task.or(result["taskId"].as_str()).map(str::to_owned);
    task.ok_or_else(|| response.to_string())
}

/// Polls a task until its end, and responds to its input requests.
async fn follow(client: &HttpClient, task: &str, report: &mut Report) -> Ending {
    let mut failed = 0;
    loop {
        sleep(POLL_INTERVAL).await;
        let got = request(client, "tasks/get", json!({ "taskId": task })).await;
        let state = match got {
            Ok(state) => state["result"].clone(),
            Err(why) => {
                failed += 1;
                report.failed_polls += 1;
                if failed > report.failed_in_a_row {
                    report.failed_in_a_row = failed;
                    eprintln!("poll {failed} in a row failed: {why}");
                }
                continue;
            }
        };
        failed = 0;
        match state["status"].as_str() {
            Some("working") => {}
            Some("input_required") if client.version == MODERN => {
                let responses = responses(&state["inputRequests"]);
                let update = json!({ "taskId": task, "inputResponses": responses });
                // The next poll says whether it was received.
                let _ = request(client, "tasks/update", update).await;
            }
            Some("input_required") => {
                let _ = timeout(REQUEST_TIMEOUT, respond(client, task)).await;
            }
            Some("completed" | "failed") => {
                if let Some(ending) = ending(client, task, &state).await {
                    return ending;
                }
            }
            other => panic!("a task has the status {other:?}"),
        }
    }
}

/// Responds to the input request of a V1 task.
async fn respond(client: &HttpClient, task: &str) {
    let mut answer = client.result(task).await;
    while answer.is_stream()
        && let Some((_, message)) = answer.message().await
    {
        if message["method"] == "elicitation/create" {
            let result = json!({ "action": "accept", "content": { "name": "Ada" } });
            let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            client.post(&response).await;
            return;
        }
    }
}

/// The outcome of a task that has ended; `None` if the request failed.
async fn ending(client: &HttpClient, task: &str, state: &Value) -> Option<Ending> {
    let outcome = if client.version == MODERN {
        state.clone()
    } else {
        let result = request(client, "tasks/result", json!({ "taskId": task }));
        match result.await {
            Ok(result) => result,
            Err(_) if state["status"] == "completed" => return None,
            Err(why) => return Some(Ending::Failed(why)),
        }
    };
    let text = outcome["result"]["content"][0]["text"].as_str();
    Some(match text {
        Some(text) if state["status"] == "completed" => Ending::Completed(text.to_owned()),
        _ => Ending::Failed(outcome.to_string()),
    })
}

/// Sends a request and returns its response, or why it failed.
///
/// # Panics
///
/// If the task or the session is not found.
async fn request(client: &HttpClient, method: &str, params: Value) -> Result<Value, String> {
    let params = if client.version == MODERN {
        let mut can = tasks_only();
        can["elicitation"] = json!({});
        with_modern_meta(params, can)
    } else {
        params
    };
    let sent = timeout(REQUEST_TIMEOUT, async {
        let mut answer = client.request(method, params).await;
        let status = answer.status;
        assert_ne!(status, 404, "{method}: the session is not found");
        if answer.is_stream() {
            let last = answer.rest().await.pop();
            return last.ok_or_else(|| format!("{status}, and a stream without a response"));
        }
        let body = answer.body().await.map_err(|error| error.to_string())?;
        let text = || format!("{status} {}", String::from_utf8_lossy(&body));
        serde_json::from_slice::<Value>(&body).map_err(|_| text())
    });
    let Ok(response) = sent.await else {
        return Err(format!("no response within {REQUEST_TIMEOUT:?}"));
    };
    let response = response?;
    let error = response.get("error").filter(|error| !error.is_null());
    match error {
        None => Ok(response),
        Some(error) => {
            let is_lost = method == "tasks/get" && error["code"] == NOT_FOUND;
            assert!(!is_lost, "an acknowledged task is not found: {error}");
            Err(error.to_string())
        }
    }
}

/// The tools of the sample server. `reads` may run again, the others must not.
const TOOLS: [&str; 3] = ["once", "reads", "asks"];

const CLIENTS_OF_EACH_KIND: usize = 4;

/// Two polls per second, so that five failed polls are 2.5 s.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a client waits for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer than the recovery of a task that two nodes have lost.
const MAX_TASK_TIME: Duration = Duration::from_secs(90);

/// The code of the error for a task that does not exist.
const NOT_FOUND: i64 = -32602;
