//! Tasks from creation to result.

use std::sync::Arc;
use std::time::Duration;

use outlast::store::MemoryStore;
use outlast::task::Policy;
use outlast::task::TtlPolicy;
use outlast::{TaskSupport, Tool, Tools, text};
use serde_json::{Value, json};

use crate::harness::StdioClient;

const RELATED: &str = "io.modelcontextprotocol/related-task";

pub(crate) async fn create(client: &mut StdioClient, tool: &str) -> String {
    let params =
        json!({ "name": tool, "task": { "ttl": 60_000 }, "_meta": { "progressToken": 7 } });
    let response = client.call("tools/call", params).await;
    let task = &response["result"]["task"];
    // V1-LIFE-1, V1-CREATE-3, S2-87.
    assert_eq!(task["status"], "working", "{response}");
    assert_eq!(task["ttl"], 60_000);
    assert_eq!(response["result"].get("content"), None);
    task["taskId"].as_str().unwrap().to_owned()
}

async fn status(client: &mut StdioClient, id: &str) -> String {
    let task = client.call("tasks/get", json!({ "taskId": id })).await["result"].clone();
    task["status"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_task_completes_and_its_result_names_it() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "slow").await;
    assert_eq!(status(&mut client, &id).await, "working");
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["content"][0]["text"], "done");
    // V1-RES-6, S2-89.
    assert_eq!(
        response["result"]["_meta"][RELATED],
        json!({ "taskId": id })
    );
    assert_eq!(status(&mut client, &id).await, "completed");
    // V1-RES-10.
    let again = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(again["result"], response["result"]);
}

#[tokio::test(start_paused = true)]
async fn every_transition_sends_a_notification() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "slow").await;
    let first = client.next_message("notifications/tasks/status").await;
    assert_eq!(
        (
            &first["params"]["status"],
            &first["params"]["statusMessage"]
        ),
        (&json!("working"), &json!("half way"))
    );
    let last = client.next_message("notifications/tasks/status").await;
    assert_eq!(last["params"]["status"], "completed");
    assert_eq!(last["params"]["taskId"], id.as_str());
    // V1-META-8.
    assert_eq!(last["params"].get("_meta"), None);
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_task_keeps_the_token_of_its_request() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "steps").await;
    let mut last = 0.0;
    for _ in 0..2 {
        let notification = client.next_message("notifications/progress").await;
        // V1-PROG-1, V1-PROG-4.
        assert_eq!(notification["params"]["progressToken"], 7);
        assert_eq!(
            notification["params"]["_meta"][RELATED]["taskId"],
            id.as_str()
        );
        let progress = notification["params"]["progress"].as_f64().unwrap();
        assert!(progress > last);
        last = progress;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_fails_the_task_with_its_result() {
    // V1-LIFE-5, V1-RES-5, V1-ERR-9, S2-99.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "fail").await;
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["isError"], true);
    let task = client.call("tasks/get", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(
        (&task["status"], &task["statusMessage"]),
        (&json!("failed"), &json!("it broke"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_cannot_be_cancelled_again() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "endless").await;
    let waiting = client.send("tasks/result", json!({ "taskId": id })).await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await;
    // V1-CANCEL-3, V1-CANCEL-7, S2-93.
    assert_eq!(cancelled["result"]["status"], "cancelled");
    // A1-1, V1-RES-12.
    let waited = client.response_to(waiting).await;
    assert_eq!(
        (&waited["error"]["code"], &waited["error"]["data"]["status"]),
        (&json!(-32603), &json!("cancelled"))
    );
    // V1-CANCEL-1, S2-92.
    let again = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(again["error"]["code"], -32602);
    assert_eq!(client.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_cancel_its_task() {
    // V1-CANCEL-10, V1-CANCEL-11.
    let mut client = StdioClient::new().await;
    let creating = client
        .send("tools/call", json!({ "name": "slow", "task": {} }))
        .await;
    let id = client.response_to(creating).await["result"]["task"]["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    client
        .notify("notifications/cancelled", json!({ "requestId": creating }))
        .await;
    let waiting = client.send("tasks/result", json!({ "taskId": id })).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    client
        .notify("notifications/cancelled", json!({ "requestId": waiting }))
        .await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(status(&mut client, &id).await, "working");
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_result_blocks_nothing_else() {
    // V1-STDIO-5, V1-PING-1, V1-RES-11.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "slow").await;
    let waits = [
        client.send("tasks/result", json!({ "taskId": id })).await,
        client.send("tasks/result", json!({ "taskId": id })).await,
    ];
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    assert_eq!(status(&mut client, &id).await, "working");
    for wait in waits {
        assert_eq!(
            client.response_to(wait).await["result"]["content"][0]["text"],
            "done"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_list_pages_through_all_tasks_newest_first() {
    // V1-LIST-1 to V1-LIST-4, S2-94.
    let mut client = StdioClient::new().await;
    let mut made = Vec::new();
    for _ in 0..120 {
        let id = create(&mut client, "fail").await;
        client.call("tasks/result", json!({ "taskId": id })).await;
        made.push(id);
    }
    made.reverse();
    let (mut seen, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.call("tasks/list", params).await["result"].clone();
        let ids = page["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["taskId"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(seen, made);
    let bad = client
        .call("tasks/list", json!({ "cursor": "nonsense" }))
        .await;
    assert_eq!(bad["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn an_expired_task_is_not_found_and_waits_end() {
    // A1-23, V1-RES-12, S2-55, S2-82: the strict policy of the seeds.
    let mut client = StdioClient::with(Policy::default().with_ttl_policy(TtlPolicy::Strict)).await;
    let response = client
        .call(
            "tools/call",
            json!({ "name": "endless", "task": { "ttl": 500 } }),
        )
        .await;
    let id = response["result"]["task"]["taskId"].clone();
    let waited = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(waited["error"]["code"], -32602);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let rejected = client.call(method, json!({ "taskId": id })).await;
        assert_eq!(rejected["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_task_gets_a_longer_ttl_by_default() {
    let mut client = StdioClient::new().await;
    let params = json!({ "name": "endless", "task": { "ttl": 500 } });
    let response = client.call("tools/call", params).await;
    let id = response["result"]["task"]["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let task = client.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["result"]["status"], "working");
    assert!(task["result"]["ttl"].as_u64() > Some(2_000), "{task}");
}

#[tokio::test(start_paused = true)]
async fn the_reported_poll_interval_grows_with_age() {
    let mut client = StdioClient::new().await;
    let params = json!({ "name": "endless", "task": {} });
    let response = client.call("tools/call", params).await;
    let task = &response["result"]["task"];
    assert_eq!(task["pollInterval"], 1_000);
    let id = task["taskId"].clone();
    for (pause_s, interval) in [(0, 1_000), (29, 1_000), (2, 5_000)] {
        tokio::time::sleep(Duration::from_secs(pause_s)).await;
        let task = client.call("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["result"]["pollInterval"], interval, "{task}");
        let list = client.call("tasks/list", json!({})).await;
        assert_eq!(list["result"]["tasks"][0]["pollInterval"], interval);
    }
    client.call("tasks/cancel", json!({ "taskId": id })).await;
    let notification = client.next_message("notifications/tasks/status").await;
    assert_eq!(notification["params"]["pollInterval"], 5_000);
}

#[tokio::test(start_paused = true)]
async fn the_poll_interval_is_limited_by_the_ttl() {
    let mut client = StdioClient::new().await;
    for (ttl, interval) in [(2_000, 500), (4_000, 1_000), (60_000, 1_000)] {
        let params = json!({ "name": "endless", "task": { "ttl": ttl } });
        let answer = client.call("tools/call", params).await;
        let task = answer["result"]["task"].clone();
        assert_eq!(task["pollInterval"], interval, "{task}");
        let id = json!({ "taskId": task["taskId"] });
        let got = client.call("tasks/get", id).await;
        assert_eq!(got["result"]["pollInterval"], interval, "{got}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_progress_of_a_tool_arrives_before_its_end() {
    for task in [false, true] {
        let burst = Tool::new("burst", "reports a lot and ends", |_, cx| async move {
            for step in 1..=500 {
                cx.progress(step.into(), 500.0);
            }
            Ok(text("done"))
        });
        let tools = Tools::new().with(burst.task(TaskSupport::Optional));
        let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), tools).await;
        client.introduce("2025-11-25", json!({})).await;
        let mut params = json!({ "name": "burst", "_meta": { "progressToken": 7 } });
        if task {
            params["task"] = json!({});
        }
        let answer = client.call("tools/call", params).await;
        if task {
            let id = &answer["result"]["task"]["taskId"];
            client.call("tasks/result", json!({ "taskId": id })).await;
        }
        let is_progress = |message: &&Value| message["method"] == "notifications/progress";
        let mut log = client.log().iter().map(|(_, message)| message);
        let last = log.rfind(is_progress);
        let last = last.and_then(|message| message["params"]["progress"].as_f64());
        assert_eq!(last, Some(500.0), "as a task: {task}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_result_has_the_immediate_response() {
    // V1-CREATE-11.
    let mut client = StdioClient::new().await;
    let response = client
        .call("tools/call", json!({ "name": "must", "task": {} }))
        .await;
    let key = "io.modelcontextprotocol/model-immediate-response";
    assert_eq!(response["result"]["_meta"][key], "It has begun.");
    // A1-17.
    assert_eq!(response["result"]["_meta"].get(RELATED), None::<&Value>);
}

#[tokio::test(start_paused = true)]
async fn a_related_task_on_a_task_method_is_ignored() {
    // V1-META-3, V1-META-5, A1-29; the TypeScript client repeats `task` here.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "slow").await;
    let params =
        json!({ "taskId": id, "task": { "ttl": 5 }, "_meta": { RELATED: { "taskId": "other" } } });
    let got = client.call("tasks/get", params).await;
    assert_eq!(got["result"]["taskId"], id.as_str());
    assert_eq!(got["result"].get("_meta"), None);
}
