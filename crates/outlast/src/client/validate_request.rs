//! Validates an input request of a server before it is dispatched to the handler.

use std::collections::BTreeSet;

use outlast_engine::{InputKind, InputKinds};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::version::Era;
use outlast_wire::{Raw, RawRef, codes, method, object};

/// The kind of an input request, or the error to respond with.
pub(crate) fn validate_request(
    method: &str,
    params: Option<&Raw>,
    accepts: InputKinds,
    era: Era,
) -> Result<InputKind, ErrorObject> {
    let params = params.map(Raw::borrow);
    let member = |name: &str| object::find(params?, &[name]).filter(|value| !value.is_null());
    let can = |kind| accepts.contains(kind);
    // V1-ROOT-3: the code for an unknown method, with a message that gives the reason.
    let undeclared = |what: &str| {
        let why = format!("the client did not declare `{what}`, so it does not accept {method}");
        Err(ErrorObject::new(codes::METHOD_NOT_FOUND, why))
    };
    match method {
        method::ROOTS_LIST if can(InputKind::Roots) => Ok(InputKind::Roots),
        method::ELICIT if can(InputKind::ElicitForm) || can(InputKind::ElicitUrl) => {
            // V1-ELIC-3.
            let mode = member("mode").map_or(Some("form".into()), RawRef::text);
            let kind = match mode.as_deref() {
                Some("form") => InputKind::ElicitForm,
                Some("url") => InputKind::ElicitUrl,
                _ => return Err(codes::invalid_params("`mode` must be `form` or `url`")),
            };
            // V1-ELIC-4.
            if !can(kind) {
                let why = format!("the client did not declare {}", kind.word());
                return Err(codes::invalid_params(why));
            }
            elicitation(kind, era, member)?;
            Ok(kind)
        }
        method::CREATE_MESSAGE if can(InputKind::Sample) || can(InputKind::SampleWithTools) => {
            let with_tools = member("tools").is_some() || member("toolChoice").is_some();
            // V1-SAMP-2.
            if with_tools && !can(InputKind::SampleWithTools) {
                return Err(codes::invalid_params(
                    "the client did not declare `sampling.tools`",
                ));
            }
            let messages = member("messages").and_then(object::elements);
            let messages =
                messages.ok_or_else(|| codes::invalid_params("`messages` must be an array"))?;
            conversation(&messages)?;
            Ok(if with_tools {
                InputKind::SampleWithTools
            } else {
                InputKind::Sample
            })
        }
        method::ROOTS_LIST => undeclared("roots"),
        method::ELICIT => undeclared("elicitation"),
        method::CREATE_MESSAGE => undeclared("sampling"),
        _ => Err(codes::method_not_found(method)),
    }
}

fn elicitation<'a>(
    kind: InputKind,
    era: Era,
    member: impl Fn(&str) -> Option<RawRef<'a>>,
) -> Result<(), ErrorObject> {
    let text = |name: &str| member(name).and_then(RawRef::text);
    if text("message").is_none() {
        return Err(codes::invalid_params("`message` must be a string"));
    }
    let fits = match kind {
        // V2-ELIC-3.
        InputKind::ElicitUrl if era == Era::Modern => text("url").is_some(),
        InputKind::ElicitUrl => text("url").is_some() && text("elicitationId").is_some(),
        _ => member("requestedSchema").is_some_and(RawRef::is_object),
    };
    match (fits, kind) {
        (true, _) => Ok(()),
        (false, InputKind::ElicitUrl) if era == Era::Modern => {
            Err(codes::invalid_params("`url` must be a string"))
        }
        // V1-ELIC-10.
        (false, InputKind::ElicitUrl) => Err(codes::invalid_params(
            "`url` and `elicitationId` must be strings",
        )),
        (false, _) => Err(codes::invalid_params("`requestedSchema` must be an object")),
    }
}

/// Every tool use is followed by its result, and results are not mixed with other content
/// (V1-SAMP-5, V1-SAMP-6).
fn conversation(messages: &[RawRef<'_>]) -> Result<(), ErrorObject> {
    let mut used = BTreeSet::new();
    for message in messages {
        let content = object::find(*message, &["content"])
            .ok_or_else(|| codes::invalid_params("a message has no `content`"))?;
        // V1-SAMP-7: one block or an array of blocks.
        let blocks = object::elements(content).unwrap_or_else(|| vec![content]);
        let of_kind = |block: &RawRef<'_>, kind: &str| {
            object::find(*block, &["type"])
                .and_then(RawRef::text)
                .as_deref()
                == Some(kind)
        };
        let id = |block: &RawRef<'_>, name: &str| {
            object::find(*block, &[name])
                .and_then(RawRef::text)
                .map(std::borrow::Cow::into_owned)
        };
        let results: BTreeSet<_> = blocks
            .iter()
            .filter(|block| of_kind(block, "tool_result"))
            .filter_map(|block| id(block, "toolUseId"))
            .collect();
        if !results.is_empty() && blocks.iter().any(|block| !of_kind(block, "tool_result")) {
            return Err(codes::invalid_params(
                "tool results are mixed with other content",
            ));
        }
        if results != used {
            return Err(codes::invalid_params(
                "the tool results do not match the tool uses of the previous message",
            ));
        }
        used = blocks
            .iter()
            .filter(|block| of_kind(block, "tool_use"))
            .filter_map(|block| id(block, "id"))
            .collect();
    }
    if used.is_empty() {
        Ok(())
    } else {
        Err(codes::invalid_params("a tool result is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn validated(method: &str, params: Value, kinds: &[InputKind]) -> Result<InputKind, i64> {
        let params = Raw::encode(&params).unwrap();
        let accepts = kinds.iter().copied().collect();
        validate_request(method, Some(&params), accepts, Era::Legacy).map_err(|error| error.code)
    }

    #[test]
    fn undeclared_input_requests_are_refused() {
        let form = json!({ "message": "?", "requestedSchema": {} });
        let url =
            json!({ "mode": "url", "message": "?", "url": "https://x", "elicitationId": "1" });
        let elicit = "elicitation/create";
        // V1-ELIC-3, V1-ELIC-4.
        assert_eq!(
            validated(elicit, form.clone(), &[InputKind::ElicitForm]),
            Ok(InputKind::ElicitForm)
        );
        assert_eq!(
            validated(elicit, url.clone(), &[InputKind::ElicitForm]),
            Err(-32602)
        );
        assert_eq!(
            validated(elicit, url, &[InputKind::ElicitUrl]),
            Ok(InputKind::ElicitUrl)
        );
        assert_eq!(validated(elicit, form, &[InputKind::Sample]), Err(-32601));
        // V1-ROOT-3.
        assert_eq!(validated("roots/list", json!({}), &[]), Err(-32601));
        assert_eq!(
            validated("roots/list", json!({}), &[InputKind::Roots]),
            Ok(InputKind::Roots)
        );
        assert_eq!(
            validated("tools/call", json!({}), &InputKind::ALL),
            Err(-32601)
        );
        // V1-SAMP-2.
        let tools = json!({ "messages": [], "maxTokens": 1, "tools": [] });
        let sample = "sampling/createMessage";
        assert_eq!(
            validated(sample, tools.clone(), &[InputKind::Sample]),
            Err(-32602)
        );
        assert_eq!(
            validated(sample, tools, &[InputKind::SampleWithTools]),
            Ok(InputKind::SampleWithTools)
        );
    }

    #[test]
    fn incomplete_input_requests_are_refused() {
        for params in [
            json!({}),
            json!({ "message": "?" }),
            json!({ "message": "?", "mode": "voice" }),
            json!({ "message": "?", "mode": "url", "url": "https://x" }),
            json!({ "message": 1, "requestedSchema": {} }),
        ] {
            let validated = validated("elicitation/create", params.clone(), &InputKind::ALL);
            assert_eq!(validated, Err(-32602), "{params}");
        }
    }

    #[test]
    fn every_tool_use_needs_its_result() {
        // V1-SAMP-5, V1-SAMP-6.
        let used = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "1" }] });
        let given =
            json!({ "role": "user", "content": { "type": "tool_result", "toolUseId": "1" } });
        let mixed = json!({ "role": "user", "content": [{ "type": "tool_result", "toolUseId": "1" }, { "type": "text", "text": "x" }] });
        let said = json!({ "role": "user", "content": { "type": "text", "text": "x" } });
        let check = |messages: Value| {
            let params = json!({ "messages": messages, "maxTokens": 1, "tools": [] });
            validated("sampling/createMessage", params, &InputKind::ALL)
        };
        assert!(check(json!([said, used, given, said])).is_ok());
        assert_eq!(check(json!([used, mixed])), Err(-32602));
        assert_eq!(check(json!([used, said])), Err(-32602));
        assert_eq!(check(json!([used])), Err(-32602));
        assert_eq!(check(json!([given])), Err(-32602));
        assert_eq!(check(json!([{ "role": "user" }])), Err(-32602));
    }
}
