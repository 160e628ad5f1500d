//! Checks input responses: their shape, and the content of a form against its schema (V1-ELIC-18).

use outlast_engine::{InputKind, InputResponse};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes, object};
use serde_json::json;

use crate::schema;

/// Checks a response to an input request of this kind with these params. The error says what is
/// wrong.
pub(crate) fn check(
    kind: InputKind,
    params: Option<&Raw>,
    answer: RawRef<'_>,
) -> Result<(), String> {
    let names = ["action", "content", "role", "model", "roots"];
    let [action, content, role, model, roots] =
        object::pick(answer, names).map_err(|_| "it is not an object")?;
    match kind {
        InputKind::ElicitForm | InputKind::ElicitUrl => {
            let action = action.and_then(RawRef::text);
            if !matches!(action.as_deref(), Some("accept" | "decline" | "cancel")) {
                return Err("`action` must be `accept`, `decline` or `cancel`".into());
            }
            let content = content.filter(|content| !content.is_null());
            if !content.is_none_or(RawRef::is_object) {
                return Err("`content` must be an object".into());
            }
            if kind == InputKind::ElicitForm && action.as_deref() == Some("accept") {
                check_form(params, content)
            } else {
                Ok(())
            }
        }
        InputKind::Sample | InputKind::SampleWithTools => {
            if !role.is_some_and(RawRef::is_text) || !model.is_some_and(RawRef::is_text) {
                return Err("`role` and `model` must be strings".into());
            }
            let list = |content| object::elements(content).is_some();
            if content.is_some_and(|content| content.is_object() || list(content)) {
                Ok(())
            } else {
                Err("`content` must be an object or an array".into())
            }
        }
        InputKind::Roots => {
            if roots.is_some_and(|roots| object::elements(roots).is_some()) {
                Ok(())
            } else {
                Err("`roots` must be an array".into())
            }
        }
    }
}

/// Checks an accepted form against its schema.
fn check_form(params: Option<&Raw>, content: Option<RawRef<'_>>) -> Result<(), String> {
    let schema = params.and_then(|params| object::find(params.borrow(), &["requestedSchema"]));
    let Some(schema) = schema else { return Ok(()) };
    let empty = Raw::empty_object();
    let content = content.unwrap_or(empty.borrow());
    match schema::mismatch(schema, content) {
        None => Ok(()),
        Some(why) => Err(format!("`content` does not match `requestedSchema`: {why}")),
    }
}

/// Replaces an invalid response by an error.
pub(crate) fn checked(
    kind: InputKind,
    params: Option<&Raw>,
    answer: InputResponse,
) -> InputResponse {
    let InputResponse::Result(result) = &answer else {
        return answer;
    };
    match check(kind, params, result.borrow()) {
        Ok(()) => answer,
        Err(why) => {
            let method = kind.method();
            let why = format!("the client's response to {method} is invalid: {why}");
            InputResponse::Error(codes::invalid_params(why).to_raw())
        }
    }
}

/// The error of a sampling request that the user declined (V1-SAMP-4).
pub(crate) fn sampling_declined() -> ErrorObject {
    ErrorObject::new(DECLINED, "User declined sampling request")
}

/// The same as a result, because the input responses of modern tasks have no errors (V2-UPD-7). It
/// has no content, and its stop reason says that the user declined.
pub(crate) fn declined_sample() -> Raw {
    Raw::from(&json!({
        "role": "assistant",
        "content": { "type": "text", "text": "" },
        "model": "none",
        "stopReason": STOP_REASON,
    }))
}

/// Whether a result is [`declined_sample`].
pub(crate) fn is_declined_sample(result: RawRef<'_>) -> bool {
    let reason = object::find(result, &["stopReason"]).and_then(RawRef::text);
    reason.as_deref() == Some(STOP_REASON)
}

/// The error code if the user declined.
pub(crate) const DECLINED: i64 = -1;

/// The stop reason of a declined sampling request.
const STOP_REASON: &str = "declined";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_violation_in_a_response_is_an_error() {
        // V1-ELIC-18.
        let params = json!({ "requestedSchema": {
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } });
        let params = Raw::from(&params);
        let checked_form = |text: &str| {
            let answer = InputResponse::Result(Raw::parse(text.into()).unwrap());
            checked(InputKind::ElicitForm, Some(&params), answer)
        };
        for fine in [
            r#"{"action":"accept","content":{"n":1}}"#,
            r#"{"action":"decline"}"#,
            r#"{"action":"cancel","content":null}"#,
        ] {
            assert!(
                matches!(checked_form(fine), InputResponse::Result(_)),
                "{fine}"
            );
        }
        for bad in [
            r#"{"action":"accept"}"#,
            r#"{"action":"accept","content":{"n":"1"}}"#,
            r#"{"content":{"n":1}}"#,
        ] {
            let InputResponse::Error(error) = checked_form(bad) else {
                panic!("{bad}");
            };
            assert!(error.as_str().contains("-32602"), "{error:?}");
        }
    }
}
