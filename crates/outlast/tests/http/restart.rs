//! A session outlives the process.

use outlast::transport::http::HttpOptions;
use outlast_testkit::eventually;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

use crate::harness::Stage;

#[tokio::test]
async fn a_client_goes_on_with_its_session_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = stage.client().await;
    let ended = client.task("gated", json!({})).await;
    stage.gate.add_permits(1);
    client.until(&ended, "completed").await;
    let asks = client.task("ask", json!({})).await;
    let open = client.task("gated", json!({})).await;
    let mut general = client.listen(None).await;
    let (last, first_question) = general.told("elicitation/create").await;
    stage.fall().await;
    drop(general);

    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: stage.server.local_addr(),
        ..client
    };
    assert_eq!(client.status(&ended).await["result"]["status"], "completed");
    let result = client.result(&ended).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");

    // The event is of another life: the client learns how things stand, and is asked again.
    let mut general = client.listen(Some(&last)).await;
    general.told("notifications/tasks/status").await;
    let (_, question) = general.told("elicitation/create").await;
    assert_ne!(question["id"], first_question["id"], "a new run asks anew");
    client.respond(&question["id"], "Ada").await;
    client.until(&asks, "completed").await;

    let mut waiting = client.result(&open).await;
    assert!(waiting.is_stream());
    stage.gate.add_permits(1);
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_question_of_a_wait_after_a_restart_finds_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    stage.fall().await;

    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: stage.server.local_addr(),
        ..client
    };
    let mut waiting = client.result(&task).await;
    let (_, question) = waiting.told("elicitation/create").await;
    client.respond(&question["id"], "Bob").await;
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Bob\"!");
}

#[tokio::test]
async fn an_ended_session_stays_ended_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let (gone, stays) = (stage.client().await, stage.client().await);
    assert_eq!(gone.leave().await.status, 204);
    stage.fall().await;

    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let address = stage.server.local_addr();
    let (gone, stays) = (
        HttpClient { address, ..gone },
        HttpClient { address, ..stays },
    );
    assert_eq!(gone.ask("ping", json!({})).await.status, 404);
    assert_eq!(stays.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_server_that_shuts_down_lets_requests_finish() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut general = client.listen(None).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.json().await }
    });
    eventually("the call runs", async || stage.engine.running() > 0).await;
    let closing = tokio::spawn(stage.server.shutdown());
    assert_eq!(general.rest().await, [] as [serde_json::Value; 0]);
    assert_eq!(client.ask("ping", json!({})).await.status, 503);
    stage.gate.add_permits(1);
    let answer = waiting.await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "through");
    closing.await.unwrap();
}

#[tokio::test]
async fn what_a_client_said_once_holds_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = stage.client().await;
    let [one, other] = ["test:one", "test:other"].map(|uri| json!({ "uri": uri }));
    client.call("resources/subscribe", one.clone()).await;
    client.call("resources/subscribe", other.clone()).await;
    client.call("resources/unsubscribe", other).await;
    let level = json!({ "level": "error" });
    client.call("logging/setLevel", level).await;
    stage.fall().await;

    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = HttpClient {
        address: stage.server.local_addr(),
        ..client
    };
    let mut general = client.listen(None).await;
    // The session tells the server again what it wants; until then a change is nobody's business.
    let changes = tokio::spawn({
        let resources = stage.resources.clone();
        async move {
            loop {
                resources.updated("test:other");
                resources.updated("test:one");
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    });
    let (_, told) = general.told("notifications/resources/updated").await;
    assert_eq!(told["params"], one);
    changes.abort();
    drop(general);

    // What is less severe than an error is not told.
    stage.gate.add_permits(4);
    let said = client.tool("says", json!({})).await.json().await;
    assert_eq!(said["result"]["content"][0]["text"], "said");
}
