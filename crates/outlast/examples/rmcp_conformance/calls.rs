//! Tools that answer without an input request.

use std::time::Duration;

use rmcp::model::{ErrorData, LoggingMessageNotificationParam, ProgressNotificationParam};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::catalogue::{PIXEL, SILENCE};
use crate::{Context, failed, text, typed};

pub(crate) async fn call(
    name: &str,
    arguments: &Value,
    context: &Context,
) -> Result<Value, ErrorData> {
    let content = |blocks: Value| json!({ "content": blocks });
    let picture = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
    Ok(match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(json!([picture])),
        "test_audio_content" => {
            content(json!([{ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" }]))
        }
        "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        } }])),
        "test_multiple_content_types" => content(json!([
            { "type": "text", "text": "Multiple content types test:" },
            picture,
            { "type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": json!({ "test": "data", "value": 123 }).to_string(),
            } },
        ])),
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = json!(true);
            result
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for step in [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ] {
                log(step, context).await?;
                sleep(STEP_DELAY).await;
            }
            text("Logged three times.")
        }
        "test_tool_with_progress" => {
            for done in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, done).with_total(100.0);
                    let sent = context.peer.notify_progress(progress).await;
                    sent.map_err(|error| failed(&error))?;
                }
                sleep(STEP_DELAY).await;
            }
            text("Arrived.")
        }
        "test_reconnection" => {
            sleep(Duration::from_secs(3)).await;
            text("Still here.")
        }
        "json_schema_2020_12_tool" => text("Done."),
        "test_custom_header" => text(arguments["region"].as_str().unwrap_or("nowhere")),
        "greet" => text(format!(
            "Hello, {}!",
            arguments["name"].as_str().unwrap_or_default()
        )),
        _ => {
            let why = format!("Unknown tool: {name}");
            return Err(ErrorData::invalid_params(why, None));
        }
    })
}

async fn log(message: &str, context: &Context) -> Result<(), ErrorData> {
    let params = json!({ "level": "info", "data": message });
    let params: LoggingMessageNotificationParam = typed(params)?;
    let sent = context.peer.notify_logging_message(params).await;
    sent.map_err(|error| failed(&error))
}

const STEP_DELAY: Duration = Duration::from_millis(50);
