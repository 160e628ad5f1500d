//! The duties of a receiver of `tools/call`, rule by rule.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::{Ids, RandomIds};
use outlast::store::MemoryStore;
use outlast::{TaskSupport, Tool, Tools, text};
use outlast_testkit::{FaultyStore, WriteFault, within};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{StdioClient, samples};
use crate::tasks::create;

/// A client of a server with the samples and this tool, which may run as a task.
async fn client_with_tool(tool: Tool) -> StdioClient {
    let tools = samples().with(tool.task(TaskSupport::Optional));
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), tools).await;
    client
        .introduce("2025-11-25", json!({ "elicitation": {}, "sampling": {} }))
        .await;
    client
}

async fn task(client: &mut StdioClient, id: &str) -> Value {
    client.call("tasks/get", json!({ "taskId": id })).await["result"].clone()
}

async fn list_tasks(client: &mut StdioClient) -> Vec<Value> {
    let list = client.call("tasks/list", json!({})).await;
    list["result"]["tasks"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_task_returns_the_same_error_as_its_call() {
    // V1-RES-4, V1-RES-13, V1-LIFE-5, V1-ERR-9, V1-ERR-10.
    let broken = Tool::new("broken", "panics", |_, _| async move {
        if std::hint::black_box(true) {
            panic!("deliberate")
        } else {
            Ok(text("never"))
        }
    });
    let mut client = client_with_tool(broken).await;
    let plain = client.call("tools/call", json!({ "name": "broken" })).await;
    assert_eq!(plain["error"]["code"], -32603, "{plain}");
    let id = create(&mut client, "broken").await;
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["error"], plain["error"]);
    let task = task(&mut client, &id).await;
    assert_eq!(task["status"], "failed");
    assert_eq!(task["statusMessage"], plain["error"]["message"]);
}

#[tokio::test(start_paused = true)]
async fn no_notification_follows_the_end_of_a_task() {
    // V1-PROG-2, V1-PRG-5, V1-LIFE-10.
    let late = Tool::new("late", "talks after its end", |_, cx| async move {
        cx.progress(1.0, 2.0);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cx.progress(2.0, 2.0);
            cx.status("still here");
        });
        Ok(text("done"))
    });
    let mut client = client_with_tool(late).await;
    let id = create(&mut client, "late").await;
    client.call("tasks/result", json!({ "taskId": id })).await;
    client.silence().await;
    let task = task(&mut client, &id).await;
    assert_eq!(task["status"], "completed");
    assert_eq!(task.get("statusMessage"), None);
    let mut ended = false;
    while let Some(message) = client.early() {
        assert!(!ended, "{message}");
        ended = message["params"]["status"] == "completed";
    }
    assert!(ended);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_cancellation_leaves_its_task_cancelled() {
    // V1-CANCEL-3, V1-CANCEL-4, V1-LIFE-3.
    let stubborn = Tool::new("stubborn", "finishes first", |_, cx| async move {
        cx.cancelled().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(text("finished all the same"))
    });
    let mut client = client_with_tool(stubborn).await;
    let id = create(&mut client, "stubborn").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(task(&mut client, &id).await, cancelled["result"]);
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn a_tool_sees_cancellations_of_call_and_task() {
    // S3-31: a call without a task and a task.
    let seen = Arc::new(Notify::new());
    let report = seen.clone();
    let watchful = Tool::new("watchful", "waits for its cancellation", move |_, cx| {
        let report = report.clone();
        async move {
            assert!(!cx.is_cancelled(), "too early");
            cx.cancelled().await;
            assert!(cx.is_cancelled());
            report.notify_one();
            Ok(text("stopped"))
        }
    });
    let mut client = client_with_tool(watchful).await;
    let call = json!({ "name": "watchful" });
    let id = client.send("tools/call", call).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let params = json!({ "requestId": id, "reason": "enough" });
    client.notify("notifications/cancelled", params).await;
    within("the tool of the call sees it", seen.notified()).await;
    let id = create(&mut client, "watchful").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    client.call("tasks/cancel", json!({ "taskId": id })).await;
    within("the tool of the task sees it", seen.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn all_methods_return_the_same_task() {
    // V1-TTL-1, V1-TTL-2, V1-TTL-4, V1-TTL-10, V1-GET-1, V1-CANCEL-7, V1-NOTIF-3.
    let mut client = StdioClient::new().await;
    let params = json!({ "name": "endless", "task": { "ttl": 60_000 } });
    let created = client.call("tools/call", params).await["result"]["task"].clone();
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!(task(&mut client, &id).await, created);
    assert_eq!(
        list_tasks(&mut client).await,
        std::slice::from_ref(&created)
    );
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await["result"].clone();
    let notification = client.next_message("notifications/tasks/status").await["params"].clone();
    assert_eq!(notification, cancelled);
    for member in ["taskId", "createdAt", "ttl", "pollInterval"] {
        assert_eq!(created[member], cancelled[member], "{member}");
    }
    let time = |task: &Value, member: &str| task[member].as_str().unwrap().to_owned();
    assert!(time(&cancelled, "lastUpdatedAt") >= time(&created, "createdAt"));
}

#[tokio::test(start_paused = true)]
async fn a_ttl_is_capped_and_reported() {
    // V1-TTL-3, V1-RM-2, S2-56, S2-57.
    let mut client = StdioClient::new().await;
    for (requested, granted) in [
        (json!({ "ttl": 604_800_000 }), 3_600_000),
        (json!({}), 3_600_000),
        (json!({ "ttl": null }), 3_600_000),
        (json!({ "ttl": 1_000 }), 1_000),
    ] {
        let params = json!({ "name": "endless", "task": requested });
        let task = client.call("tools/call", params).await["result"]["task"].clone();
        assert_eq!(task["ttl"], granted, "{requested}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_tasks_of_an_owner_are_limited() {
    // V1-RM-1, S2-58.
    let mut client = StdioClient::new().await;
    let mut last = String::new();
    for _ in 0..32 {
        last = create(&mut client, "endless").await;
    }
    let params = json!({ "name": "endless", "task": {} });
    let rejected = client.call("tools/call", params).await;
    assert_eq!(rejected["error"]["code"], -32603);
    let why = rejected["error"]["message"].as_str().unwrap();
    assert!(why.contains("32"), "{why}");
    client.call("tasks/cancel", json!({ "taskId": last })).await;
    create(&mut client, "endless").await;
}

#[tokio::test(start_paused = true)]
async fn rejected_calls_and_other_requests_create_no_task() {
    // V1-CREATE-9, V1-CREATE-10.
    let mut client = StdioClient::new().await;
    for (params, code) in [
        (json!({ "name": "unknown", "task": {} }), -32602),
        (json!({ "name": "echo", "task": {} }), -32601),
        (json!({ "name": "must" }), -32601),
        (json!({ "name": "slow", "task": { "ttl": -1 } }), -32602),
        (json!({ "task": {} }), -32602),
    ] {
        let rejected = client.call("tools/call", params.clone()).await;
        assert_eq!(rejected["error"]["code"], code, "{params}");
    }
    for method in ["ping", "tools/list", "tasks/list"] {
        let response = client.call(method, json!({ "task": {} })).await;
        assert!(response["result"].get("task").is_none(), "{response}");
    }
    assert_eq!(list_tasks(&mut client).await, [] as [Value; 0]);
    assert_eq!(client.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_id_in_the_request_is_ignored() {
    // V1-CREATE-6, V1-CREATE-7.
    let mut client = StdioClient::new().await;
    let params = json!({ "name": "slow", "task": { "taskId": "mine" }, "taskId": "mine" });
    let task = client.call("tools/call", params).await["result"]["task"].clone();
    assert!(task["taskId"].is_string() && task["taskId"] != "mine");
    let got = client.call("tasks/get", json!({ "taskId": "mine" })).await;
    assert_eq!(got["error"]["code"], -32602);
}

#[test]
fn task_ids_have_128_random_bits() {
    // V1-SEC-4, V1-CREATE-8: each of the 128 bits is random, and no id repeats.
    let drawn: BTreeSet<u128> = (0..1_000).map(|_| RandomIds.task().bits()).collect();
    assert_eq!(drawn.len(), 1_000);
    for bit in 0..128 {
        let set = drawn.iter().filter(|id| *id >> bit & 1 == 1).count();
        // Twelve standard deviations from the mean.
        assert!((310..690).contains(&set), "bit {bit} was set {set} times");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_is_an_internal_error() {
    // V1-ERR-4.
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let mut client = StdioClient::connect(Arc::new(store), samples()).await;
    client.introduce("2025-11-25", json!({})).await;
    faults.fail_writes(1, WriteFault::BeforeCommit);
    let params = json!({ "name": "slow", "task": {} });
    let rejected = client.call("tools/call", params).await;
    assert_eq!(rejected["error"]["code"], -32603, "{rejected}");
    assert_eq!(list_tasks(&mut client).await, [] as [Value; 0]);
    create(&mut client, "slow").await;
}

#[tokio::test(start_paused = true)]
async fn notifications_never_get_a_response() {
    // V1-BASE-4, V1-CANC-4, V1-CANC-8.
    let mut client = StdioClient::new().await;
    client.notify("notifications/unknown", json!({})).await;
    for params in [
        json!({}),
        json!({ "requestId": null }),
        json!({ "requestId": "unknown" }),
        json!({ "requestId": 1, "reason": 7 }),
        json!({ "requestId": { "odd": true } }),
    ] {
        client.notify("notifications/cancelled", params).await;
    }
    client.silence().await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_server_sends_nothing_before_initialized() {
    // V1-INIT-7, V1-TLS-1.
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), samples()).await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let met = client.call("initialize", params).await["result"].clone();
    assert!(met["capabilities"]["tools"].is_object(), "{met}");
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn input_requests_match_the_declared_capabilities() {
    // V1-ELIC-2, V1-ELIC-10, V1-SAMP-2.
    let visit = Tool::new("visit", "asks in other ways", |args, cx| async move {
        let url = json!({
            "mode": "url", "message": "Please sign in.", "url": "https://example.com/sign-in",
            "elicitationId": cx.id().to_string(),
        });
        let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
        let tools = json!({
            "messages": [message], "maxTokens": 10, "tools": [{ "name": "t", "inputSchema": { "type": "object" } }],
        });
        let response = match args.text("way")? {
            "url" => cx.elicit_raw(url).await?,
            _ => cx.sample_raw(tools).await?,
        };
        Ok(text(response["action"].as_str().unwrap_or_default()))
    });
    let mut plain = client_with_tool(visit.clone()).await;
    for (way, lacking) in [("url", "url elicitation"), ("tools", "sampling with tools")] {
        let params = json!({ "name": "visit", "arguments": { "way": way } });
        let response = plain.call("tools/call", params).await;
        let received = response["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            received.contains(&format!("does not support {lacking}")),
            "{received}"
        );
    }

    let tools = Tools::new().with(visit.task(TaskSupport::Optional));
    let mut able = StdioClient::connect(Arc::new(MemoryStore::new()), tools).await;
    able.introduce("2025-11-25", json!({ "elicitation": { "url": {} } }))
        .await;
    let params = json!({ "name": "visit", "arguments": { "way": "url" } });
    let id = able.send("tools/call", params).await;
    let input_request = able.next_message("elicitation/create").await;
    assert_eq!(input_request["params"]["mode"], "url");
    able.respond(&input_request["id"], json!({ "action": "accept" }))
        .await;
    let response = able.response_to(id).await;
    assert_eq!(response["result"]["content"][0]["text"], "accept");
}
