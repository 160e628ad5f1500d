//! Log messages of tools.

use std::sync::Arc;

use outlast::store::MemoryStore;
use outlast::{Level, TaskSupport, Tool, Tools, text};
use serde_json::{Value, json};

use crate::harness::StdioClient;
use crate::tasks::create;

/// The level and the data of the next log message.
async fn next_log(client: &mut StdioClient) -> (Value, Value) {
    let mut notification = client.next_message("notifications/message").await;
    assert_eq!(notification["params"]["logger"], "log");
    (
        notification["params"]["level"].take(),
        notification["params"]["data"].take(),
    )
}

#[tokio::test(start_paused = true)]
async fn log_messages_precede_the_response() {
    let mut client = StdioClient::new().await;
    let id = client.send("tools/call", json!({ "name": "log" })).await;
    let notification = client.next().await;
    assert_eq!(notification["method"], "notifications/message");
    assert_eq!(notification["params"]["level"], "info");
    assert_eq!(notification["params"]["data"], json!({ "found": 3 }));
    assert_eq!(notification["params"].get("_meta"), None);
    let notification = client.next().await;
    assert_eq!(notification["params"]["level"], "error");
    assert_eq!(client.next().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn log_messages_below_the_level_are_not_sent() {
    let mut client = StdioClient::new().await;
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
        assert_eq!(next_log(&mut client).await, (json!(level), data));
    }
    client
        .call("logging/setLevel", json!({ "level": "alert" }))
        .await;
    client.call("tools/call", json!({ "name": "log" })).await;
    assert_eq!(client.early(), None);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_log_level_is_rejected() {
    let mut client = StdioClient::new().await;
    for odd in [json!({}), json!({ "level": "loud" }), json!({ "level": 3 })] {
        let rejected = client.call("logging/setLevel", odd).await;
        assert_eq!(rejected["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_messages_of_a_task_are_sent() {
    let hasty = Tool::new("hasty", "speaks at once", |_, cx| async move {
        cx.log(Level::Notice, "begun");
        cx.progress(1.0, 2.0);
        Ok(text("done"))
    });
    let tools = Tools::new().with(hasty.task(TaskSupport::Optional));
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), tools).await;
    client.introduce("2025-11-25", json!({})).await;
    let id = create(&mut client, "hasty").await;
    let notification = client.next_message("notifications/message").await;
    assert_eq!(notification["params"]["data"], "begun");
    // V1-PROG-1, V1-PROG-4.
    let notification = client.next_message("notifications/progress").await;
    assert_eq!(
        (
            &notification["params"]["progressToken"],
            &notification["params"]["progress"]
        ),
        (&json!(7), &json!(1))
    );
    let notification = client.next_message("notifications/tasks/status").await;
    assert_eq!(
        (
            &notification["params"]["taskId"],
            &notification["params"]["status"]
        ),
        (&json!(id), &json!("completed"))
    );
}

#[tokio::test(start_paused = true)]
async fn log_messages_of_a_task_name_it() {
    // A1-22.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "log").await;
    let notification = client.next_message("notifications/message").await;
    let related = &notification["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": id }));
    assert_eq!(notification["params"]["data"], json!({ "found": 3 }));
    assert_eq!(next_log(&mut client).await.0, json!("error"));
}
