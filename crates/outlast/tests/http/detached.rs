//! Detached tasks: reports of another program, over HTTP and in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast::detached::{CompletionError, CompletionHandle};
use outlast::store::open_store;
use outlast::store::{MemoryStore, Store};
use outlast::task::Outcome;
use outlast::wire::Raw;
use outlast::{Server, ServerHandle, TaskSupport, Tool, text};
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::http::{self, HttpResponse};
use outlast_testkit::{PostgresServer, within};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A server whose tools detach, and the handles that they give away.
struct Harness {
    server: ServerHandle,
    handles: mpsc::UnboundedReceiver<CompletionHandle>,
}

impl Harness {
    async fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()), HOUR).await
    }

    async fn on_file(file: &Path) -> Self {
        let url = file.to_str().unwrap().parse().unwrap();
        let store = open_store(&url, Default::default()).await.unwrap();
        Self::on(store, HOUR).await
    }

    async fn on(store: Arc<dyn Store>, limit: Duration) -> Self {
        let (given, handles) = mpsc::unbounded_channel();
        let elsewhere = Tool::new("elsewhere", "gives its work away", move |args, cx| {
            let given = given.clone();
            async move {
                let handle = cx.detach(limit).await?;
                given.send(handle)?;
                match args.text("then") {
                    Ok(why) => Err(why.into()),
                    Err(_) => Ok(text("dropped")),
                }
            }
        });
        let server = Server::builder("test", "1")
            .tool(elsewhere.task(TaskSupport::Optional))
            .store(store)
            .callbacks("/callback")
            .build();
        Self {
            server: server.serve_http("127.0.0.1:0").await.unwrap(),
            handles,
        }
    }

    async fn client(&self) -> HttpClient {
        HttpClient::connect(self.server.local_addr()).await
    }

    async fn handle(&mut self) -> CompletionHandle {
        within("a handle", self.handles.recv()).await.unwrap()
    }

    /// Sends a report, or reads the state.
    async fn callback(&self, handle: &str, report: Option<Value>) -> HttpResponse {
        let (method, body) = match report {
            Some(report) => ("POST", report.to_string()),
            None => ("GET", String::new()),
        };
        let request = format!(
            "{method} /callback HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {handle}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        http::send(self.server.local_addr(), request.as_bytes()).await
    }

    /// Sends a report that succeeds, and returns the state.
    async fn report(&self, handle: &CompletionHandle, report: Value) -> Value {
        let answer = self.callback(&handle.to_string(), Some(report)).await;
        assert_eq!(answer.status, 200);
        answer.json().await
    }
}

#[tokio::test]
async fn another_program_reports_and_ends_a_task_once() {
    let mut harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await;
    assert_eq!(handle.task().to_string(), task);
    let state = harness.report(&handle, json!({ "status": "page 1" })).await;
    assert_eq!(state["status"], "working");
    let progress = json!({ "progress": { "done": 1, "total": 2, "message": "page 2" } });
    harness.report(&handle, progress).await;
    let seen = client.status(&task).await;
    assert_eq!(seen["result"]["statusMessage"], "page 2", "{seen}");
    let state = harness
        .report(&handle, json!({ "result": text("done") }))
        .await;
    assert_eq!(state["status"], "completed");
    let again = json!({ "failure": "too late" });
    let again = harness.callback(&handle.to_string(), Some(again)).await;
    assert_eq!(again.status, 409);
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_handle_is_valid_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let mut harness = Harness::on_file(&file).await;
    let mut client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    // As a queue keeps it.
    let handle = serde_json::to_string(&harness.handle().await).unwrap();
    harness.server.shutdown().await.unwrap();

    let harness = Harness::on_file(&file).await;
    client.address = harness.server.local_addr();
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    let handle: CompletionHandle = serde_json::from_str(&handle).unwrap();
    harness
        .report(&handle, json!({ "result": text("done") }))
        .await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn another_program_asks_the_caller_and_reads_the_response() {
    let mut harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await;
    let mut general = client.listen(None).await;
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
    let input = json!({ "key": "who", "kind": "elicitForm", "params": params });
    let state = harness.report(&handle, json!({ "input": input })).await;
    assert_eq!(state["status"], "input_required");
    let (_, request) = general.next_message("elicitation/create").await;
    assert_eq!(request["params"]["message"], "Who?");
    client.respond(&request["id"], "Ada").await;
    client.until(&task, "working").await;
    let state = harness
        .callback(&handle.to_string(), None)
        .await
        .json()
        .await;
    let response = &state["responses"]["who"]["result"];
    assert_eq!(response["content"]["name"], "Ada", "{state}");
    let state = harness.report(&handle, json!({ "confirm": "who" })).await;
    assert_eq!(state["responses"], json!({}));
}

#[tokio::test]
async fn a_wrong_handle_changes_nothing() {
    let mut harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await.to_string();
    let (known, _) = handle.rsplit_once('.').unwrap();
    for wrong in [format!("{known}.x"), "x".into(), task.clone()] {
        let answer = harness
            .callback(&wrong, Some(json!({ "failure": "no" })))
            .await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
    for malformed in [
        json!({}),
        json!([1]),
        json!({ "status": 1 }),
        json!({ "other": 1 }),
    ] {
        let answer = harness.callback(&handle, Some(malformed.clone())).await;
        assert_eq!(answer.status, 400, "{malformed}");
    }
    let sample = json!({ "key": "k", "kind": "sample", "params": { "tools": [] } });
    let answer = harness
        .callback(&handle, Some(json!({ "input": sample })))
        .await;
    assert_eq!(answer.status, 400, "the client cannot sample with tools");
    assert_eq!(client.status(&task).await["result"]["status"], "working");
}

#[tokio::test]
async fn a_failure_after_detach_ends_the_task() {
    let mut harness = Harness::new().await;
    let client = harness.client().await;
    let task = client
        .task("elsewhere", json!({ "then": "the queue is full" }))
        .await;
    harness.handle().await;
    client.until(&task, "failed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "the queue is full");
}

#[tokio::test]
async fn work_without_a_heartbeat_fails_at_its_limit() {
    let store = Arc::new(MemoryStore::new());
    let mut harness = Harness::on(store, Duration::from_millis(300)).await;
    let client = harness.client().await;
    let lost = client.task("elsewhere", json!({})).await;
    let _lost = harness.handle().await;
    let kept = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await;
    let alive = json!({ "heartbeat": { "seconds": 3_600 } });
    harness.report(&handle, alive).await;
    client.until(&lost, "failed").await;
    assert_eq!(client.status(&kept).await["result"]["status"], "working");
}

#[tokio::test]
async fn a_call_that_is_not_a_task_cannot_be_detached() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let result = client.tool("elsewhere", json!({})).await.json().await;
    let said = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("TaskSupport::Required"), "{said}");
}

#[tokio::test]
async fn this_process_ends_a_detached_task_by_its_handle() {
    let mut harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await;
    let completion = harness.server.completion(&handle).await.unwrap();
    let result = Raw::encode(&text("here")).unwrap();
    completion.end(Outcome::Result(result)).await.unwrap();
    let ended = harness.server.completion(&handle).await.map(drop);
    assert_eq!(ended, Err(CompletionError::Ended("completed")));
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_server_ends_a_shared_task() {
    let url = PostgresServer::shared().fresh_url();
    let store = outlast::store::open(&url).await.unwrap();
    let mut harness = Harness::on(store, HOUR).await;
    let client = harness.client().await;
    let task = client.task("elsewhere", json!({})).await;
    let handle = harness.handle().await;
    // The waiter of the first process is registered before the end.
    let waiting = client.clone();
    let id = task.clone();
    let waiter = tokio::spawn(async move {
        let params = json!({ "taskId": id });
        waiting.response("tasks/result", params).await
    });

    let shared = outlast::store::open(&url).await.unwrap();
    let nodes = shared.nodes().await.unwrap().len();
    let wrong = format!("{handle}x").parse().unwrap();
    let refused = outlast::complete(&shared, &wrong).await.map(drop);
    assert_eq!(refused, Err(CompletionError::UnknownHandle));
    let completion = outlast::complete(&shared, &handle).await.unwrap();
    completion.status("printing").await.unwrap();
    let seen = client.status(&task).await;
    assert_eq!(seen["result"]["statusMessage"], "printing", "{seen}");
    completion.heartbeat(HOUR).await.unwrap();
    assert_eq!(completion.state().await.unwrap().status, "working");
    let result = Raw::encode(&text("elsewhere")).unwrap();
    completion
        .end(Outcome::Result(result.clone()))
        .await
        .unwrap();
    let result = within("the waiter wakes", waiter).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "elsewhere");
    let again = completion.status("too late").await;
    assert_eq!(again, Err(CompletionError::Ended("completed")));
    let again = outlast::complete(&shared, &handle).await.map(drop);
    assert_eq!(again, Err(CompletionError::Ended("completed")));
    assert_eq!(shared.nodes().await.unwrap().len(), nodes, "it never joins");
    shared.close().await.unwrap();
}

const HOUR: Duration = Duration::from_secs(3_600);
