//! Log messages of tools.

use std::sync::Arc;

use outlast::engine::MemoryStore;
use outlast::{Level, TaskSupport, Tool, Tools, text};
use serde_json::{Value, json};

use crate::harness::Client;
use crate::tasks::create;

/// The next message: its level and what it says.
async fn heard(client: &mut Client) -> (Value, Value) {
    let mut told = client.told("notifications/message").await;
    assert_eq!(told["params"]["logger"], "log");
    (
        told["params"]["level"].take(),
        told["params"]["data"].take(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_call_speaks_before_its_answer() {
    let mut client = Client::new().await;
    let id = client.send("tools/call", json!({ "name": "log" })).await;
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/message");
    assert_eq!(told["params"]["level"], "info");
    assert_eq!(told["params"]["data"], json!({ "found": 3 }));
    assert_eq!(told["params"].get("_meta"), None);
    let told = client.next().await;
    assert_eq!(told["params"]["level"], "error");
    assert_eq!(client.next().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_from_the_level_on_that_it_wants() {
    let mut client = Client::new().await;
    let set = client
        .call("logging/setLevel", json!({ "level": "debug" }))
        .await;
    assert_eq!(set["result"], json!({}));
    client.call("tools/call", json!({ "name": "log" })).await;
    for (level, data) in [
        ("debug", json!("looking")),
        ("info", json!({ "found": 3 })),
        ("error", json!("one is broken")),
    ] {
        assert_eq!(heard(&mut client).await, (json!(level), data));
    }
    client
        .call("logging/setLevel", json!({ "level": "alert" }))
        .await;
    client.call("tools/call", json!({ "name": "log" })).await;
    assert_eq!(client.early(), None);
}

#[tokio::test(start_paused = true)]
async fn a_level_that_nobody_knows_is_refused() {
    let mut client = Client::new().await;
    for odd in [json!({}), json!({ "level": "loud" }), json!({ "level": 3 })] {
        let refused = client.call("logging/setLevel", odd).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_task_says_first_is_heard() {
    let hasty = Tool::new("hasty", "speaks at once", |_, cx| async move {
        cx.log(Level::Notice, "begun");
        cx.progress(1.0, 2.0);
        Ok(text("done"))
    });
    let tools = Tools::new().with(hasty.task(TaskSupport::Optional));
    let mut client = Client::connect(Arc::new(MemoryStore::new()), tools).await;
    client.introduce("2025-11-25", json!({})).await;
    let id = create(&mut client, "hasty").await;
    let told = client.told("notifications/message").await;
    assert_eq!(told["params"]["data"], "begun");
    // V1-PROG-1, V1-PROG-4.
    let told = client.told("notifications/progress").await;
    assert_eq!(
        (
            &told["params"]["progressToken"],
            &told["params"]["progress"]
        ),
        (&json!(7), &json!(1))
    );
    let told = client.told("notifications/tasks/status").await;
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&json!(id), &json!("completed"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_task_says_carries_the_task() {
    // A1-22.
    let mut client = Client::new().await;
    let id = create(&mut client, "log").await;
    let told = client.told("notifications/message").await;
    let related = &told["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": id }));
    assert_eq!(told["params"]["data"], json!({ "found": 3 }));
    assert_eq!(heard(&mut client).await.0, json!("error"));
}
