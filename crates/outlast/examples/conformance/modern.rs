//! Features of 2026-07-28.

use std::sync::{Arc, OnceLock};

use outlast::server::{ListChange, McpServer};
use outlast::task::InputKind;
use outlast::{Level, Tool, text};
use serde_json::json;

use crate::questions::{form, sampling};

/// The server whose lists some tools change, once it exists.
pub(crate) type McpServerSlot = Arc<OnceLock<Arc<McpServer>>>;

pub(crate) fn tools(server_slot: &McpServerSlot) -> Vec<Tool> {
    vec![
        missing_capability(),
        streaming_elicitation(),
        logging_tool(),
        changes("test_trigger_tool_change", ListChange::Tools, server_slot),
        changes(
            "test_trigger_prompt_change",
            ListChange::Prompts,
            server_slot,
        ),
        mirrored(),
    ]
}

fn missing_capability() -> Tool {
    Tool::new(
        "test_missing_capability",
        "needs a model",
        |_, cx| async move {
            let said = cx.sample_raw(sampling("Say something.", 10)).await?;
            Ok(text(said["content"]["text"].as_str().unwrap_or_default()))
        },
    )
    .needs([InputKind::Sample])
}

fn streaming_elicitation() -> Tool {
    Tool::new(
        "test_streaming_elicitation",
        "asks on its stream",
        |_, cx| async move {
            cx.log(Level::Info, "about to ask");
            let answer = cx
                .elicit_raw(form("What is your name?", "name", "string"))
                .await?;
            Ok(text(format!("Hello, {}!", answer["content"]["name"])))
        },
    )
}

fn logging_tool() -> Tool {
    Tool::new(
        "test_logging_tool",
        "logs while it works",
        |_, cx| async move {
            for step in 1..=3 {
                cx.log(Level::Info, format!("step {step}"));
            }
            Ok(text("logged"))
        },
    )
}

/// A tool that announces a change.
fn changes(name: &str, change: ListChange, server_slot: &McpServerSlot) -> Tool {
    let server_slot = server_slot.clone();
    Tool::new(name, "changes a list", move |_, _| {
        if let Some(mcp_server) = server_slot.get() {
            mcp_server.announce(change.clone());
        }
        async { Ok(text("changed")) }
    })
}

/// A tool whose arguments are repeated in headers.
fn mirrored() -> Tool {
    Tool::new(
        "test_custom_header",
        "takes an argument that routes",
        |args, _| async move { Ok(text(args.text("region").unwrap_or("nowhere").to_owned())) },
    )
    .input(json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    }))
}
