//! Everything of MCP except tools and tasks, from and to the handler.

use serde_json::json;

use crate::harness::Harness;

#[tokio::test(start_paused = true)]
async fn prompts_resources_and_completion_come_from_the_handler() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let prompts = client.call("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["name"], "greet");
    let prompt = client.call("prompts/get", json!({ "name": "greet" })).await;
    let said = &prompt["result"]["messages"][0]["content"]["text"];
    assert_eq!(said, "Greet you");
    let resources = client.call("resources/list", json!({})).await;
    assert_eq!(resources["result"]["resources"][0]["uri"], "lab:log");
    let read = client
        .call("resources/read", json!({ "uri": "lab:log" }))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "empty");
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "colour", "value": "" },
    });
    let completed = client.call("completion/complete", params).await;
    assert_eq!(
        completed["result"]["completion"]["values"],
        json!(["red", "green"])
    );
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_gets_the_handlers_notifications() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let done = client
        .call("resources/subscribe", json!({ "uri": "lab:log" }))
        .await;
    assert_eq!(done["result"], json!({}));
    let updated = client.next_message("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "lab:log");
    client
        .next_message("notifications/tools/list_changed")
        .await;
    // The tools were listed again and have not changed.
    let task = client.task("declared").await;
    client.result(&task).await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_below_the_level_are_dropped() {
    // A1-22.
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("shout").await;
    client.result(&task).await;
    let seen = client.next_message("notifications/message").await;
    assert_eq!(seen["params"]["data"], "loud");
    assert_eq!(seen["params"]["logger"], "lab");
    let set = client
        .call("logging/setLevel", json!({ "level": "error" }))
        .await;
    assert_eq!(set["result"], json!({}));
    harness.wait_for_report("level Error").await;
    assert_eq!(client.tool("shout").await, "shouted");
    client
        .call("logging/setLevel", json!({ "level": "debug" }))
        .await;
    assert_eq!(client.tool("shout").await, "shouted");
    // Only the second of the two was sent.
    client.next_message("notifications/message").await;
    client.call("ping", json!({})).await;
    assert!(!client.has_early("notifications/message"));
}

#[tokio::test(start_paused = true)]
async fn custom_methods_are_answered_and_unknown_ones_rejected() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let weighed = client.call("lab/weigh", json!({ "flask": 7 })).await;
    assert_eq!(weighed["result"]["grams"]["flask"], 7);
    for method in ["lab/nothing", "tasks/nothing"] {
        let unknown = client.call(method, json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{method}: {unknown}");
    }
    let odd = client.call("resources/read", json!({ "uri": 7 })).await;
    assert_eq!(odd["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_the_clients_notifications() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    harness.wait_for_report("initialized").await;
    client
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    harness.wait_for_report("roots changed").await;
}
