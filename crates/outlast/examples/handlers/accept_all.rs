//! A handler without a user: it accepts every input request.

use outlast::client::{ClientHandler, ServerInputRequest, accept, roots};
use outlast::task::{InputKind, InputKinds, InputResponse};
use outlast::wire::Raw;
use serde_json::{Value, json};

/// Accepts every input request.
pub(crate) struct AcceptAll;

#[async_trait::async_trait]
impl ClientHandler for AcceptAll {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        let task = request.task.as_deref().unwrap_or("no task");
        println!("  asked: {} of {task}", request.kind.word());
        match request.kind {
            InputKind::ElicitForm => accept(Some(filled_in(request.params.as_ref()))),
            InputKind::ElicitUrl => accept(None),
            InputKind::Roots => roots([("file:///tmp", None)]),
            InputKind::Sample | InputKind::SampleWithTools => {
                let text = json!({ "type": "text", "text": SAMPLED });
                let said = json!({ "role": "assistant", "content": text, "model": "none" });
                InputResponse::Result(Raw::encode(&said).expect("a JSON value is JSON"))
            }
        }
    }
}

/// Fills every required field of a form: the first choice, a text, a number or true.
fn filled_in(params: Option<&Raw>) -> Value {
    let params = params.and_then(|params| params.open::<Value>().ok());
    let schema = params.unwrap_or_default()["requestedSchema"].take();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let value = |of: &Value| match of["type"].as_str() {
        _ if of["enum"].is_array() => of["enum"][0].clone(),
        _ if of["oneOf"].is_array() => of["oneOf"][0]["const"].clone(),
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("word"),
    };
    let members = required.iter().filter_map(Value::as_str);
    let members = members.map(|name| (name.to_owned(), value(&schema["properties"][name])));
    Value::Object(members.collect())
}

/// The result of every sampling request.
pub(crate) const SAMPLED: &str = "a sampled answer";
