//! Tools without input requests.

use std::time::Duration;

use outlast::resources::Contents;
use outlast::{Level, Tool, content};
use serde_json::json;
use tokio::time::sleep;

use crate::{PIXEL, SILENCE};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text", "Returns a text", |_, _| async {
            let text = "This is a simple text response for testing.";
            Ok(content::result([content::text_block(text)]))
        }),
        Tool::new("test_image_content", "Returns a picture", |_, _| async {
            Ok(content::result([content::image_block("image/png", PIXEL)]))
        }),
        Tool::new("test_audio_content", "Returns a sound", |_, _| async {
            Ok(content::result([content::audio_block(
                "audio/wav",
                SILENCE,
            )]))
        }),
        Tool::new(
            "test_embedded_resource",
            "Returns a resource",
            |_, _| async {
                let embedded = Contents::text("This is an embedded resource content.");
                let embedded = embedded.mime("text/plain");
                Ok(content::result([content::resource_block(
                    "test://embedded-resource",
                    &embedded,
                )]))
            },
        ),
        Tool::new(
            "test_multiple_content_types",
            "Returns one of each",
            |_, _| async {
                let mixed = Contents::text(json!({ "test": "data", "value": 123 }).to_string());
                Ok(content::result([
                    content::text_block("Multiple content types test:"),
                    content::image_block("image/png", PIXEL),
                    content::resource_block(
                        "test://mixed-content-resource",
                        &mixed.mime("application/json"),
                    ),
                ]))
            },
        ),
        Tool::new("test_error_handling", "Fails", |_, _| async {
            Err("This tool intentionally returns an error for testing".into())
        }),
        Tool::new(
            "test_tool_with_logging",
            "Speaks while it works",
            |_, cx| async move {
                cx.log(Level::Info, "Tool execution started");
                sleep(STEP_DELAY).await;
                cx.log(Level::Info, "Tool processing data");
                sleep(STEP_DELAY).await;
                cx.log(Level::Info, "Tool execution completed");
                Ok(content::result([content::text_block(
                    "Logged three times.",
                )]))
            },
        ),
        Tool::new(
            "test_tool_with_progress",
            "Says how far it is",
            |_, cx| async move {
                for done in [0.0, 50.0, 100.0] {
                    cx.progress(done, 100.0);
                    sleep(STEP_DELAY).await;
                }
                Ok(content::result([content::text_block("Arrived.")]))
            },
        ),
        Tool::new(
            "test_reconnection",
            "Takes longer than its stream",
            |_, _| async {
                sleep(Duration::from_secs(3)).await;
                Ok(content::result([content::text_block("Still here.")]))
            },
        ),
        Tool::new(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            |_, _| async { Ok(content::result([content::text_block("Done.")])) },
        )
        .input(json!({
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
        })),
    ]
}

const STEP_DELAY: Duration = Duration::from_millis(50);
