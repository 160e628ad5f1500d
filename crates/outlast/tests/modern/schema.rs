//! Checks messages of a server against the official schemas.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::Value;

/// Checks one message of a server; `method` is that of the request, if the message is a response.
pub(crate) fn check(message: &Value, method: Option<&str>) {
    let result = &message["result"];
    match (message["method"].as_str(), method) {
        (Some("notifications/tasks"), _) => assert_valid("TaskStatusNotification", message),
        (Some("notifications/progress"), _) => assert_valid("ProgressNotification", message),
        (Some("notifications/message"), _) => assert_valid("LoggingMessageNotification", message),
        (Some("notifications/cancelled"), _) => assert_valid("CancelledNotification", message),
        (Some("notifications/subscriptions/acknowledged"), _) => {
            assert_valid("SubscriptionsAcknowledgedNotification", message);
        }
        (Some("notifications/tools/list_changed"), _) => {
            assert_valid("ToolListChangedNotification", message);
        }
        (Some("notifications/prompts/list_changed"), _) => {
            assert_valid("PromptListChangedNotification", message);
        }
        // V2-BASE-3: a server sends no requests, and no other notifications here.
        (Some(other), _) => panic!("{other} is not expected here"),
        (None, _) if message.get("error").is_some() => {
            assert_valid("JSONRPCErrorResponse", message);
        }
        (None, Some(method)) => {
            assert_valid("JSONRPCResultResponse", message);
            // V2-BASE-4, V2-RT-2.
            let kind = result["resultType"].as_str().unwrap();
            assert!(kind == "complete" || method == "tools/call", "{message}");
            // V2-META-6, but acknowledgements are empty (V2-UPD-9).
            let empty = ["tasks/update", "tasks/cancel"].contains(&method);
            let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(info.is_object(), !empty);
            match (method, kind) {
                ("tools/call", "task") => assert_valid("CreateTaskResult", result),
                ("tools/call", "input_required") => assert_valid("InputRequiredResult", result),
                ("tools/call", _) => assert_valid("CallToolResult", result),
                ("tools/list", _) => assert_valid("ListToolsResult", result),
                ("server/discover", _) => assert_valid("DiscoverResult", result),
                ("subscriptions/listen", _) => assert_valid("SubscriptionsListenResult", result),
                ("tasks/get", _) => assert_valid("GetTaskResult", result),
                ("tasks/update", _) => assert_valid("UpdateTaskResult", result),
                ("tasks/cancel", _) => assert_valid("CancelTaskResult", result),
                (other, _) => panic!("{other} has no result here"),
            }
        }
        (None, None) => panic!("{message} answers nothing"),
    }
}

fn assert_valid(shape: &str, part: &Value) {
    let validator = validator(shape);
    if let Err(error) = validator.validate(part) {
        panic!("{part} is no {shape}: {error}");
    }
}

/// The validator of a shape: of the extension, if the extension defines the shape.
fn validator(shape: &str) -> Arc<Validator> {
    type ValidatorCache = Mutex<HashMap<String, Arc<Validator>>>;
    static VALIDATORS: LazyLock<ValidatorCache> = LazyLock::new(Mutex::default);
    static EXTENSION: LazyLock<Value> = LazyLock::new(|| {
        let text = include_str!("../../../outlast-wire/tests/schemas/ext-tasks.json");
        serde_json::from_str(text).unwrap()
    });
    static CORE: LazyLock<Value> = LazyLock::new(|| {
        let text = include_str!("../../../outlast-wire/tests/schemas/mcp-2026-07-28.json");
        serde_json::from_str(text).unwrap()
    });
    let mut known = VALIDATORS.lock().unwrap();
    let found = known.entry(shape.to_owned()).or_insert_with(|| {
        let tasks = shape.contains("Task");
        let mut schema = if tasks { &*EXTENSION } else { &*CORE }.clone();
        assert!(schema["$defs"].get(shape).is_some(), "no shape {shape}");
        schema["$ref"] = format!("#/$defs/{shape}").into();
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    found.clone()
}
