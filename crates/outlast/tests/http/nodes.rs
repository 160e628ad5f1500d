//! Two nodes on one store: a request for the session of another node is forwarded there.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use outlast::store::{MemoryStore, Store};
use outlast::task::Policy;
use outlast::transport::http::{HttpOptions, NodeOptions};
use outlast_testkit::eventually;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn a_session_continues_at_every_node() {
    let [one, other] = nodes().await;
    let client = one.client().await;
    let elsewhere = at_node(&client, &other);
    let said = elsewhere.tool("echo", json!({ "say": "hi" })).await;
    assert_eq!(said.json().await["result"]["content"][0]["text"], "hi");

    // A call at one node sends its input request on the stream that the client holds at another,
    // and the response reaches it from there.
    let mut general = elsewhere.listen(None).await;
    let task = client.task("ask", json!({})).await;
    let (last, input_request) = general.next_message("elicitation/create").await;
    assert_eq!(
        elsewhere.status(&task).await["result"]["status"],
        "input_required"
    );
    drop(general);
    let mut general = client.listen(Some(&last)).await;
    elsewhere.respond(&input_request["id"], "Ada").await;
    general.next_message("notifications/tasks/status").await;
    elsewhere.until(&task, "completed").await;
    for client in [&client, &elsewhere] {
        let result = client.result(&task).await.json().await;
        assert_eq!(result["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    }
}

#[tokio::test]
async fn a_session_ends_at_every_node() {
    let [one, other] = nodes().await;
    let (client, stays) = (one.client().await, one.client().await);
    assert_eq!(at_node(&client, &other).delete_session().await.status, 204);
    for node in [&one, &other] {
        assert_eq!(
            at_node(&client, node)
                .request("ping", json!({}))
                .await
                .status,
            404
        );
        assert_eq!(
            at_node(&stays, node)
                .request("ping", json!({}))
                .await
                .status,
            200
        );
    }
}

#[tokio::test]
async fn a_suspended_call_resumes_at_its_node_from_every_node() {
    // V2-MRTR-5: only the node of the call can resume it.
    let [one, other] = nodes().await;
    let client = HttpClient::modern(one.server.local_addr());
    let elsewhere = at_node(&client, &other);
    let can = || json!({ "elicitation": { "form": {} } });
    let call = json!({ "name": "ask", "arguments": {} });
    let asked = client.modern_response("tools/call", call, can()).await;
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    let retry = json!({
        "name": "ask",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": { key: { "action": "accept", "content": { "name": "Ada" } } },
    });
    let answered = elsewhere.modern_response("tools/call", retry.clone(), can());
    let answered = answered.await;
    assert_eq!(
        answered["result"]["content"][0]["text"], "Hello, \"Ada\"!",
        "{answered}"
    );
    // The call has ended, and does not run again.
    for client in [&client, &elsewhere] {
        let again = client.modern_response("tools/call", retry.clone(), can());
        assert_eq!(again.await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn the_session_of_a_node_that_left_continues() {
    let [one, other] = nodes().await;
    let client = one.client().await;
    let task = client.task("gated", json!({})).await;
    let elsewhere = at_node(&client, &other);
    let mut general = elsewhere.listen(None).await;
    let first = general.event().await.unwrap().id.unwrap();
    drop(general);
    drop(one.server);
    one.engine.shutdown(Duration::ZERO).await.unwrap();
    eventually("the session is taken over", async || {
        elsewhere.request("ping", json!({})).await.status == 200
    })
    .await;
    // A new stream begins with the status of open tasks.
    let mut general = elsewhere.listen(Some(&first)).await;
    let (_, status) = general.next_message("notifications/tasks/status").await;
    assert_eq!(status["params"]["taskId"], task);
    other.gate.add_permits(1);
    elsewhere.until(&task, "completed").await;
}

#[tokio::test]
async fn a_node_that_refuses_connections_is_replaced_at_once() {
    let [one, other] = nodes().await;
    let client = one.client().await;
    let elsewhere = at_node(&client, &other);
    assert_eq!(elsewhere.request("ping", json!({})).await.status, 200);
    // Its engine keeps the lease.
    one.server.shutdown().await;
    assert_eq!(elsewhere.request("ping", json!({})).await.status, 200);
    let said = elsewhere.tool("echo", json!({ "say": "hi" })).await;
    assert_eq!(said.json().await["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn stored_tasks_are_found_while_the_home_does_not_answer() {
    let [one, other] = nodes().await;
    let client = one.client().await;
    let task = client.task("gated", json!({})).await;
    let elsewhere = at_node(&client, &other);
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    one.engine.publish_address(&address).await.unwrap();
    eventually("the address is known", async || {
        let answer = elsewhere.request("ping", json!({}));
        let answer = tokio::time::timeout(Duration::from_millis(300), answer);
        answer.await.is_err()
    })
    .await;
    let status = elsewhere.status(&task).await;
    assert_eq!(status["result"]["status"], "working");
    let listed = elsewhere.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task);
    let cancelled = elsewhere.call("tasks/cancel", json!({ "taskId": task }));
    assert_eq!(cancelled.await["result"]["status"], "cancelled");
}

#[tokio::test]
async fn only_nodes_use_the_listener_for_nodes() {
    let [one, _other] = nodes().await;
    let client = one.client().await;
    let listed = one.engine.nodes().await.unwrap();
    let own = listed.iter().find(|node| node.node == one.engine.node());
    let address = own.unwrap().address.as_deref().unwrap().parse().unwrap();
    let outside = HttpClient { address, ..client };
    assert_eq!(outside.request("ping", json!({})).await.status, 403);
}

/// Two nodes on one store, whose listeners know each other.
async fn nodes() -> [Harness; 2] {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = async || {
        let options = HttpOptions::default();
        let listener = NodeOptions::new(([127, 0, 0, 1], 0).into());
        Harness::on(
            store.clone(),
            options.with_nodes(Some(listener)),
            Policy::default(),
        )
        .await
    };
    let nodes = [node().await, node().await];
    eventually("both addresses are published", async || {
        let listed = nodes[0].engine.nodes().await.unwrap();
        listed.iter().all(|node| node.address.is_some())
    })
    .await;
    nodes
}

/// The same client at another node.
fn at_node(client: &HttpClient, node: &Harness) -> HttpClient {
    HttpClient {
        address: node.server.local_addr(),
        ..client.clone()
    }
}
