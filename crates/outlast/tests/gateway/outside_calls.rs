//! Input requests outside a call, and messages of a server before our task exists.

use std::sync::Arc;
use std::time::Duration;

use outlast::gateway::Upstream;
use outlast::server::McpServer;
use outlast_testkit::mcp::caller::{CLIENT_KINDS, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::harness::{gateway, quick};
use crate::scripted::{self, Servers, TestServer, capabilities, task};

/// A gateway in front of a scripted server.
async fn scripted_gateway() -> (Arc<McpServer>, Servers) {
    let (target, servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    (mcp_server, servers)
}

/// A client of that kind, and the server that the gateway has connected to for it.
pub(crate) async fn connected(kind: ClientKind, declared: Value) -> (Caller, TestServer) {
    let (mcp_server, mut servers) = scripted_gateway().await;
    let connecting = tokio::spawn(async move { connect(kind, &mcp_server).await });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", declared).await;
    (connecting.await.unwrap(), server)
}

#[tokio::test(start_paused = true)]
async fn an_input_request_outside_a_call_goes_to_one_session() {
    // BR-IN-12.
    for kind in CLIENT_KINDS {
        let (mcp_server, mut servers) = scripted_gateway().await;
        let waiting = tokio::spawn(async move {
            let mut caller = connect(kind, &mcp_server).await;
            if matches!(kind, ClientKind::PlainLegacy | ClientKind::V1) {
                caller
                    .wait_for_notification("notifications/example/done")
                    .await;
            }
            caller
        });
        let mut server = servers.next().await;
        server.welcome("2025-11-25", json!({ "tools": {} })).await;
        // At once, as servers do: the client has no response to its handshake yet.
        server.ask("q", "roots/list", json!({})).await;
        let answer = server.response_to_id("q").await;
        match kind {
            ClientKind::PlainLegacy | ClientKind::V1 => {
                let root = &answer["result"]["roots"][0]["uri"];
                assert_eq!(root, "file:///home/ada", "{kind:?}");
                let done = "notifications/example/done";
                server.notify(done, json!({})).await;
            }
            ClientKind::PlainModern | ClientKind::V2 => {
                assert_eq!(answer["error"]["code"], -32602, "{kind:?}");
            }
        }
        waiting.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_input_request_is_withdrawn_at_the_client() {
    let (mcp_server, mut servers) = scripted_gateway().await;
    let hearing = tokio::spawn(async move {
        // By hand, without a response.
        let mut caller = connect(ClientKind::V1, &mcp_server).await;
        caller.leaves_input_open = true;
        let notification = caller
            .wait_for_notification("notifications/cancelled")
            .await;
        let request = caller.wait_for_notification("elicitation/create").await;
        (request, notification)
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let form = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
    server.ask("q", "elicitation/create", form).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cancelled = json!({ "requestId": "q" });
    server.notify("notifications/cancelled", cancelled).await;
    let (request, notification) = hearing.await.unwrap();
    assert_eq!(notification["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_v1_server_that_rejects_a_task_fails_the_request() {
    // BR-CREATE-2, BD-1.
    for kind in [ClientKind::V1, ClientKind::V2] {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let calling = tokio::spawn(async move {
            let answer = caller.begin(json!({ "name": "slow" })).await;
            (caller, answer)
        });
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        assert!(call["params"]["task"].is_object(), "{call}");
        server.refuse(&call, -32_602, "not with these").await;
        let (mut caller, answer) = calling.await.unwrap();
        assert_eq!(answer["error"]["code"], -32_602, "{kind:?}: {answer}");
        assert_eq!(answer["error"]["message"], "not with these");
        if kind == ClientKind::V1 {
            // No task was created.
            let listed = caller.request("tasks/list", json!({})).await;
            assert_eq!(listed["result"]["tasks"], json!([]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_v1_task_creation_does_not_delay_ours() {
    // BR-CREATE-2: "answer by itself if that takes longer than a few seconds"; what comes later is
    // the task's.
    let (mut caller, mut server) = connected(ClientKind::V1, capabilities()).await;
    let calling = tokio::spawn(async move {
        let answer = caller.begin(json!({ "name": "slow" })).await;
        (caller, answer)
    });
    server.list(&[("slow", "optional")]).await;
    let call = server.expect_request("tools/call").await;
    let (mut caller, answer) = calling.await.unwrap();
    assert_eq!(answer["result"]["task"]["status"], "working", "{answer}");
    server.refuse(&call, -32_602, "not with these").await;
    let ended = caller.finish(json!({}), answer).await;
    assert_eq!(ended, CallEnd::Error(-32_602, "not with these".into()));
}

#[tokio::test(start_paused = true)]
async fn our_create_result_has_the_status_of_the_v1_task() {
    // BR-TTL-2, BR-TTL-3, BR-CREATE-9, BD-10, BD-12.
    let key = "io.modelcontextprotocol/model-immediate-response";
    for (kind, ttl) in [(ClientKind::V1, "ttl"), (ClientKind::V2, "ttlMs")] {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let calling = tokio::spawn(async move {
            let mut params = json!({ "name": "slow" });
            if kind == ClientKind::V1 {
                params["task"]["ttl"] = json!(600_000);
            }
            let id = caller.send("tools/call", params).await;
            let answer = caller.response_to(id).await;
            (caller, answer)
        });
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        // BR-TTL-2: without a TTL of the caller, the default of the gateway plus one minute.
        let granted = if kind == ClientKind::V1 {
            600_000
        } else {
            3_600_000
        };
        assert_eq!(call["params"]["task"]["ttl"], granted + 60_000, "{kind:?}");
        // The server reports another TTL before its response, and a third one in it. Both are
        // ignored.
        let mut early = task("working", 1_000);
        early["ttl"] = json!(5_000);
        server.notify("notifications/tasks/status", early).await;
        // BD-12: it has ended, and its result was not fetched.
        let mut made = task("completed", 1_000);
        made["ttl"] = json!(50_000);
        let made = json!({ "task": made, "_meta": { key: "Have a look later." } });
        server.reply(&call, made).await;
        let fetch = server.expect_request("tasks/result").await;
        let (mut caller, answer) = calling.await.unwrap();
        let result = &answer["result"];
        let seed = if kind == ClientKind::V1 {
            &result["task"]
        } else {
            result
        };
        assert_eq!(seed["status"], "working", "{kind:?}: {answer}");
        assert_eq!(seed[ttl], granted, "{kind:?}: {answer}");
        assert_eq!(result["_meta"][key], "Have a look later.", "{kind:?}");
        // BD-10: it is in the structured content.
        assert!(
            result["_meta"]
                .get("io.modelcontextprotocol/related-task")
                .is_none()
        );
        let id = json!({ "taskId": seed["taskId"] });
        assert_ne!(seed["taskId"], "t1", "BR-ID-1");
        // Status messages are stored a few milliseconds later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let got = caller.request("tasks/get", id.clone()).await;
        assert_eq!(got["result"]["statusMessage"], "Have a look later.");
        server.reply(&fetch, scripted::text("done")).await;
        let CallEnd::Result(ended) = caller.finish(json!({}), answer).await else {
            panic!("{kind:?}");
        };
        assert_eq!(ended["content"][0]["text"], "done");
        // The server's TTL has passed; the gateway has the result.
        tokio::time::sleep(Duration::from_millis(100_000)).await;
        let got = caller.request("tasks/get", id).await;
        assert_eq!(got["result"]["status"], "completed", "{kind:?}: {got}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_input_request_waits_for_our_task() {
    // BR-CREATE-2: a V1 server sends an input request before the task of a V1 or V2 client exists.
    for kind in [ClientKind::V1, ClientKind::V2] {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
        server
            .reply(&call, json!({ "task": task("input_required", 1_000) }))
            .await;
        let form =
            json!({ "message": "Who?", "requestedSchema": { "type": "object" }, "_meta": related });
        server.ask("q", "elicitation/create", form).await;
        let answer = server.response_to_id("q").await;
        assert_eq!(answer["result"]["content"]["name"], "Ada/Who?", "{answer}");
        assert_eq!(answer["result"]["_meta"], related);
        let fetch = server.expect_request("tasks/result").await;
        server.reply(&fetch, scripted::text("done")).await;
        assert!(
            matches!(calling.await.unwrap(), CallEnd::Result(_)),
            "{kind:?}"
        );
    }
}
