//! Tools that send an input request while they run (legacy era only).

use rmcp::model::{CreateMessageRequestParams, ElicitRequestParams, ErrorData};
use serde_json::{Value, json};

use crate::{Context, failed, sampling, text, typed, untyped};

/// The result of such a tool; `None` for any other.
pub(crate) async fn call(
    name: &str,
    arguments: &Value,
    context: &Context,
) -> Result<Option<Value>, ErrorData> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let completed =
        |answer: &Value| text(format!("Elicitation completed: {}", response_text(answer)));
    Ok(Some(match name {
        "test_sampling" => {
            let said = sample(argument("prompt"), context).await?;
            let said = said["content"]["text"].as_str().unwrap_or_default();
            text(format!("LLM response: {said}"))
        }
        "test_elicitation" => {
            let person = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let mut request = fields(argument("message"), person);
            request["requestedSchema"]["required"] = json!(["username", "email"]);
            let answer = elicit(request, context).await?;
            text(format!("User response: {}", response_text(&answer)))
        }
        "test_elicitation_sep1034_defaults" => {
            let defaults = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            });
            completed(&elicit(fields("Please check these values", defaults), context).await?)
        }
        "test_elicitation_sep1330_enums" => {
            completed(&elicit(fields("Please choose", choices()), context).await?)
        }
        _ => return Ok(None),
    }))
}

async fn elicit(params: Value, context: &Context) -> Result<Value, ErrorData> {
    let params: ElicitRequestParams = typed(params)?;
    let answer = context.peer.create_elicitation(params).await;
    untyped(&answer.map_err(|error| failed(&error))?)
}

async fn sample(prompt: &str, context: &Context) -> Result<Value, ErrorData> {
    let params: CreateMessageRequestParams = typed(sampling(prompt))?;
    let answer = context.peer.create_message(params).await;
    untyped(&answer.map_err(|error| failed(&error))?)
}

fn fields(message: &str, properties: Value) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": properties },
    })
}

fn choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}

fn response_text(answer: &Value) -> String {
    let action = answer["action"].as_str().unwrap_or_default();
    format!("action={action}, content={}", answer["content"])
}
