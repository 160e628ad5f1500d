//! Sessions survive a restart.

use outlast::transport::http::HttpOptions;
use outlast_testkit::eventually;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn a_session_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = harness.client().await;
    let ended = client.task("gated", json!({})).await;
    harness.gate.add_permits(1);
    client.until(&ended, "completed").await;
    let asks = client.task("ask", json!({})).await;
    let open = client.task("gated", json!({})).await;
    let mut general = client.listen(None).await;
    let (last, first_request) = general.next_message("elicitation/create").await;
    harness.stop().await;
    drop(general);

    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: harness.server.local_addr(),
        ..client
    };
    assert_eq!(client.status(&ended).await["result"]["status"], "completed");
    let result = client.result(&ended).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");

    // The event id is from before the restart: the client gets the status of open tasks and the
    // input request.
    let mut general = client.listen(Some(&last)).await;
    general.next_message("notifications/tasks/status").await;
    let (_, input_request) = general.next_message("elicitation/create").await;
    assert_ne!(
        input_request["id"], first_request["id"],
        "a new run has a new id"
    );
    client.respond(&input_request["id"], "Ada").await;
    client.until(&asks, "completed").await;

    let mut waiting = client.result(&open).await;
    assert!(waiting.is_stream());
    harness.gate.add_permits(1);
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_wait_after_a_restart_gets_the_input_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    harness.stop().await;

    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: harness.server.local_addr(),
        ..client
    };
    let mut waiting = client.result(&task).await;
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    client.respond(&input_request["id"], "Bob").await;
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Bob\"!");
}

#[tokio::test]
async fn an_ended_session_stays_ended_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let (gone, stays) = (harness.client().await, harness.client().await);
    assert_eq!(gone.delete_session().await.status, 204);
    harness.stop().await;

    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let address = harness.server.local_addr();
    let (gone, stays) = (
        HttpClient { address, ..gone },
        HttpClient { address, ..stays },
    );
    assert_eq!(gone.request("ping", json!({})).await.status, 404);
    assert_eq!(stays.request("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.json().await }
    });
    eventually("the call runs", async || harness.engine.running() > 0).await;
    let closing = tokio::spawn(harness.server.shutdown());
    assert_eq!(general.rest().await, [] as [serde_json::Value; 0]);
    assert_eq!(client.request("ping", json!({})).await.status, 503);
    harness.gate.add_permits(1);
    let response = waiting.await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "through");
    closing.await.unwrap();
}

#[tokio::test]
async fn preferences_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = harness.client().await;
    let [one, other] = ["test:one", "test:other"].map(|uri| json!({ "uri": uri }));
    client.call("resources/subscribe", one.clone()).await;
    client.call("resources/subscribe", other.clone()).await;
    client.call("resources/unsubscribe", other).await;
    let level = json!({ "level": "error" });
    client.call("logging/setLevel", level).await;
    harness.stop().await;

    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: harness.server.local_addr(),
        ..client
    };
    let mut general = client.listen(None).await;
    // The session restores its subscription in the background; until then changes are not sent.
    let changes = tokio::spawn({
        let resources = harness.resources.clone();
        async move {
            loop {
                resources.updated("test:other");
                resources.updated("test:one");
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    });
    let (_, notification) = general
        .next_message("notifications/resources/updated")
        .await;
    assert_eq!(notification["params"], one);
    changes.abort();
    drop(general);

    // Messages below the stored level are not sent.
    harness.gate.add_permits(4);
    let received = client.tool("says", json!({})).await.json().await;
    assert_eq!(received["result"]["content"][0]["text"], "said");
}
