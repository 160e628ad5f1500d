//! Typed filters around `tools/list` and the task methods, and the switch of tasks.

use std::sync::Arc;

use async_trait::async_trait;
use outlast::TaskSupport;
use outlast::server::{
    FilteredRequest, IncomingRequest, Middleware, Next, Reply, RequestError, TaskInfo, TaskList,
    ToolList,
};
use outlast::wire::Raw;
use outlast_testkit::within;
use serde_json::json;
use tokio::sync::Notify;

use crate::harness::StdioClient;
use crate::tasks::create;

/// A filter for each kind of request.
struct KindFilter;

#[async_trait]
impl Middleware for KindFilter {
    async fn list_tools(
        &self,
        request: FilteredRequest<'_, ToolList>,
    ) -> Result<ToolList, RequestError> {
        let mut tools = request.run().await?;
        tools.retain_mut(|tool| {
            if tool.name() == "echo" {
                tool.set_task_support(TaskSupport::Optional);
            }
            tool.name() != "sample"
        });
        Ok(tools)
    }

    async fn get_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        // An alias of a task.
        let alias = request
            .task_id()
            .and_then(|id| Some(id.strip_prefix("my ")?.to_owned()));
        let request = match alias {
            Some(id) => request.with_task_id(&id),
            None => request,
        };
        let mut task = request.run().await?;
        let message = format!("filtered {}", task.status().unwrap_or_default());
        task.set_status_message(&message);
        Ok(task)
    }

    async fn task_result(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        let id = request.task_id().unwrap_or_default();
        let result: serde_json::Value = request.run().await?.open().unwrap_or_default();
        let content =
            json!([{ "type": "text", "text": format!("{id} {}", result["content"][0]["text"]) }]);
        Ok(Raw::from(&json!({ "content": content })))
    }

    async fn cancel_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        let id = request.task_id().unwrap_or_default();
        Err(RequestError::invalid_params(format!("{id} is protected")))
    }

    async fn list_tasks(
        &self,
        request: FilteredRequest<'_, TaskList>,
    ) -> Result<TaskList, RequestError> {
        let mut page = request.run().await?;
        let newest = page.tasks().first().and_then(TaskInfo::id);
        page.retain(|task| task.id() == newest);
        Ok(page)
    }
}

async fn client(middleware: impl Middleware) -> StdioClient {
    let mut client = StdioClient::of(|server| server.middleware(middleware)).await;
    client.introduce("2025-11-25", json!({})).await;
    client
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_tools_list_adds_execution_and_hides_tools() {
    // S3-4, S3-32.
    let mut client = client(KindFilter).await;
    let list = client.call("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let echo = named("echo").unwrap();
    assert_eq!(echo["execution"], json!({ "taskSupport": "optional" }));
    assert_eq!(named("sample"), None);
    assert!(named("slow").is_some());
}

#[tokio::test(start_paused = true)]
async fn each_task_method_has_its_own_filter() {
    // S3-21, S3-22.
    let mut client = client(KindFilter).await;
    let first = create(&mut client, "slow").await;
    let id = create(&mut client, "slow").await;
    let task = client
        .call("tasks/get", json!({ "taskId": format!("my {id}") }))
        .await;
    assert_eq!(task["result"]["taskId"], id.as_str());
    assert_eq!(task["result"]["statusMessage"], "filtered working");
    let refused = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["message"], format!("{id} is protected"));
    let list = client.call("tasks/list", json!({})).await;
    let tasks = list["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    assert!(
        [&first, &id]
            .iter()
            .any(|id| tasks[0]["taskId"] == id.as_str())
    );
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    let said = &result["result"]["content"][0]["text"];
    assert_eq!(*said, format!("{id} \"done\""));
    let unknown = client.call("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

/// Sends a log message before every reply, and reports cancelled requests.
struct LogsBeforeReplies(Arc<Notify>);

#[async_trait]
impl Middleware for LogsBeforeReplies {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        let params = json!({ "level": "info", "logger": "filter", "data": request.method });
        let context = next.context();
        context
            .notify("notifications/message", &Raw::from(&params))
            .await;
        let (seen, cancelled) = (self.0.clone(), context.cancelled());
        let watcher = tokio::spawn(async move {
            cancelled.await;
            seen.notify_one();
        });
        let reply = next.run(request).await;
        watcher.abort();
        reply
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_sends_messages_before_the_reply() {
    // S3-30.
    let mut client = client(LogsBeforeReplies(Arc::default())).await;
    client.send("tools/list", json!({})).await;
    let message = client.next_message("notifications/message").await;
    assert_eq!(message["params"]["data"], "initialize");
    let message = client.next_message("notifications/message").await;
    assert_eq!(message["params"]["data"], "tools/list");
}

#[tokio::test]
async fn a_filter_sees_the_cancellation_of_a_request() {
    // S3-31.
    let cancelled = Arc::new(Notify::new());
    let mut client = client(LogsBeforeReplies(cancelled.clone())).await;
    let id = client.send("tools/call", json!({ "name": "slow" })).await;
    let is_call = |message: &serde_json::Value| message["params"]["data"] == "tools/call";
    client.find(is_call).await;
    let params = json!({ "requestId": id, "reason": "enough" });
    client.notify("notifications/cancelled", params).await;
    within("the cancellation", cancelled.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_can_declare_tasks_without_a_tool_for_them() {
    // S2-9, S2-28.
    let plain = |server: outlast::ServerBuilder| server.tasks(true);
    let mut client = StdioClient::without_tools(plain).await;
    let met = client.introduce("2025-11-25", json!({})).await;
    assert!(met["capabilities"]["tasks"].is_object(), "{met}");
    let list = client.call("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"], json!([]));
    let mut client = StdioClient::without_tools(|server| server).await;
    let met = client.introduce("2025-11-25", json!({})).await;
    assert_eq!(met["capabilities"].get("tasks"), None);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_tasks_off_runs_ordinary_calls() {
    // S2-9.
    let mut client = StdioClient::of(|server| server.tasks(false)).await;
    let met = client.introduce("2025-11-25", json!({})).await;
    assert_eq!(met["capabilities"].get("tasks"), None);
    let list = client.call("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("execution").is_none()));
    let call = json!({ "name": "slow", "task": {} });
    let result = client.call("tools/call", call).await;
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    let unknown = client.call("tasks/list", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
}
