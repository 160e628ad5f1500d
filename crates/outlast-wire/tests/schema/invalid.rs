//! The control: fails if the validators accept everything.

use outlast_wire::{codes, v1, v2};
use serde_json::{Value, json};

use crate::official::Schemas;
use crate::samples::{error, views};

/// Each type is refused once it is made invalid.
#[test]
fn invalid_shapes_are_refused() {
    let view = views().remove(0);
    let v1_schemas = Schemas::read(include_str!("../schemas/mcp-2025-11-25.json"));
    let v2_schemas = Schemas::read(include_str!("../schemas/ext-tasks.json"));
    let core = Schemas::read(include_str!("../schemas/mcp-2026-07-28.json"));
    let task: Value = v1::task(&view).open().unwrap();
    let created: Value = v2::create_result(&view).open().unwrap();
    let without = |value: &Value, name: &str| {
        let mut value = value.clone();
        value.as_object_mut().unwrap().remove(name);
        value
    };
    let with = |value: &Value, name: &str, new: Value| {
        let mut value = value.clone();
        value[name] = new;
        value
    };
    for name in ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl"] {
        assert!(
            !v1_schemas.is_valid("Task", &without(&task, name)),
            "{name}"
        );
    }
    assert!(!v1_schemas.is_valid("Task", &with(&task, "status", json!("submitted"))));
    assert!(!v1_schemas.is_valid("Task", &with(&task, "ttl", json!(1.5))));
    assert!(!v1_schemas.is_valid("CreateTaskResult", &task));
    for name in ["resultType", "taskId", "status", "ttlMs"] {
        assert!(
            !v2_schemas.is_valid("CreateTaskResult", &without(&created, name)),
            "{name}"
        );
    }
    assert!(!v2_schemas.is_valid("GetTaskResult", &created));
    let completed = with(
        &with(&created, "status", json!("completed")),
        "resultType",
        json!("complete"),
    );
    assert!(!v2_schemas.is_valid("GetTaskResult", &completed));
    assert!(!core.is_valid("DiscoverResult", &json!({"resultType": "complete"})));
    let mismatch: Value = error(&codes::internal("no")).open().unwrap();
    assert!(!core.is_valid("HeaderMismatchError", &mismatch));
}
