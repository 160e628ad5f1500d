//! What a receiver of `tools/call` owes its caller, rule by rule.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::{Ids, MemoryStore, RandomIds};
use outlast::{TaskSupport, Tool, Tools, text};
use outlast_testkit::{FaultyStore, Strike};
use serde_json::{Value, json};

use crate::harness::{Client, samples};
use crate::tasks::create;

/// A client of a server with this tool, which may run as a task, besides the samples.
async fn with(tool: Tool) -> Client {
    let tools = samples().with(tool.task(TaskSupport::Optional));
    let mut client = Client::connect(Arc::new(MemoryStore::new()), tools).await;
    client
        .introduce("2025-11-25", json!({ "elicitation": {}, "sampling": {} }))
        .await;
    client
}

async fn shown(client: &mut Client, id: &str) -> Value {
    client.call("tasks/get", json!({ "taskId": id })).await["result"].clone()
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let list = client.call("tasks/list", json!({})).await;
    list["result"]["tasks"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_call_itself_is_the_same_error_for_its_task() {
    // V1-RES-4, V1-RES-13, V1-LIFE-5, V1-ERR-9, V1-ERR-10.
    let broken = Tool::new("broken", "panics", |_, _| async move {
        if std::hint::black_box(true) {
            panic!("a slip of the pen")
        } else {
            Ok(text("never"))
        }
    });
    let mut client = with(broken).await;
    let plain = client.call("tools/call", json!({ "name": "broken" })).await;
    assert_eq!(plain["error"]["code"], -32603, "{plain}");
    let id = create(&mut client, "broken").await;
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["error"], plain["error"]);
    let task = shown(&mut client, &id).await;
    assert_eq!(task["status"], "failed");
    assert_eq!(task["statusMessage"], plain["error"]["message"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_a_task_after_its_end() {
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
    let mut client = with(late).await;
    let id = create(&mut client, "late").await;
    client.call("tasks/result", json!({ "taskId": id })).await;
    client.silence().await;
    let task = shown(&mut client, &id).await;
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
async fn a_tool_that_does_not_stop_changes_nothing_about_its_cancelled_task() {
    // V1-CANCEL-3, V1-CANCEL-4, V1-LIFE-3.
    let stubborn = Tool::new("stubborn", "finishes first", |_, cx| async move {
        cx.cancelled().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(text("finished all the same"))
    });
    let mut client = with(stubborn).await;
    let id = create(&mut client, "stubborn").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(shown(&mut client, &id).await, cancelled["result"]);
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn a_task_looks_the_same_wherever_it_is_shown() {
    // V1-TTL-1, V1-TTL-2, V1-TTL-4, V1-TTL-10, V1-GET-1, V1-CANCEL-7, V1-NOTIF-3.
    let mut client = Client::new().await;
    let params = json!({ "name": "endless", "task": { "ttl": 60_000 } });
    let created = client.call("tools/call", params).await["result"]["task"].clone();
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!(shown(&mut client, &id).await, created);
    assert_eq!(listed(&mut client).await, std::slice::from_ref(&created));
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await["result"].clone();
    let told = client.told("notifications/tasks/status").await["params"].clone();
    assert_eq!(told, cancelled);
    for member in ["taskId", "createdAt", "ttl", "pollInterval"] {
        assert_eq!(created[member], cancelled[member], "{member}");
    }
    let time = |task: &Value, member: &str| task[member].as_str().unwrap().to_owned();
    assert!(time(&cancelled, "lastUpdatedAt") >= time(&created, "createdAt"));
}

#[tokio::test(start_paused = true)]
async fn a_longer_life_than_there_is_is_granted_as_the_longest() {
    // V1-TTL-3, V1-RM-2, S2-56, S2-57.
    let mut client = Client::new().await;
    for (wished, granted) in [
        (json!({ "ttl": 604_800_000 }), 3_600_000),
        (json!({}), 3_600_000),
        (json!({ "ttl": null }), 3_600_000),
        (json!({ "ttl": 1_000 }), 1_000),
    ] {
        let params = json!({ "name": "endless", "task": wished });
        let task = client.call("tools/call", params).await["result"]["task"].clone();
        assert_eq!(task["ttl"], granted, "{wished}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_only_so_many_tasks_at_once() {
    // V1-RM-1, S2-58.
    let mut client = Client::new().await;
    let mut last = String::new();
    for _ in 0..32 {
        last = create(&mut client, "endless").await;
    }
    let params = json!({ "name": "endless", "task": {} });
    let refused = client.call("tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32603);
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("32"), "{why}");
    client.call("tasks/cancel", json!({ "taskId": last })).await;
    create(&mut client, "endless").await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_leaves_no_task_and_other_requests_make_none() {
    // V1-CREATE-9, V1-CREATE-10.
    let mut client = Client::new().await;
    for (params, code) in [
        (json!({ "name": "nobody", "task": {} }), -32602),
        (json!({ "name": "echo", "task": {} }), -32601),
        (json!({ "name": "must" }), -32601),
        (json!({ "name": "slow", "task": { "ttl": -1 } }), -32602),
        (json!({ "task": {} }), -32602),
    ] {
        let refused = client.call("tools/call", params.clone()).await;
        assert_eq!(refused["error"]["code"], code, "{params}");
    }
    for method in ["ping", "tools/list", "tasks/list"] {
        let answer = client.call(method, json!({ "task": {} })).await;
        assert!(answer["result"].get("task").is_none(), "{answer}");
    }
    assert_eq!(listed(&mut client).await, [] as [Value; 0]);
    assert_eq!(client.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_the_caller_makes_up_has_no_effect() {
    // V1-CREATE-6, V1-CREATE-7.
    let mut client = Client::new().await;
    let params = json!({ "name": "slow", "task": { "taskId": "mine" }, "taskId": "mine" });
    let task = client.call("tools/call", params).await["result"]["task"].clone();
    assert!(task["taskId"].is_string() && task["taskId"] != "mine");
    let got = client.call("tasks/get", json!({ "taskId": "mine" })).await;
    assert_eq!(got["error"]["code"], -32602);
}

#[test]
fn ids_are_drawn_from_more_bits_than_anybody_can_guess() {
    // V1-SEC-4, V1-CREATE-8: every one of 128 bits is drawn, and no id comes twice.
    let drawn: BTreeSet<u128> = (0..1_000).map(|_| RandomIds.task().bits()).collect();
    assert_eq!(drawn.len(), 1_000);
    for bit in 0..128 {
        let set = drawn.iter().filter(|id| *id >> bit & 1 == 1).count();
        // Twelve standard deviations from the middle.
        assert!((310..690).contains(&set), "bit {bit} was set {set} times");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_an_internal_error_that_says_so() {
    // V1-ERR-4.
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let mut client = Client::connect(Arc::new(store), samples()).await;
    client.introduce("2025-11-25", json!({})).await;
    faults.fail_writes(1, Strike::BeforeCommit);
    let params = json!({ "name": "slow", "task": {} });
    let refused = client.call("tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!(listed(&mut client).await, [] as [Value; 0]);
    create(&mut client, "slow").await;
}

#[tokio::test(start_paused = true)]
async fn notifications_are_never_answered_whatever_they_say() {
    // V1-BASE-4, V1-CANC-4, V1-CANC-8.
    let mut client = Client::new().await;
    client.notify("notifications/nobody", json!({})).await;
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
async fn a_server_is_silent_until_its_client_is_ready() {
    // V1-INIT-7, V1-TLS-1.
    let mut client = Client::connect(Arc::new(MemoryStore::new()), samples()).await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let met = client.call("initialize", params).await["result"].clone();
    assert!(met["capabilities"]["tools"].is_object(), "{met}");
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn only_what_a_client_declared_is_asked_of_it() {
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
        let answer = match args.text("way")? {
            "url" => cx.elicit(url).await?,
            _ => cx.sample(tools).await?,
        };
        Ok(text(answer["action"].as_str().unwrap_or_default()))
    });
    let mut plain = with(visit.clone()).await;
    for (way, lacking) in [("url", "url elicitation"), ("tools", "sampling with tools")] {
        let params = json!({ "name": "visit", "arguments": { "way": way } });
        let answer = plain.call("tools/call", params).await;
        let said = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            said.contains(&format!("does not support {lacking}")),
            "{said}"
        );
    }

    let tools = Tools::new().with(visit.task(TaskSupport::Optional));
    let mut able = Client::connect(Arc::new(MemoryStore::new()), tools).await;
    able.introduce("2025-11-25", json!({ "elicitation": { "url": {} } }))
        .await;
    let params = json!({ "name": "visit", "arguments": { "way": "url" } });
    let id = able.send("tools/call", params).await;
    let asked = able.told("elicitation/create").await;
    assert_eq!(asked["params"]["mode"], "url");
    able.respond(&asked["id"], json!({ "action": "accept" }))
        .await;
    let answer = able.answer_to(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "accept");
}
