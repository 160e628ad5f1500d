//! Tools that run as tasks of 2026-07-28.

use std::time::Duration;

use outlast::server::TaskPolicy;
use outlast::task::InputKind;
use outlast::tools::ToolFailure;
use outlast::{TaskSupport, Tool, text};
use serde_json::json;

use crate::questions::form;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        greet(),
        slow_compute(),
        failing_job(),
        protocol_error_job(),
        confirm_delete(),
        multi_input(),
        test_tool_with_task(),
    ]
}

fn greet() -> Tool {
    Tool::new("greet", "says hello", |args, _| async move {
        Ok(text(format!("Hello, {}!", args.text("name")?)))
    })
    .input(json!({
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
    }))
}

fn slow_compute() -> Tool {
    Tool::new("slow_compute", "takes its time", |args, _| async move {
        let seconds = args.number("seconds", 1.0)?;
        tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
        let label = args.text("label").unwrap_or("it");
        Ok(text(format!("{label} is computed")))
    })
    .input(json!({
        "type": "object",
        "properties": { "seconds": { "type": "number" }, "label": { "type": "string" } },
    }))
    .task(TaskSupport::Optional)
}

fn failing_job() -> Tool {
    Tool::new("failing_job", "fails after a second", |_, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err("the job failed".into())
    })
    .task(TaskSupport::Required)
}

fn protocol_error_job() -> Tool {
    Tool::new(
        "protocol_error_job",
        "ends in an error of the protocol",
        |_, _| async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Err(ToolFailure::error(-32603, "the job broke"))
        },
    )
    .task(TaskSupport::Optional)
    .task_policy(TaskPolicy::Always)
}

fn confirm_delete() -> Tool {
    Tool::new("confirm_delete", "asks before it deletes", |args, cx| async move {
        let file = args.text("filename")?.to_owned();
        let answer = cx.elicit_raw(form(&format!("Delete {file}?"), "confirm", "boolean")).await?;
        let word = if answer["content"]["confirm"] == true { "deleted" } else { "kept" };
        Ok(text(format!("{file} {word}")))
    })
    .input(json!({
        "type": "object", "properties": { "filename": { "type": "string" } }, "required": ["filename"],
    }))
    .task(TaskSupport::Optional)
}

fn multi_input() -> Tool {
    Tool::new(
        "multi_input",
        "asks two things at once",
        |_, cx| async move {
            let name = cx.elicit_raw(form("What is your name?", "name", "string"));
            let sure = cx.elicit_raw(form("Are you sure?", "confirm", "boolean"));
            let (name, sure) = tokio::join!(name, sure);
            let (name, sure) = (&name?["content"]["name"], &sure?["content"]["confirm"]);
            Ok(text(format!("{name}: {sure}")))
        },
    )
    .task(TaskSupport::Optional)
}

fn test_tool_with_task() -> Tool {
    Tool::new(
        "test_tool_with_task",
        "asks first, then runs as a task",
        |_, cx| async move {
            let request = form("What is your name?", "name", "string");
            let answer = cx
                .request_input_first_as("user_name", InputKind::ElicitForm, request)
                .await?;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let name = answer["content"]["name"]
                .as_str()
                .unwrap_or("stranger")
                .to_owned();
            Ok(text(format!("Hello, {name}!")))
        },
    )
    .task(TaskSupport::Required)
    .task_policy(TaskPolicy::AfterInput)
}
