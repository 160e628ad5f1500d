//! Lists, prompts and resources.

use serde_json::{Value, json};

/// An image with one red pixel.
pub(crate) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without samples.
pub(crate) const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) fn tools() -> Value {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_tool_with_progress",
        "test_reconnection",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_capabilities",
        "failing_job",
        "protocol_error_job",
        "multi_input",
        "test_tool_with_task",
    ];
    let plain = plain.map(|name| tool(name, json!({ "type": "object", "properties": {} })));
    let number = json!({ "type": "number" });
    let string = json!({ "type": "string" });
    let compute = json!({ "seconds": number, "label": string });
    let with_arguments = [
        tool("test_sampling", needs("prompt")),
        tool("test_elicitation", needs("message")),
        tool("greet", needs("name")),
        tool("confirm_delete", needs("filename")),
        tool(
            "slow_compute",
            json!({ "type": "object", "properties": compute }),
        ),
        tool(
            "test_custom_header",
            json!({
                "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
            }),
        ),
        tool("json_schema_2020_12_tool", schema_2020_12()),
    ];
    let tools: Vec<_> = plain.into_iter().chain(with_arguments).collect();
    json!({ "tools": tools, "ttlMs": 1_000, "cacheScope": "public" })
}

fn tool(name: &str, schema: Value) -> Value {
    json!({ "name": name, "description": format!("The fixture {name}"), "inputSchema": schema })
}

fn needs(name: &str) -> Value {
    json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] })
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(crate) fn resources() -> Value {
    let resource = |uri: &str, mime: &str| json!({ "uri": uri, "name": uri, "description": "A fixture", "mimeType": mime });
    json!({
        "resources": [
            resource("test://static-text", "text/plain"),
            resource("test://static-binary", "image/png"),
            resource("test://watched-resource", "text/plain"),
        ],
        "ttlMs": 1_000,
        "cacheScope": "public",
    })
}

pub(crate) fn templates() -> Value {
    let template = json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "Data by id",
        "description": "What an id stands for",
        "mimeType": "application/json",
    });
    json!({ "resourceTemplates": [template], "ttlMs": 1_000, "cacheScope": "public" })
}

/// The contents of a resource, if there is one.
pub(crate) fn read(uri: &str) -> Option<Value> {
    let contents = match uri {
        "test://static-text" => {
            let text = "This is the content of the static text resource.";
            json!({ "uri": uri, "mimeType": "text/plain", "text": text })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PIXEL }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Nothing has changed yet." })
        }
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
    };
    Some(json!({ "contents": [contents], "ttlMs": 1_000, "cacheScope": "public" }))
}

pub(crate) fn prompts() -> Value {
    let argument =
        |name: &str| json!({ "name": name, "description": "An argument", "required": true });
    let prompt = |name: &str, arguments: Vec<Value>| json!({ "name": name, "description": format!("The fixture {name}"), "arguments": arguments });
    json!({
        "prompts": [
            prompt("test_simple_prompt", Vec::new()),
            prompt("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
            prompt("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
            prompt("test_prompt_with_image", Vec::new()),
            prompt("test_input_required_result_prompt", Vec::new()),
        ],
        "ttlMs": 1_000,
        "cacheScope": "public",
    })
}

/// The messages of a prompt, if there is one.
pub(crate) fn prompt(name: &str, arguments: &Value) -> Option<Value> {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| user(json!({ "type": "text", "text": text }));
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let messages = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                user(json!({ "type": "resource", "resource": resource })),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            user(json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })),
            text("Please analyze the image above."),
        ],
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}
