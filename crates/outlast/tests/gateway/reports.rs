//! What the gateway reports of a call at its server: status messages, errors, progress, rejections.

use std::time::Duration;

use outlast::Outlast;
use outlast::gateway::Upstream;
use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::caller::{CLIENT_KINDS, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell;
use crate::harness::{Harness, quick};
use crate::outside_calls::connected;
use crate::scripted::{self, TestServer, capabilities, task};

const WITH_TASKS: [ClientKind; 2] = [ClientKind::V1, ClientKind::V2];

/// A task with a status message.
fn task_with_message(status: &str, message: &str) -> Value {
    let mut task = task(status, 60_000);
    task["statusMessage"] = json!(message);
    task
}

/// Starts a call for which the server creates a task with this status message.
async fn start_task(caller: &mut Caller, server: &mut TestServer, message: &str) -> Value {
    let making = async {
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        let made = json!({ "task": task_with_message("working", message) });
        server.reply(&call, made).await;
    };
    let (answer, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    answer["result"]
        .get("task")
        .unwrap_or(&answer["result"])
        .clone()
}

/// The task once it has ended.
async fn ended_task(caller: &mut Caller, begun: &Value) -> Value {
    let id = json!({ "taskId": begun["taskId"] });
    let ended = |now: &Value| matches!(now["status"].as_str(), Some("completed" | "failed"));
    caller.until(&id, ended).await
}

async fn send_status(server: &mut TestServer, status: &str, message: &str) {
    let notification = task_with_message(status, message);
    server
        .notify("notifications/tasks/status", notification)
        .await;
}

#[tokio::test(start_paused = true)]
async fn status_messages_of_creation_and_completion_are_kept() {
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let begun = start_task(&mut caller, &mut server, "queued as number 3").await;
        assert_eq!(begun["statusMessage"], "queued as number 3", "{kind:?}");
        send_status(&mut server, "completed", "done in 2 s").await;
        let fetch = server.expect_request("tasks/result").await;
        server.reply(&fetch, scripted::text("done")).await;
        let ended = ended_task(&mut caller, &begun).await;
        assert_eq!(ended["statusMessage"], "done in 2 s", "{kind:?}: {ended}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_keeps_message_and_error_of_its_server() {
    for kind in WITH_TASKS {
        for (code, message, expected) in [
            // The response of the TypeScript SDK for a task that failed by a status update.
            (
                -32_603,
                "Task t1 has no result stored",
                (-32_603, "disk full"),
            ),
            // V1-RES-4: the error of the call itself.
            (-31_999, "it broke", (-31_999, "it broke")),
        ] {
            let (mut caller, mut server) = connected(kind, capabilities()).await;
            let begun = start_task(&mut caller, &mut server, "begun").await;
            send_status(&mut server, "failed", "disk full").await;
            let fetch = server.expect_request("tasks/result").await;
            server.refuse(&fetch, code, message).await;
            let ended = ended_task(&mut caller, &begun).await;
            assert_eq!(ended["status"], "failed");
            assert_eq!(ended["statusMessage"], "disk full", "{kind:?}: {ended}");
            let error = match kind {
                ClientKind::V2 => ended["error"].clone(),
                _ => {
                    let id = json!({ "taskId": begun["taskId"] });
                    caller.request("tasks/result", id).await["error"].clone()
                }
            };
            assert_eq!(error["code"], expected.0, "{kind:?}: {error}");
            assert_eq!(error["message"], expected.1, "{kind:?}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn status_messages_never_go_back() {
    // A poll whose response is older than the notification and arrives after it.
    let (mut caller, mut server) = connected(ClientKind::V2, capabilities()).await;
    let making = async {
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        let mut made = task_with_message("working", "first");
        made["pollInterval"] = json!(1_000);
        server.reply(&call, json!({ "task": made })).await;
    };
    let (begun, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    let id = json!({ "taskId": begun["result"]["taskId"] });
    let look = server.expect_request("tasks/get").await;
    let mut newer = task_with_message("working", "third");
    newer["lastUpdatedAt"] = json!("2026-01-10T08:00:09Z");
    server.notify("notifications/tasks/status", newer).await;
    let mut older = task_with_message("working", "second");
    older["lastUpdatedAt"] = json!("2026-01-10T08:00:05Z");
    older["pollInterval"] = json!(1_000);
    server.reply(&look, older).await;
    // The next poll shows that the previous response was processed.
    server.expect_request("tasks/get").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let got = caller.request("tasks/get", id).await;
    assert_eq!(got["result"]["statusMessage"], "third", "{got}");
}

#[tokio::test(start_paused = true)]
async fn the_last_progress_before_the_end_arrives() {
    for burst in [1, 500] {
        let (mut caller, mut server) =
            connected(ClientKind::PlainLegacy, json!({ "tools": {} })).await;
        let params = json!({ "name": "slow", "_meta": { "progressToken": "mine" } });
        let serving = async {
            server.list(&[("slow", "forbidden")]).await;
            let call = server.expect_request("tools/call").await;
            let token = &call["params"]["_meta"]["progressToken"];
            for done in 1..=burst {
                let progress = json!({ "progressToken": token, "progress": done, "total": burst });
                server.notify("notifications/progress", progress).await;
            }
            server.reply(&call, scripted::text("done")).await;
        };
        let (answer, ()) = tokio::join!(caller.request("tools/call", params), serving);
        assert!(answer.get("result").is_some(), "{answer}");
        let notification = caller.notifications.iter();
        let mut notification =
            notification.filter(|notification| notification["method"] == "notifications/progress");
        let last = notification.next_back().unwrap();
        assert_eq!(last["params"]["progress"], burst, "{last}");
    }
}

#[tokio::test]
async fn library_tool_progress_is_the_v2_status_message() {
    let harness = Harness::new(cell::ServerKind::V2).await;
    let mut caller = connect(ClientKind::V2, &harness.direct).await;
    let begun = caller.begin(json!({ "name": "gated" })).await;
    let id = json!({ "taskId": begun["result"]["taskId"] });
    let reports = |now: &Value| !now["statusMessage"].is_null();
    let now = caller.until(&id, reports).await;
    assert_eq!(now["statusMessage"], "1 of 2");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_leaves_no_task() {
    // V1-CREATE-10.
    for kind in CLIENT_KINDS {
        let (mut caller, mut server) = connected(kind, json!({ "tools": {} })).await;
        let serving = async {
            // Twice: the cached list may be old.
            server.list(&[("slow", "optional")]).await;
            server.list(&[("slow", "optional")]).await;
        };
        let unknown = json!({ "name": "none", "arguments": {} });
        let (refused, ()) = tokio::join!(caller.begin(unknown), serving);
        assert_eq!(refused["error"]["code"], -32602, "{kind:?}: {refused}");
        for odd in [json!([1]), json!("x"), json!(7)] {
            let odd = json!({ "name": "slow", "arguments": odd });
            let refused = caller.begin(odd).await;
            assert_eq!(refused["error"]["code"], -32602, "{kind:?}: {refused}");
        }
        if kind == ClientKind::V1 {
            let listed = caller.request("tasks/list", json!({})).await;
            assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
        }
        assert!(!server.has_received("tools/call"));
    }
}

#[tokio::test]
async fn an_endpoint_lists_the_tasks_of_its_own_server_only() {
    let (one, other) = (
        Harness::new(cell::ServerKind::V1).await,
        Harness::new(cell::ServerKind::V1).await,
    );
    let upstream = |name: &str, harness: &Harness| {
        Upstream::new(
            name,
            outlast::client::Target::in_process(harness.direct.clone()),
            quick(),
        )
    };
    let outlast = Outlast::builder().policy(Policy::default()).build();
    let upstreams = vec![upstream("one", &one), upstream("other", &other)];
    let mut gateway = outlast.gateway(upstreams).await.unwrap();
    gateway.started().await.unwrap();
    let fronts: Vec<_> = gateway
        .endpoints()
        .iter()
        .map(|served| served.server.clone())
        .collect();
    let mut here = connect(ClientKind::V1, &fronts[0]).await;
    let mut there = connect(ClientKind::V1, &fronts[1]).await;
    let called = here.call("echo", json!({ "say": "hi" })).await;
    assert!(matches!(called, CallEnd::Result(_)), "{called:?}");
    for (caller, tasks) in [(&mut here, 1), (&mut there, 0)] {
        let listed = caller.request("tasks/list", json!({})).await;
        let listed = listed["result"]["tasks"].as_array().unwrap().len();
        assert_eq!(listed, tasks);
    }
}

#[tokio::test]
async fn a_session_is_valid_only_at_its_endpoint() {
    let harness = Harness::new(cell::ServerKind::V1).await;
    let target = || outlast::client::Target::in_process(harness.direct.clone());
    let upstreams = ["one", "other"].map(|name| Upstream::new(name, target(), quick()));
    let outlast = Outlast::builder().build();
    let gateway = outlast.gateway(upstreams.into());
    let running = gateway.await.unwrap().http(None, HttpOptions::default());
    let running = running.await.unwrap();
    let endpoints = running.endpoints();
    let url = running.url(&endpoints[0]);
    let authority = url.strip_prefix("http://").unwrap().split('/').next();
    let mut here = HttpClient {
        path: endpoints[0].path.clone(),
        ..HttpClient::without_session(authority.unwrap().parse().unwrap())
    };
    here.introduce("2025-11-25").await;
    let elsewhere = HttpClient {
        path: endpoints[1].path.clone(),
        ..here.clone()
    };
    assert_eq!(elsewhere.request("ping", json!({})).await.status, 404);
    assert_eq!(here.request("ping", json!({})).await.status, 200);
    running.shutdown().await.unwrap();
}
