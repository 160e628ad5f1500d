//! Input requests without a proper response: not declared, declined, invalid, or without a key.

use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind, declining};
use serde_json::{Value, json};

use crate::outside_calls::connected;
use crate::rules::{client_and_modern_server, modern_call};
use crate::scripted::{self, capabilities, task};

/// A V2 task with this input request.
fn input_required_task(method: &str, params: Value) -> Value {
    json!({
        "resultType": "complete", "taskId": "t1", "status": "input_required",
        "createdAt": "2026-01-10T08:00:00Z", "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttlMs": 600_000, "pollIntervalMs": 100,
        "inputRequests": { "k": { "method": method, "params": params } },
    })
}

fn working_task() -> Value {
    json!({
        "resultType": "task", "taskId": "t1", "status": "working",
        "createdAt": "2026-01-10T08:00:00Z", "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttlMs": 600_000, "pollIntervalMs": 100,
    })
}

fn sampling() -> Value {
    json!({ "messages": [], "maxTokens": 1 })
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_input_request_ends_the_call_with_that_reason() {
    for kind in [ClientKind::V1, ClientKind::V2, ClientKind::PlainLegacy] {
        let (mut caller, mut server) =
            client_and_modern_server(kind, json!({ "elicitation": {} })).await;
        let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
        let call = modern_call(&mut server).await;
        server.reply(&call, working_task()).await;
        let look = server.expect_request("tasks/get").await;
        let asks = input_required_task("sampling/createMessage", sampling());
        server.reply(&look, asks).await;
        let cancel = server.expect_request("tasks/cancel").await;
        let ack = json!({ "resultType": "complete" });
        server.reply(&cancel, ack).await;
        match calling.await.unwrap() {
            CallEnd::Error(_, why) => {
                assert!(
                    why.contains("did not declare `sampling`"),
                    "{kind:?}: {why}"
                );
            }
            other => panic!("{kind:?}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn declining_to_sample_does_not_cancel_the_call() {
    let (mut caller, mut server) =
        client_and_modern_server(ClientKind::V1, json!({ "sampling": {} })).await;
    caller.responder = declining;
    let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
    let call = modern_call(&mut server).await;
    server.reply(&call, working_task()).await;
    let look = server.expect_request("tasks/get").await;
    let asks = input_required_task("sampling/createMessage", sampling());
    server.reply(&look, asks).await;
    let update = server.expect_request("tasks/update").await;
    let said = &update["params"]["inputResponses"]["k"];
    assert_eq!(said["stopReason"], "declined", "{update}");
    assert_eq!(said["content"]["text"], "", "{update}");
    server
        .reply(&update, json!({ "resultType": "complete" }))
        .await;
    let look = server.expect_request("tasks/get").await;
    let mut ended = working_task();
    ended["resultType"] = json!("complete");
    ended["status"] = json!("completed");
    ended["result"] = scripted::text("without a model");
    ended["result"]["resultType"] = json!("complete");
    server.reply(&look, ended).await;
    let ended = calling.await.unwrap();
    assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
    assert!(!server.has_received("tasks/cancel"));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_breaks_the_schema_is_not_forwarded() {
    // V1-ELIC-18.
    let form = || {
        json!({ "message": "How many?", "requestedSchema": {
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } })
    };
    // A legacy response cannot be rejected: the server gets an error.
    let (mut caller, mut server) = connected(ClientKind::PlainLegacy, json!({ "tools": {} })).await;
    caller.responder = |_, _| Ok(json!({ "action": "accept", "content": { "n": "many" } }));
    let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
    server.list(&[("slow", "forbidden")]).await;
    let call = server.expect_request("tools/call").await;
    server.ask("q", "elicitation/create", form()).await;
    let answer = server.response_to_id("q").await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("requestedSchema") && !why.contains("many"),
        "{why}"
    );
    server.reply(&call, scripted::text("done")).await;
    calling.await.unwrap();
    // A modern response is rejected, and the input request stays open (BR-IN-8).
    let (mut caller, mut server) = connected(ClientKind::V2, json!({ "tools": {} })).await;
    let asking = async {
        server.list(&[("slow", "forbidden")]).await;
        let call = server.expect_request("tools/call").await;
        server.ask("q", "elicitation/create", form()).await;
        call
    };
    let (begun, call) = tokio::join!(caller.begin(json!({ "name": "slow" })), asking);
    let task = begun["result"]["taskId"].clone();
    let asks = |now: &Value| now["status"] == "input_required";
    let now = caller.until(&json!({ "taskId": task }), asks).await;
    let open = now["inputRequests"].as_object().unwrap();
    let key = open.keys().next().unwrap().clone();
    for (n, refused) in [(json!("many"), true), (json!(3), false)] {
        let said = json!({ "action": "accept", "content": { "n": n } });
        let update = json!({ "taskId": task, "inputResponses": { &key: said } });
        let update = caller.request("tasks/update", update).await;
        assert_eq!(update.get("error").is_some(), refused, "{update}");
    }
    let answer = server.response_to_id("q").await;
    assert_eq!(answer["result"]["content"]["n"], 3, "{answer}");
    server.reply(&call, scripted::text("done")).await;
}

#[tokio::test(start_paused = true)]
async fn an_unnamed_input_request_belongs_to_the_active_call() {
    let (mut caller, mut server) = connected(ClientKind::V1, capabilities()).await;
    let mut begin = async |caller: &mut Caller, id: &str, first: bool| {
        let making = async {
            if first {
                server.list(&[("slow", "optional")]).await;
            }
            let call = server.expect_request("tools/call").await;
            let mut made = task("working", 60_000);
            made["taskId"] = json!(id);
            server.reply(&call, json!({ "task": made })).await;
        };
        let (answer, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
        json!({ "taskId": answer["result"]["task"]["taskId"] })
    };
    let cancelled = begin(&mut caller, "t1", true).await;
    let runs = begin(&mut caller, "t2", false).await;
    caller.request("tasks/cancel", cancelled).await;
    // Without a response the call still exists.
    server.expect_request("tasks/cancel").await;
    let form = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
    server.ask("q", "elicitation/create", form).await;
    let waiting = tokio::spawn(async move {
        caller.request("tasks/result", runs).await;
    });
    let answer = server.response_to_id("q").await;
    assert_eq!(answer["result"]["content"]["name"], "Ada/Who?", "{answer}");
    waiting.abort();
}
