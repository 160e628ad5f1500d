//! Messages of a server checked against the official JSON Schema of 2025-11-25.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::Value;

/// Checks a message of a server at 2025-11-25; `method` is that of the request that it responds to.
///
/// # Panics
///
/// If the message does not have its shape, or no server should send it.
pub fn check_v1(message: &Value, method: Option<&str>) {
    let result = &message["result"];
    match (message["method"].as_str(), method) {
        (Some(sent), _) => check_shape(shape_of(sent), message),
        (None, _) if message.get("error").is_some() => check_shape("JSONRPCErrorResponse", message),
        (None, Some(method)) => check_shape(shape_of_result(method, result), result),
        (None, None) => panic!("{message} responds to nothing"),
    }
}

/// The shape of a request or notification.
fn shape_of(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        "notifications/tasks/status" => "TaskStatusNotification",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        other => panic!("{other} is not expected here"),
    }
}

/// The shape of the result of a request.
fn shape_of_result(method: &str, result: &Value) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "tools/list" => "ListToolsResult",
        "tools/call" if result.get("task").is_some() => "CreateTaskResult",
        "tools/call" | "tasks/result" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "tasks/get" => "GetTaskResult",
        "tasks/list" => "ListTasksResult",
        "tasks/cancel" => "CancelTaskResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            "EmptyResult"
        }
        _ => "Result",
    }
}

fn check_shape(shape: &'static str, part: &Value) {
    if let Err(error) = validator(shape).validate(part) {
        panic!("{part} is no {shape}: {error}");
    }
}

fn validator(shape: &'static str) -> Arc<Validator> {
    type Validators = Mutex<HashMap<&'static str, Arc<Validator>>>;
    static VALIDATORS: LazyLock<Validators> = LazyLock::new(Mutex::default);
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let text = include_str!("../../../outlast-wire/tests/schemas/mcp-2025-11-25.json");
        serde_json::from_str(text).expect("the schema is JSON")
    });
    let mut known = VALIDATORS.lock();
    let found = known.entry(shape).or_insert_with(|| {
        assert!(SCHEMA["$defs"].get(shape).is_some(), "no shape {shape}");
        let mut schema = SCHEMA.clone();
        schema["$ref"] = format!("#/$defs/{shape}").into();
        Arc::new(jsonschema::validator_for(&schema).expect("the schema is one"))
    });
    found.clone()
}
