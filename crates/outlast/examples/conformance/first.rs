//! Tools and a prompt that send input requests before their work: the response is the input
//! request, and the call is repeated with the responses.

use outlast::prompts::{Prompt, user};
use outlast::task::InputKind;
use outlast::tools::ToolFailure;
use outlast::{Tool, ToolContext, content, text};
use serde_json::{Value, json};

use crate::questions::{form, sampling};

pub(crate) fn tools() -> Vec<Tool> {
    let name = || form("What is your name?", "name", "string");
    let ok = || form("Please confirm", "ok", "boolean");
    vec![
        Tool::new(
            "test_input_required_result_elicitation",
            "asks for a name",
            move |_, cx| async move {
                let answer = first(&cx, "user_name", InputKind::ElicitForm, name()).await?;
                Ok(text(format!("Hello, {}!", answer["content"]["name"])))
            },
        ),
        Tool::new(
            "test_input_required_result_sampling",
            "asks a model",
            |_, cx| async move {
                let request = sampling("What is the capital of France?", 100);
                let said = first(&cx, "capital_question", InputKind::Sample, request).await?;
                Ok(text(said["content"]["text"].to_string()))
            },
        ),
        Tool::new(
            "test_input_required_result_list_roots",
            "asks for folders",
            |_, cx| async move {
                let roots = first(&cx, "client_roots", InputKind::Roots, json!({})).await?;
                Ok(text(roots["roots"].to_string()))
            },
        ),
        Tool::new(
            "test_input_required_result_request_state",
            "asks with a state",
            move |_, cx| async move {
                first(&cx, "confirm", InputKind::ElicitForm, ok()).await?;
                Ok(text("state-ok"))
            },
        ),
        Tool::new(
            "test_input_required_result_tampered_state",
            "asks with a state",
            move |_, cx| async move {
                first(&cx, "confirm", InputKind::ElicitForm, ok()).await?;
                Ok(text("state-ok"))
            },
        ),
        Tool::new(
            "test_input_required_result_multiple_inputs",
            "asks three things",
            move |_, cx| async move {
                let (name, said, roots) = tokio::join!(
                    first(&cx, "user_name", InputKind::ElicitForm, name()),
                    first(
                        &cx,
                        "greeting",
                        InputKind::Sample,
                        sampling("Generate a greeting", 50)
                    ),
                    first(&cx, "client_roots", InputKind::Roots, json!({})),
                );
                let (name, said) = (&name?["content"]["name"], &said?["content"]["text"]);
                Ok(text(format!("{name} {said} {}", roots?["roots"])))
            },
        ),
        Tool::new(
            "test_input_required_result_multi_round",
            "asks in two rounds",
            |_, cx| async move {
                let request = form("Step 1: What is your name?", "name", "string");
                let name = first(&cx, "step1", InputKind::ElicitForm, request).await?;
                let request = form("Step 2: What is your favorite color?", "color", "string");
                let color = first(&cx, "step2", InputKind::ElicitForm, request).await?;
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
                match first(&cx, "user_name", InputKind::ElicitForm, name()).await {
                    Ok(answer) => Ok(text(answer.to_string())),
                    Err(_) => {
                        let said =
                            first(&cx, "greeting", InputKind::Sample, sampling("Greet.", 50))
                                .await?;
                        Ok(text(said.to_string()))
                    }
                }
            },
        ),
    ]
}

/// A prompt that sends an input request.
pub(crate) fn prompt() -> Prompt {
    Prompt::with_input(
        "test_input_required_result_prompt",
        "Asks for its context",
        |_, cx| async move {
            let request = form("What context should the prompt use?", "context", "string");
            let answer = first(&cx, "user_context", InputKind::ElicitForm, request).await?;
            let context = &answer["content"]["context"];
            Ok(vec![user(content::text_block(format!(
                "Use this: {context}"
            )))])
        },
    )
}

async fn first(
    cx: &ToolContext,
    key: &str,
    kind: InputKind,
    params: Value,
) -> Result<Value, ToolFailure> {
    Ok(cx.request_input_first_as(key, kind, params).await?)
}
