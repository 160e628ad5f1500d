//! Input requests whose forms and messages are Rust types.

use std::sync::Arc;

use outlast::schemars::{self, JsonSchema};
use outlast::store::MemoryStore;
use outlast::tools::{Elicited, SamplingMessage, SamplingRequest};
use outlast::{TaskSupport, Tool, Tools, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::StdioClient;
use crate::tasks::create;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Who travels.
    name: String,
    seats: u8,
    class: Option<Class>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    First,
    Second,
}

async fn client() -> StdioClient {
    let book = Tool::new("book", "asks for a booking", |_, cx| async move {
        Ok(text(match cx.elicit::<Booking>("Book it?").await? {
            Elicited::Accepted(Booking { name, seats, class }) => {
                format!("{seats} seats for {name} in {class:?}")
            }
            Elicited::Declined => "declined".into(),
            Elicited::Cancelled => "cancelled".into(),
        }))
    });
    let write = Tool::new("write", "asks the model", |_, cx| async move {
        let messages = [
            SamplingMessage::user("Hi"),
            SamplingMessage::assistant("Ho"),
        ];
        let request = SamplingRequest::conversation(messages).max_tokens(7);
        let response = cx.sample(request).await?;
        Ok(text(format!("{}: {}", response.model, response.text())))
    });
    let tools = [book, write].map(|tool| tool.task(TaskSupport::Optional));
    let tools = tools.into_iter().fold(Tools::new(), Tools::with);
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), tools).await;
    let can = json!({ "elicitation": {}, "sampling": {} });
    client.introduce("2025-11-25", can).await;
    client
}

/// The result of a task of `tool` whose input request gets `response`, and the request.
async fn respond(tool: &str, method: &str, response: Value) -> (Value, Value) {
    let mut client = client().await;
    let id = create(&mut client, tool).await;
    let request = client.next_message(method).await;
    client.respond(&request["id"], response).await;
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    (request["params"].clone(), result["result"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_form_of_a_type_is_filled_in() {
    // V1-ELIC-18: the harness checks the request against the schema of the protocol.
    let content = json!({ "name": "Ada", "seats": 2, "class": "first" });
    let response = json!({ "action": "accept", "content": content });
    let (request, result) = respond("book", "elicitation/create", response).await;
    assert_eq!(request["message"], "Book it?");
    let properties = &request["requestedSchema"]["properties"];
    assert_eq!(properties["name"]["description"], "Who travels.");
    assert_eq!(properties["class"]["enum"], json!(["first", "second"]));
    let required = json!(["name", "seats"]);
    assert_eq!(request["requestedSchema"]["required"], required);
    let said = &result["content"][0]["text"];
    assert_eq!(said, "2 seats for Ada in Some(First)");
}

#[tokio::test(start_paused = true)]
async fn a_form_can_be_declined_or_cancelled() {
    for (action, said) in [("decline", "declined"), ("cancel", "cancelled")] {
        let response = json!({ "action": action });
        let (_, result) = respond("book", "elicitation/create", response).await;
        assert_eq!(result["content"][0]["text"], said);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_of_another_type_is_a_tool_error() {
    let content = json!({ "name": "Ada", "seats": 300 });
    let response = json!({ "action": "accept", "content": content });
    let (_, result) = respond("book", "elicitation/create", response).await;
    assert_eq!(result["isError"], true, "{result}");
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("seats"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn typed_messages_reach_the_model() {
    let content = json!({ "type": "text", "text": "Hello!" });
    let response = json!({ "role": "assistant", "content": content, "model": "small" });
    let (request, result) = respond("write", "sampling/createMessage", response).await;
    assert_eq!(request["maxTokens"], 7);
    assert_eq!(request["messages"][1]["role"], "assistant");
    assert_eq!(result["content"][0]["text"], "small: Hello!");
}
