//! The keys of a modern server's input requests as the caller gets them.

use outlast::gateway::{TaskMode, Upstream};
use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::harness::gateway;
use crate::rules::{discovered, modern, modern_call};
use crate::scripted::{self, TestServer};

/// A V2 client and a scripted modern server.
async fn client_and_modern_server(task: TaskMode) -> (Caller, TestServer) {
    let (target, mut servers) = scripted::target();
    let tool_defaults = modern().tool_defaults.with_task(task);
    let settings = modern().with_tool_defaults(tool_defaults);
    let (_, mcp_server) = gateway(Upstream::new("played", target, settings)).await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await });
    let mut server = servers.next().await;
    discovered(&mut server).await;
    (connecting.await.unwrap(), server)
}

/// Responds to a call with an input request of key `k`.
async fn ask(server: &mut TestServer, call: &Value, state: &str) {
    let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let asks = json!({ "k": { "method": "elicitation/create", "params": form } });
    let request =
        json!({ "resultType": "input_required", "inputRequests": asks, "requestState": state });
    server.reply(call, request).await;
}

/// The key of the only input request in a response.
fn only_key(request: &Value) -> String {
    let request = request["result"]["inputRequests"].as_object();
    let keys: Vec<_> = request.unwrap().keys().collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys[0].clone()
}

fn accept() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

async fn done(server: &mut TestServer, call: &Value) {
    let mut done = scripted::text("done");
    done["resultType"] = json!("complete");
    server.reply(call, done).await;
}

#[tokio::test(start_paused = true)]
async fn every_input_round_before_the_work_has_new_keys() {
    // BR-IN-1: the retry has the server's key again.
    let (mut caller, mut server) = client_and_modern_server(TaskMode::Always).await;
    let making = async { modern_call(&mut server).await };
    let (begun, call) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    let id = begun["result"]["taskId"].clone();
    assert!(id.is_string(), "{begun}");
    let (mut call, mut seen) = (call, Vec::new());
    for state in ["one", "two", "three"] {
        ask(&mut server, &call, state).await;
        let asks = |now: &Value| now["status"] == "input_required";
        let now = caller.until(&json!({ "taskId": id }), asks).await;
        let key = only_key(&json!({ "result": now }));
        assert!(key != "k" && !seen.contains(&key), "{key} after {seen:?}");
        let update = json!({ "taskId": id, "inputResponses": { key.clone(): accept() } });
        let taken = caller.request("tasks/update", update).await;
        assert!(taken.get("error").is_none(), "{taken}");
        call = server.expect_request("tools/call").await;
        assert_eq!(call["params"]["inputResponses"]["k"], accept(), "{call}");
        assert_eq!(call["params"]["requestState"], state);
        seen.push(key);
    }
    done(&mut server, &call).await;
    let ended = caller.finish(json!({}), begun).await;
    assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn input_requests_without_a_task_keep_the_servers_keys() {
    // A client without tasks answers the input requests of a modern server.
    let (mut caller, mut server) = client_and_modern_server(TaskMode::Auto).await;
    let asking = async {
        let call = modern_call(&mut server).await;
        ask(&mut server, &call, "one").await;
    };
    let params = json!({ "name": "slow" });
    let (request, ()) = tokio::join!(caller.begin(params.clone()), asking);
    assert_eq!(only_key(&request), "k", "{request}");
    let finishing = tokio::spawn(async move { caller.finish(params, request).await });
    let retry = server.expect_request("tools/call").await;
    assert!(
        retry["params"]["inputResponses"]["k"].is_object(),
        "{retry}"
    );
    done(&mut server, &retry).await;
    let ended = finishing.await.unwrap();
    assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
}
