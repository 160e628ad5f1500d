//! Tools and a prompt whose first response is an input request, and which are repeated with the
//! responses (2026-07-28).

use rmcp::model::{CallToolRequestParams, ClientCapabilities, ErrorData, GetPromptRequestParams};
use serde_json::{Map, Value, json};

use crate::{Context, ToolResponse, form, sampling, text, typed, untyped};

/// An input request: its key, its method and its params.
type Ask = (&'static str, &'static str, Value);

/// The response of such a tool; `None` for any other.
pub(crate) fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<Option<ToolResponse>, ErrorData> {
    let responses = untyped(&request.input_responses)?;
    let state = request.request_state.as_deref();
    let has = |key: &str| !responses[key].is_null();
    let name = || {
        (
            "user_name",
            ELICIT,
            form("What is your name?", "name", "string"),
        )
    };
    let roots = || ("client_roots", ROOTS, json!({}));
    let said = |key: &str| responses[key]["content"]["text"].to_string();
    let named = |key: &str| responses[key]["content"]["name"].as_str();
    let can = untyped(&context.client_capabilities())?;
    Ok(Some(match &*request.name {
        "test_input_required_result_elicitation" => match named("user_name") {
            Some(name) => ToolResponse::Result(text(format!("Hello, {name}!"))),
            None => input_required([name()], None),
        },
        "test_input_required_result_sampling" => {
            if has("capital_question") {
                ToolResponse::Result(text(said("capital_question")))
            } else {
                let input = sampling("What is the capital of France?");
                input_required([("capital_question", SAMPLE, input)], None)
            }
        }
        "test_input_required_result_list_roots" => {
            if has("client_roots") {
                ToolResponse::Result(text(responses["client_roots"]["roots"].to_string()))
            } else {
                input_required([roots()], None)
            }
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => match (has("confirm"), state) {
            (true, Some(STATE)) => ToolResponse::Result(text("state-ok")),
            (true, _) => return Err(ErrorData::invalid_params("the state is not ours", None)),
            (false, _) => {
                let confirm = form("Please confirm", "ok", "boolean");
                input_required([("confirm", ELICIT, confirm)], Some(STATE))
            }
        },
        "test_input_required_result_multiple_inputs" => {
            if has("user_name") && has("greeting") && has("client_roots") {
                let roots = &responses["client_roots"]["roots"];
                let name = named("user_name").unwrap_or_default();
                ToolResponse::Result(text(format!("{name} {} {roots}", said("greeting"))))
            } else {
                let greeting = ("greeting", SAMPLE, sampling("Generate a greeting"));
                input_required([name(), greeting, roots()], Some(STATE))
            }
        }
        "test_input_required_result_multi_round" => {
            let (first, second) = (has("step1"), has("step2"));
            match state {
                Some(state) if second && state.starts_with("two ") => {
                    let color = &responses["step2"]["content"]["color"];
                    ToolResponse::Result(text(format!("{} likes {color}", &state["two ".len()..])))
                }
                Some("one") if first => {
                    let state = format!("two {}", named("step1").unwrap_or_default());
                    let input = form("Step 2: What is your favorite color?", "color", "string");
                    input_required([("step2", ELICIT, input)], Some(&state))
                }
                _ => {
                    let input = form("Step 1: What is your name?", "name", "string");
                    input_required([("step1", ELICIT, input)], Some("one"))
                }
            }
        }
        "test_input_required_result_capabilities" => {
            match (
                has("user_name") || has("greeting"),
                can["elicitation"].is_object(),
            ) {
                (true, _) => ToolResponse::Result(text(responses.to_string())),
                (false, true) => input_required([name()], None),
                (false, false) => input_required([("greeting", SAMPLE, sampling("Greet."))], None),
            }
        }
        "test_streaming_elicitation" => match named("user_name") {
            Some(name) => ToolResponse::Result(text(format!("Hello, {name}!"))),
            None => input_required([name()], None),
        },
        "test_missing_capability" if can["sampling"].is_object() => {
            ToolResponse::Result(text("it can be asked"))
        }
        "test_missing_capability" => {
            let needed: ClientCapabilities = typed(json!({ "sampling": {} }))?;
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        _ => return Ok(None),
    }))
}

/// The response of the prompt with input requests; `None` for any other.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Result<Option<ToolResponse>, ErrorData> {
    if request.name != "test_input_required_result_prompt" {
        return Ok(None);
    }
    let responses = untyped(&request.input_responses)?;
    let context = &responses["user_context"]["content"]["context"];
    Ok(Some(match context.as_str() {
        Some(context) => {
            let content = json!({ "type": "text", "text": format!("Use this: {context}") });
            ToolResponse::Result(json!({ "messages": [{ "role": "user", "content": content }] }))
        }
        None => {
            let input = form("What context should the prompt use?", "context", "string");
            input_required([("user_context", ELICIT, input)], None)
        }
    }))
}

/// A response with input requests.
pub(crate) fn input_required(
    asks: impl IntoIterator<Item = Ask>,
    state: Option<&str>,
) -> ToolResponse {
    let requests: Map<_, _> = asks
        .into_iter()
        .map(|(key, method, params)| (key.into(), json!({ "method": method, "params": params })))
        .collect();
    let mut answer = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        answer["requestState"] = json!(state);
    }
    ToolResponse::Asks(answer)
}

pub(crate) const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// The only state that the tools with one state have.
const STATE: &str = "asked-once";
