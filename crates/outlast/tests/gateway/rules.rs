//! Rules of the bridge that need a scripted server.

use std::time::Duration;

use outlast::client::Era;
use outlast::gateway::{Settings, Upstream};
use outlast_testkit::mcp::caller::{CLIENT_KINDS, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::{connect, connect_declaring};
use crate::cell::SERVER_KINDS;
use crate::events::task_in;
use crate::harness::{Harness, gateway, quick};
use crate::outside_calls::connected;
use crate::scripted::{self, TestServer, capabilities, task};

const RELATED: &str = "io.modelcontextprotocol/related-task";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const WITH_TASKS: [ClientKind; 2] = [ClientKind::V1, ClientKind::V2];

/// Starts a call for which a V1 server creates a working task with a poll interval of a minute.
async fn start_task(caller: &mut Caller, server: &mut TestServer) -> Value {
    let making = async {
        server.list(&[("slow", "optional")]).await;
        let call = server.expect_request("tools/call").await;
        let made = json!({ "task": task("working", 60_000) });
        server.reply(&call, made).await;
    };
    let (answer, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    answer
}

/// The task in a create result.
fn created_task(begun: &Value) -> Value {
    json!({ "taskId": task_in(begun) })
}

async fn status(caller: &mut Caller, task: &Value) -> Value {
    // Let notifications arrive first.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let got = caller.request("tasks/get", task.clone()).await;
    got["result"]["status"].clone()
}

async fn send_status(server: &mut TestServer, status: &str) {
    let notification = task(status, 60_000);
    server
        .notify("notifications/tasks/status", notification)
        .await;
}

fn form(message: &str) -> Value {
    json!({ "message": message, "requestedSchema": { "type": "object" } })
}

fn statuses(caller: &Caller) -> Vec<&str> {
    let of_task = |notification: &&Value| notification["method"] == "notifications/tasks/status";
    let notification = caller.notifications.iter().filter(of_task);
    notification
        .map(|notification| notification["params"]["status"].as_str().unwrap())
        .collect()
}

/// A client and a scripted modern server behind the gateway.
pub(crate) async fn client_and_modern_server(kind: ClientKind, can: Value) -> (Caller, TestServer) {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, modern())).await;
    let connecting =
        tokio::spawn(async move { connect_declaring(kind, &mcp_server, "by-hand", can).await });
    let mut server = servers.next().await;
    discovered(&mut server).await;
    (connecting.await.unwrap(), server)
}

/// The settings for a modern server.
pub(crate) fn modern() -> Settings {
    quick().with_era(Era::Modern)
}

/// Responds to `server/discover` of a modern server with tasks.
pub(crate) async fn discovered(server: &mut TestServer) {
    let request = server.expect_request("server/discover").await;
    let about = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
        "ttlMs": 0,
        "cacheScope": "private",
    });
    server.reply(&request, about).await;
}

/// A V2 task as the server reports it.
fn modern_task(kind: &str, status: &str, message: &str) -> Value {
    json!({
        "resultType": kind, "taskId": "t1", "status": status, "statusMessage": message,
        "createdAt": "2026-01-10T08:00:00Z", "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttlMs": 600_000, "pollIntervalMs": 1_000,
    })
}

/// Responds to the gateway's list requests, and returns the call.
pub(crate) async fn modern_call(server: &mut TestServer) -> Value {
    let list = server.expect_request("tools/list").await;
    let tool = json!({ "name": "slow", "inputSchema": { "type": "object" } });
    let tools = json!({ "resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private" });
    server.reply(&list, tools).await;
    server.expect_request("tools/call").await
}

#[tokio::test(start_paused = true)]
async fn status_changes_follow_the_rules_whatever_the_server_reports() {
    // BR-GEN-4, BR-GEN-5, BR-NT-3, BD-7.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let begun = start_task(&mut caller, &mut server).await;
        let id = created_task(&begun);
        // BD-7: the input request has not arrived yet.
        send_status(&mut server, "input_required").await;
        let fetch = server.expect_request("tasks/result").await;
        assert_eq!(status(&mut caller, &id).await, "working", "{kind:?}");
        // BR-NT-3: it has ended, and its outcome has not arrived yet.
        send_status(&mut server, "completed").await;
        assert_eq!(status(&mut caller, &id).await, "working", "{kind:?}");
        // A terminal status does not change.
        send_status(&mut server, "working").await;
        server.reply(&fetch, scripted::text("done")).await;
        assert_eq!(status(&mut caller, &id).await, "completed", "{kind:?}");
        send_status(&mut server, "failed").await;
        assert_eq!(status(&mut caller, &id).await, "completed", "{kind:?}");
        if kind == ClientKind::V1 {
            assert_eq!(statuses(&caller), ["completed"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn polls_and_lists_are_answered_from_the_store() {
    // BR-GEN-8, BR-LT-1: this server does not support `tasks/list`, and does not get it.
    for kind in WITH_TASKS {
        let mut can = capabilities();
        can["tasks"].as_object_mut().unwrap().remove("list");
        let (mut caller, mut server) = connected(kind, can).await;
        let begun = start_task(&mut caller, &mut server).await;
        let id = created_task(&begun);
        for _ in 0..100 {
            let got = caller.request("tasks/get", id.clone()).await;
            assert_eq!(got["result"]["status"], "working", "{kind:?}");
        }
        if kind == ClientKind::V1 {
            let listed = caller.request("tasks/list", json!({})).await;
            let tasks = listed["result"]["tasks"].as_array().unwrap();
            assert_eq!(tasks.len(), 1);
            assert_eq!(tasks[0]["taskId"], id["taskId"]);
        }
        server.silence(Duration::from_secs(30)).await;
        // One poll, at the server's interval.
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task("working", 60_000)).await;
        server.silence(Duration::from_secs(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_tasks_result_is_repeated_while_input_is_required() {
    // BR-RES-5.
    let (mut caller, mut server) = connected(ClientKind::V2, capabilities()).await;
    let begun = start_task(&mut caller, &mut server).await;
    send_status(&mut server, "input_required").await;
    for _ in 0..3 {
        let fetch = server.expect_request("tasks/result").await;
        server.refuse(&fetch, -32_603, "cut").await;
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task("input_required", 1_000)).await;
    }
    let fetch = server.expect_request("tasks/result").await;
    let mut input_request = form("Who?");
    input_request["_meta"][RELATED] = json!({ "taskId": "t1" });
    server.ask("q", "elicitation/create", input_request).await;
    let finishing = tokio::spawn(async move { caller.finish(json!({}), begun).await });
    let answer = server.response_to_id("q").await;
    assert_eq!(answer["result"]["content"]["name"], "Ada/Who?");
    server.reply(&fetch, scripted::text("done")).await;
    assert!(matches!(finishing.await.unwrap(), CallEnd::Result(_)));
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_not_cancelled() {
    // BR-CAN-3, BR-CAN-10.
    let (mut caller, mut server) = connected(ClientKind::V1, capabilities()).await;
    let begun = start_task(&mut caller, &mut server).await;
    let id = created_task(&begun);
    let cancelled = json!({ "requestId": begun["id"] });
    caller.notify("notifications/cancelled", cancelled).await;
    assert_eq!(status(&mut caller, &id).await, "working");
    server.silence(Duration::from_secs(1)).await;
    send_status(&mut server, "completed").await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, scripted::text("done")).await;
    assert_eq!(status(&mut caller, &id).await, "completed");
    let refused = caller.request("tasks/cancel", id.clone()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.silence(Duration::from_secs(1)).await;
    assert_eq!(status(&mut caller, &id).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_cancelled_by_its_server_is_cancelled() {
    // BR-CAN-11.
    for kind in CLIENT_KINDS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
        server.list(&[("slow", "required")]).await;
        let call = server.expect_request("tools/call").await;
        let made = json!({ "task": task("working", 60_000) });
        server.reply(&call, made).await;
        // Longer than the grace period.
        tokio::time::sleep(Duration::from_millis(500)).await;
        send_status(&mut server, "cancelled").await;
        let ended = calling.await.unwrap();
        let is_so = match (&ended, kind) {
            (CallEnd::Cancelled, _) => true,
            (CallEnd::Error(-32603, why), ClientKind::PlainLegacy | ClientKind::PlainModern) => {
                why.contains("cancelled")
            }
            _ => false,
        };
        assert!(is_so, "{kind:?}: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_dismisses_the_input_request_of_the_call() {
    // BR-CAN-12, BR-CAN-6.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, json!({ "tools": {} })).await;
        caller.leaves_input_open = true;
        let asking = async {
            server.list(&[("slow", "forbidden")]).await;
            let call = server.expect_request("tools/call").await;
            server.ask("q", "elicitation/create", form("Who?")).await;
            call
        };
        let (begun, call) = tokio::join!(caller.begin(json!({ "name": "slow" })), asking);
        let id = created_task(&begun);
        while status(&mut caller, &id).await != "input_required" {}
        let got = caller.request("tasks/get", id.clone()).await;
        let ack = caller.request("tasks/cancel", id.clone()).await;
        assert!(ack.get("error").is_none(), "{ack}");
        let answer = server.response_to_id("q").await;
        assert_eq!(answer["result"]["action"], "cancel", "{kind:?}: {answer}");
        let notification = server.next_message("notifications/cancelled").await;
        assert_eq!(notification["params"]["requestId"], call["id"]);
        while status(&mut caller, &id).await != "cancelled" {}
        let gone = caller.request("tasks/get", id.clone()).await;
        assert!(gone["result"].get("inputRequests").is_none(), "{gone}");
        // Late responses are ignored.
        let accept = json!({ "action": "accept", "content": {} });
        if kind == ClientKind::V2 {
            let keys = got["result"]["inputRequests"].as_object().unwrap();
            let key = keys.keys().next().unwrap();
            let update = json!({ "taskId": id["taskId"], "inputResponses": { key: accept } });
            let taken = caller.request("tasks/update", update).await;
            assert!(taken.get("error").is_none(), "{taken}");
        } else {
            let request = caller.wait_for_notification("elicitation/create").await;
            let late = json!({ "jsonrpc": "2.0", "id": request["id"], "result": accept });
            caller.write(late).await;
        }
        assert_eq!(status(&mut caller, &id).await, "cancelled");
        server.silence(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn disconnecting_before_the_task_cancels_only_modern_calls() {
    // BR-CREATE-10, BR-CAN-13.
    let (mut caller, mut server) = connected(ClientKind::V2, capabilities()).await;
    let request = caller.send("tools/call", json!({ "name": "slow" })).await;
    server.list(&[("slow", "optional")]).await;
    let call = server.expect_request("tools/call").await;
    let cancelled = json!({ "requestId": request });
    caller.notify("notifications/cancelled", cancelled).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let made = json!({ "task": task("working", 60_000) });
    server.reply(&call, made.clone()).await;
    let cancel = server.expect_request("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "t1");

    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let calling = mcp_server.clone();
    let left = tokio::spawn(async move {
        let mut caller = connect(ClientKind::V1, &calling).await;
        let params = json!({ "name": "slow", "task": {} });
        caller.send("tools/call", params).await;
        // Wait until it is sent.
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    server.list(&[("slow", "optional")]).await;
    let call = server.expect_request("tools/call").await;
    left.await.unwrap();
    server.reply(&call, made).await;
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let listed = caller.request("tasks/list", json!({})).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn the_gateway_hosts_tasks_of_the_server() {
    // BR-CH-1.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let begun = start_task(&mut caller, &mut server).await;
        let mut input_request = form("Who?");
        input_request["task"] = json!({ "ttl": 60_000 });
        input_request["_meta"][RELATED] = json!({ "taskId": "t1" });
        server.ask("q", "elicitation/create", input_request).await;
        let made = server.response_to_id("q").await;
        let hosted = &made["result"]["task"];
        assert_eq!(hosted["status"], "working", "{kind:?}: {made}");
        let id = json!({ "taskId": hosted["taskId"] });
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.ask("g", "tasks/get", id.clone()).await;
        let shown = server.response_to_id("g").await;
        assert_eq!(shown["result"]["status"], "input_required", "{shown}");
        server.ask("r", "tasks/result", id.clone()).await;
        let finishing = tokio::spawn(async move {
            let ended = caller.finish(json!({}), begun).await;
            (caller, ended)
        });
        let result = server.response_to_id("r").await;
        let said = &result["result"];
        assert_eq!(said["content"]["name"], "Ada/Who?", "{kind:?}: {result}");
        assert_eq!(said["_meta"][RELATED], id, "{result}");
        send_status(&mut server, "completed").await;
        let fetch = server.expect_request("tasks/result").await;
        server.reply(&fetch, scripted::text("done")).await;
        let (caller, ended) = finishing.await.unwrap();
        assert!(matches!(ended, CallEnd::Result(_)), "{kind:?}");
        // The client got a normal request without `task`.
        let (method, params) = &caller.input_requests[0];
        assert_eq!(method, "elicitation/create");
        assert!(params.get("task").is_none(), "{params}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_to_a_modern_server_declares_input_kinds() {
    // BR-NEG-7, BR-NEG-8.
    for kind in CLIENT_KINDS {
        for (can, declared) in [
            (json!({}), json!({})),
            (
                json!({ "roots": { "listChanged": true }, "elicitation": {} }),
                json!({ "roots": {}, "elicitation": { "form": {} } }),
            ),
            (
                json!({ "sampling": { "tools": {} } }),
                json!({ "sampling": { "tools": {} } }),
            ),
        ] {
            let (mut caller, mut server) = client_and_modern_server(kind, can).await;
            let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
            let call = modern_call(&mut server).await;
            let mut expected = declared.clone();
            expected["extensions"][EXTENSION] = json!({});
            let made = modern_task("task", "working", "begun");
            server.reply(&call, made).await;
            let look = server.expect_request("tasks/get").await;
            for request in [&call, &look] {
                let said = &request["params"]["_meta"][CAPABILITIES];
                assert_eq!(*said, expected, "{kind:?}: {request}");
            }
            let mut ended = modern_task("complete", "completed", "over");
            ended["result"] = scripted::text("done");
            ended["result"]["resultType"] = json!("complete");
            server.reply(&look, ended).await;
            let ended = calling.await.unwrap();
            assert!(matches!(ended, CallEnd::Result(_)), "{kind:?}: {ended:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_v2_status_message_is_not_v1_progress() {
    // BR-PG-4, BD-18.
    let (mut caller, mut server) = client_and_modern_server(ClientKind::V1, json!({})).await;
    let params = json!({ "name": "slow", "task": {}, "_meta": { "progressToken": "mine" } });
    let making = async {
        let call = modern_call(&mut server).await;
        server
            .reply(&call, modern_task("task", "working", "begun"))
            .await;
    };
    let (begun, ()) = tokio::join!(caller.request("tools/call", params), making);
    let id = created_task(&begun);
    let mut times = Vec::new();
    for words in ["a third", "two thirds"] {
        let look = server.expect_request("tasks/get").await;
        // The engine uses the wall clock.
        std::thread::sleep(Duration::from_millis(20));
        server
            .reply(&look, modern_task("complete", "working", words))
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let got = caller.request("tasks/get", id.clone()).await;
        assert_eq!(got["result"]["statusMessage"], words);
        times.push(got["result"]["lastUpdatedAt"].as_str().unwrap().to_owned());
    }
    assert!(times[0] < times[1], "{times:?}");
    let notification = caller
        .notifications
        .iter()
        .map(|notification| notification["method"].as_str().unwrap());
    let notification: Vec<_> = notification.collect();
    assert!(
        notification.contains(&"notifications/tasks/status"),
        "{notification:?}"
    );
    assert!(
        !notification.contains(&"notifications/progress"),
        "{notification:?}"
    );
}

/// A client that supports url elicitation.
async fn client_with_url_elicitation(kind: ClientKind) -> (Caller, TestServer) {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let can = json!({ "elicitation": { "form": {}, "url": {} } });
    let connecting =
        tokio::spawn(async move { connect_declaring(kind, &mcp_server, "by-hand", can).await });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    (connecting.await.unwrap(), server)
}

fn url_elicitation() -> Value {
    json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/in", "elicitationId": "e1" })
}

#[tokio::test(start_paused = true)]
async fn only_a_legacy_client_gets_an_elicitation_id() {
    // BR-IN-10.
    for kind in CLIENT_KINDS {
        let (mut caller, mut server) = client_with_url_elicitation(kind).await;
        let calling = tokio::spawn(async move {
            let ended = caller.call("slow", json!({})).await;
            (caller, ended)
        });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.expect_request("tools/call").await;
        server
            .ask("q", "elicitation/create", url_elicitation())
            .await;
        assert_eq!(
            server.response_to_id("q").await["result"]["action"],
            "accept"
        );
        let done = json!({ "elicitationId": "e1" });
        server
            .notify("notifications/elicitation/complete", done.clone())
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.reply(&call, scripted::text("in")).await;
        let (caller, ended) = calling.await.unwrap();
        assert!(matches!(ended, CallEnd::Result(_)), "{kind:?}: {ended:?}");
        let complete =
            |notification: &&Value| notification["method"] == "notifications/elicitation/complete";
        let complete = caller
            .notifications
            .iter()
            .find(complete)
            .map(|notification| &notification["params"]);
        let (_, request) = &caller.input_requests[0];
        assert_eq!(request["url"], "https://example.org/in");
        match kind {
            ClientKind::PlainLegacy | ClientKind::V1 => {
                assert_eq!(request["elicitationId"], "e1", "{kind:?}");
                assert_eq!(complete, Some(&done), "{kind:?}");
            }
            ClientKind::PlainModern | ClientKind::V2 => {
                assert!(
                    request.get("elicitationId").is_none(),
                    "{kind:?}: {request}"
                );
                assert_eq!(complete, None, "{kind:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_gets_a_generated_elicitation_id() {
    // BR-IN-10.
    let can = json!({ "elicitation": { "form": {}, "url": {} } });
    let (mut caller, mut server) = client_and_modern_server(ClientKind::PlainLegacy, can).await;
    let calling = tokio::spawn(async move {
        let ended = caller.call("slow", json!({})).await;
        (caller, ended)
    });
    let call = modern_call(&mut server).await;
    let mut url_elicitation = url_elicitation();
    url_elicitation
        .as_object_mut()
        .unwrap()
        .remove("elicitationId");
    let asks = json!({ "k": { "method": "elicitation/create", "params": url_elicitation } });
    let input_required =
        json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "s" });
    server.reply(&call, input_required).await;
    let again = server.expect_request("tools/call").await;
    assert_eq!(again["params"]["inputResponses"]["k"]["action"], "accept");
    let mut done = scripted::text("in");
    done["resultType"] = json!("complete");
    server.reply(&again, done).await;
    let (caller, ended) = calling.await.unwrap();
    assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
    let name = caller.input_requests[0].1["elicitationId"]
        .as_str()
        .unwrap();
    assert!(!name.is_empty());
}

/// Rejects a call because it requires a url elicitation.
async fn require_url_elicitation(server: &mut TestServer, call: &Value) {
    let error = json!({ "code": -32042, "message": "sign in first", "data": { "elicitations": [url_elicitation()] } });
    server
        .write(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_required_url_elicitation_follows_the_era_of_the_caller() {
    // BR-IN-11.
    for kind in CLIENT_KINDS {
        let (mut caller, mut server) = client_with_url_elicitation(kind).await;
        let params = json!({ "name": "slow" });
        let calling = tokio::spawn(async move {
            let answer = caller.begin(params.clone()).await;
            let ended = caller.finish(params, answer.clone()).await;
            (answer, ended)
        });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.expect_request("tools/call").await;
        require_url_elicitation(&mut server, &call).await;
        if matches!(kind, ClientKind::PlainModern | ClientKind::V2) {
            let again = server.expect_request("tools/call").await;
            server.reply(&again, scripted::text("in")).await;
            let (answer, ended) = calling.await.unwrap();
            let result = &answer["result"];
            assert_eq!(result["resultType"], "input_required", "{kind:?}: {answer}");
            let CallEnd::Result(result) = ended else {
                panic!("{kind:?}: {ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "in");
        } else {
            let (_, ended) = calling.await.unwrap();
            let passed = CallEnd::Error(-32042, "sign in first".into());
            assert_eq!(ended, passed, "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_caller_without_url_elicitation_gets_the_missing_capability() {
    // BR-IN-11.
    for kind in [ClientKind::PlainModern, ClientKind::V2] {
        let (mut caller, mut server) = connected(kind, json!({ "tools": {} })).await;
        let calling = tokio::spawn(async move { caller.begin(json!({ "name": "slow" })).await });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.expect_request("tools/call").await;
        require_url_elicitation(&mut server, &call).await;
        let answer = calling.await.unwrap();
        assert_eq!(answer["error"]["code"], -32021, "{kind:?}: {answer}");
        let required = &answer["error"]["data"]["requiredCapabilities"];
        assert_eq!(*required, json!({ "elicitation": { "url": {} } }));
    }
}

#[tokio::test(start_paused = true)]
async fn the_creation_decides_which_input_requests_are_allowed() {
    // BD-8: a poll that declares less still gets the input request.
    for server in SERVER_KINDS {
        let harness = Harness::new(server).await;
        let mut caller = connect(ClientKind::V2, &harness.mcp_server).await;
        let begun = caller.begin(json!({ "name": "late" })).await;
        let id = created_task(&begun);
        caller.capabilities = json!({});
        for _ in 0..100 {
            if status(&mut caller, &id).await == "input_required" {
                break;
            }
        }
        let got = caller.request("tasks/get", id).await;
        let requests = got["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(requests.len(), 1, "{server:?}");
        let ended = caller.finish(json!({}), begun).await;
        assert!(matches!(ended, CallEnd::Result(_)), "{server:?}: {ended:?}");
    }
}
