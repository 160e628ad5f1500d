//! The tools that the official suite wants for 2026-07-28 and for the tasks extension.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast::engine::AskKind;
use outlast::front::{Change, Delivery, Front};
use outlast::tools::ToolFailure;
use outlast::{Level, TaskSupport, Tool, ToolContext, text};
use serde_json::{Value, json};

/// The front whose lists some tools change, once it is there.
pub(crate) type Place = Arc<OnceLock<Arc<Front>>>;

/// Every tool.
pub(crate) fn tools(place: &Place) -> Vec<Tool> {
    let mut all = vec![
        greet(),
        slow_compute(),
        failing_job(),
        protocol_error_job(),
        confirm_delete(),
        multi_input(),
        test_tool_with_task(),
        missing_capability(),
        streaming_elicitation(),
        logging_tool(),
        changes("test_trigger_tool_change", Change::Tools, place),
        changes("test_trigger_prompt_change", Change::Prompts, place),
        mirrored(),
    ];
    all.extend(asking_tools());
    all
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
    .deliver(Delivery::Always)
}

fn confirm_delete() -> Tool {
    Tool::new("confirm_delete", "asks before it deletes", |args, cx| async move {
        let file = args.text("filename")?.to_owned();
        let answer = cx.elicit(form(&format!("Delete {file}?"), "confirm", "boolean")).await?;
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
            let name = cx.elicit(form("What is your name?", "name", "string"));
            let sure = cx.elicit(form("Are you sure?", "confirm", "boolean"));
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
            let asked = form("What is your name?", "name", "string");
            let answer = cx
                .ask_first_as("user_name", AskKind::ElicitForm, asked)
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
    .deliver(Delivery::OnceAnswered)
}

fn missing_capability() -> Tool {
    Tool::new(
        "test_missing_capability",
        "needs a model",
        |_, cx| async move {
            let said = cx.sample(sampling("Say something.", 10)).await?;
            Ok(text(said["content"]["text"].as_str().unwrap_or_default()))
        },
    )
    .needs([AskKind::Sample])
}

fn streaming_elicitation() -> Tool {
    Tool::new(
        "test_streaming_elicitation",
        "asks on its stream",
        |_, cx| async move {
            cx.log(Level::Info, "about to ask");
            let answer = cx
                .elicit(form("What is your name?", "name", "string"))
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

/// A tool that tells of a change.
fn changes(name: &str, change: Change, place: &Place) -> Tool {
    let place = place.clone();
    Tool::new(name, "changes a list", move |_, _| {
        if let Some(front) = place.get() {
            front.announce(change.clone());
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

/// Tools that ask before they are answered.
fn asking_tools() -> Vec<Tool> {
    let name = || form("What is your name?", "name", "string");
    let ok = || form("Please confirm", "ok", "boolean");
    vec![
        Tool::new(
            "test_input_required_result_elicitation",
            "asks for a name",
            move |_, cx| async move {
                let answer = first(&cx, "user_name", AskKind::ElicitForm, name()).await?;
                Ok(text(format!("Hello, {}!", answer["content"]["name"])))
            },
        ),
        Tool::new(
            "test_input_required_result_sampling",
            "asks a model",
            |_, cx| async move {
                let asked = sampling("What is the capital of France?", 100);
                let said = first(&cx, "capital_question", AskKind::Sample, asked).await?;
                Ok(text(said["content"]["text"].to_string()))
            },
        ),
        Tool::new(
            "test_input_required_result_list_roots",
            "asks for folders",
            |_, cx| async move {
                let roots = first(&cx, "client_roots", AskKind::Roots, json!({})).await?;
                Ok(text(roots["roots"].to_string()))
            },
        ),
        Tool::new(
            "test_input_required_result_request_state",
            "asks with a state",
            move |_, cx| async move {
                first(&cx, "confirm", AskKind::ElicitForm, ok()).await?;
                Ok(text("state-ok"))
            },
        ),
        Tool::new(
            "test_input_required_result_tampered_state",
            "asks with a state",
            move |_, cx| async move {
                first(&cx, "confirm", AskKind::ElicitForm, ok()).await?;
                Ok(text("state-ok"))
            },
        ),
        Tool::new(
            "test_input_required_result_multiple_inputs",
            "asks three things",
            move |_, cx| async move {
                let (name, said, roots) = tokio::join!(
                    first(&cx, "user_name", AskKind::ElicitForm, name()),
                    first(
                        &cx,
                        "greeting",
                        AskKind::Sample,
                        sampling("Generate a greeting", 50)
                    ),
                    first(&cx, "client_roots", AskKind::Roots, json!({})),
                );
                let (name, said) = (&name?["content"]["name"], &said?["content"]["text"]);
                Ok(text(format!("{name} {said} {}", roots?["roots"])))
            },
        ),
        Tool::new(
            "test_input_required_result_multi_round",
            "asks in two rounds",
            |_, cx| async move {
                let asked = form("Step 1: What is your name?", "name", "string");
                let name = first(&cx, "step1", AskKind::ElicitForm, asked).await?;
                let asked = form("Step 2: What is your favorite color?", "color", "string");
                let color = first(&cx, "step2", AskKind::ElicitForm, asked).await?;
                Ok(text(format!(
                    "{} likes {}",
                    name["content"]["name"], color["content"]["color"]
                )))
            },
        ),
        Tool::new(
            "test_input_required_result_capabilities",
            "asks what can be answered",
            move |_, cx| async move {
                match first(&cx, "user_name", AskKind::ElicitForm, name()).await {
                    Ok(answer) => Ok(text(answer.to_string())),
                    Err(_) => {
                        let said =
                            first(&cx, "greeting", AskKind::Sample, sampling("Greet.", 50)).await?;
                        Ok(text(said.to_string()))
                    }
                }
            },
        ),
    ]
}

async fn first(
    cx: &ToolContext,
    key: &str,
    kind: AskKind,
    params: Value,
) -> Result<Value, ToolFailure> {
    Ok(cx.ask_first_as(key, kind, params).await?)
}

fn form(message: &str, property: &str, kind: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": { property: { "type": kind } }, "required": [property],
        },
    })
}

fn sampling(question: &str, tokens: u32) -> Value {
    let content = json!({ "type": "text", "text": question });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": tokens })
}
