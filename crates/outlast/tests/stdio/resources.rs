//! Resources, templates and subscriptions.

use outlast::resources::{Contents, Resource, Resources, Template};
use serde_json::{Value, json};

use crate::harness::StdioClient;

fn resources() -> Resources {
    let notes = Resource::new("notes:today", "Today", || async {
        Ok(Contents::text("nothing yet"))
    });
    let picture = Resource::new("notes:picture", "Picture", || async {
        Ok(Contents::bytes([0, 255]).mime("image/png"))
    });
    let broken = Resource::new("notes:broken", "Broken", || async { Err("no disk".into()) });
    let day = Template::new("notes:day/{day}", "A day", |day| async move {
        Ok(Contents::text(format!("of {}", day["day"])))
    });
    Resources::new()
        .with(notes.description("what is on").mime("text/plain"))
        .with(picture)
        .with(broken)
        .with_template(day.mime("text/plain").complete("day", |input| async move {
            vec![format!("{}day", input.text)]
        }))
}

async fn connect_user(resources: &Resources) -> (StdioClient, Value) {
    let mut client = StdioClient::of(|own| own.resources(resources.clone())).await;
    let received = client.introduce("2025-11-25", json!({})).await;
    (client, received["capabilities"].clone())
}

#[tokio::test(start_paused = true)]
async fn resources_and_templates_are_listed() {
    let (mut client, capabilities) = connect_user(&resources()).await;
    assert_eq!(
        capabilities["resources"],
        json!({ "listChanged": true, "subscribe": true })
    );
    assert_eq!(capabilities["completions"], json!({}));
    assert_eq!(capabilities.get("prompts"), None);
    let listed = client.call("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(
        listed[2],
        json!({
            "uri": "notes:today", "name": "Today", "description": "what is on", "mimeType": "text/plain",
        })
    );
    let listed = client.call("resources/templates/list", json!({})).await;
    assert_eq!(
        listed["result"]["resourceTemplates"],
        json!([{ "uriTemplate": "notes:day/{day}", "name": "A day", "mimeType": "text/plain" }])
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_read_as_text_or_as_bytes() {
    let (mut client, _) = connect_user(&resources()).await;
    for (uri, contents) in [
        (
            "notes:today",
            json!({ "uri": "notes:today", "mimeType": "text/plain", "text": "nothing yet" }),
        ),
        (
            "notes:picture",
            json!({ "uri": "notes:picture", "mimeType": "image/png", "blob": "AP8=" }),
        ),
        (
            "notes:day/mon%20day",
            json!({ "uri": "notes:day/mon%20day", "mimeType": "text/plain", "text": "of mon day" }),
        ),
    ] {
        let got = client.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(got["result"]["contents"], json!([contents]));
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_names_an_unknown_resource() {
    let (mut client, _) = connect_user(&resources()).await;
    for method in ["resources/read", "resources/subscribe"] {
        let rejected = client.call(method, json!({ "uri": "notes:day/" })).await;
        assert_eq!(rejected["error"]["code"], -32002, "{method}");
        assert_eq!(rejected["error"]["data"], json!({ "uri": "notes:day/" }));
        let rejected = client.call(method, json!({ "uri": 7 })).await;
        assert_eq!(rejected["error"]["code"], -32602, "{method}");
    }
    let failed = client
        .call("resources/read", json!({ "uri": "notes:broken" }))
        .await;
    assert_eq!(failed["error"]["code"], -32603);
    assert_eq!(failed["error"]["message"], "no disk");
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_updates_of_its_subscriptions_only() {
    let resources = resources();
    let (mut client, _) = connect_user(&resources).await;
    resources.updated("notes:today");
    for uri in ["notes:today", "notes:day/monday"] {
        let done = client
            .call("resources/subscribe", json!({ "uri": uri }))
            .await;
        assert_eq!(done["result"], json!({}));
    }
    resources.updated("notes:picture");
    resources.updated("notes:today");
    resources.updated("notes:day/monday");
    for uri in ["notes:today", "notes:day/monday"] {
        let notification = client.next_message("notifications/resources/updated").await;
        assert_eq!(notification["params"], json!({ "uri": uri }));
    }
    let done = client
        .call("resources/unsubscribe", json!({ "uri": "notes:today" }))
        .await;
    assert_eq!(done["result"], json!({}));
    resources.updated("notes:today");
    resources.remove("notes:broken");
    // No notification precedes the change of the list.
    let notification = client.next().await;
    assert_eq!(
        notification["method"],
        "notifications/resources/list_changed"
    );
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_bounded() {
    let (mut client, _) = connect_user(&resources()).await;
    for day in 0..1_000 {
        let uri = format!("notes:day/{day}");
        let done = client
            .call("resources/subscribe", json!({ "uri": uri }))
            .await;
        assert_eq!(done["result"], json!({}));
    }
    let rejected = client
        .call("resources/subscribe", json!({ "uri": "notes:today" }))
        .await;
    assert_eq!(rejected["error"]["code"], -32602);
    client
        .call("resources/unsubscribe", json!({ "uri": "notes:day/7" }))
        .await;
    let done = client
        .call("resources/subscribe", json!({ "uri": "notes:today" }))
        .await;
    assert_eq!(done["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn variables_of_a_template_are_completed() {
    let (mut client, _) = connect_user(&resources()).await;
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "notes:day/{day}" },
        "argument": { "name": "day", "value": "mon" },
    });
    let got = client.call("completion/complete", params).await;
    assert_eq!(
        got["result"]["completion"],
        json!({ "values": ["monday"], "total": 1, "hasMore": false })
    );
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "notes:other/{day}" },
        "argument": { "name": "day", "value": "mon" },
    });
    let rejected = client.call("completion/complete", params).await;
    assert_eq!(rejected["error"]["code"], -32602);
}
