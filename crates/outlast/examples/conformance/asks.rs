//! Tools that send input requests.

use outlast::tools::{ElicitError, ToolResult};
use outlast::{Tool, content};
use serde_json::{Value, json};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_sampling", "Asks the model", |args, cx| async move {
            let prompt = content::text_block(args.text("prompt")?);
            let messages = json!([{ "role": "user", "content": prompt }]);
            let said = cx
                .sample_raw(json!({ "messages": messages, "maxTokens": 100 }))
                .await?;
            let said = said["content"]["text"].as_str().unwrap_or_default();
            Ok(content::result([content::text_block(format!(
                "LLM response: {said}"
            ))]))
        })
        .input(needs("prompt", "The prompt to send to the LLM")),
        Tool::new(
            "test_elicitation",
            "Asks the person",
            |args, cx| async move {
                let message = args.text("message")?.to_owned();
                let person = json!({
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                });
                let mut form = form(&message, person);
                form["requestedSchema"]["required"] = json!(["username", "email"]);
                let answer = cx.elicit_raw(form).await?;
                let text = format!("User response: {}", response_text(&answer));
                Ok(content::result([content::text_block(text)]))
            },
        )
        .input(needs("message", "The message to show the user")),
        Tool::new(
            "test_elicitation_sep1034_defaults",
            "Asks with a default for each kind of value",
            |_, cx| async move {
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
                completed(
                    cx.elicit_raw(form("Please check these values", defaults))
                        .await,
                )
            },
        ),
        Tool::new(
            "test_elicitation_sep1330_enums",
            "Asks with each kind of choice",
            |_, cx| async move { completed(cx.elicit_raw(form("Please choose", choices())).await) },
        ),
    ]
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

fn form(message: &str, properties: Value) -> Value {
    json!({
        "message": message,
        "requestedSchema": { "type": "object", "properties": properties },
    })
}

fn needs(name: &str, description: &str) -> Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "string", "description": description } },
        "required": [name],
    })
}

fn completed(answer: Result<Value, ElicitError>) -> ToolResult {
    let text = format!("Elicitation completed: {}", response_text(&answer?));
    Ok(content::result([content::text_block(text)]))
}

fn response_text(answer: &Value) -> String {
    let action = answer["action"].as_str().unwrap_or_default();
    format!("action={action}, content={}", answer["content"])
}
