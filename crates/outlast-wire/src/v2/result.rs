//! `resultType` and what a result needs to be said under V2.

use std::borrow::Cow;

use crate::codes;
use crate::envelope::ErrorView;
use crate::json::write::Fields;
use crate::meta;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// What kind of result this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// The answer itself; also what no discriminator means (V2-RT-5, A3-6).
    Complete,
    /// A task stands for the answer (V2-RT-1).
    Task,
    /// The server needs input first.
    InputRequired,
    /// Anything else, which makes the result invalid (V2-RT-5).
    Unknown(String),
}

impl ResultType {
    /// Reads the discriminator of a result.
    pub fn of(result: RawRef<'_>) -> Self {
        match object::find(result, &["resultType"]) {
            None => Self::Complete,
            Some(word) => match &*word.spelling() {
                "complete" => Self::Complete,
                "task" => Self::Task,
                "input_required" => Self::InputRequired,
                other => Self::Unknown(other.to_owned()),
            },
        }
    }
}

/// The acknowledgement of an update or a cancellation (V2-RT-4, V2-UPD-9, V2-CANCEL-2).
pub fn ack() -> Raw {
    Raw::written(|out| out.push_str("{\"resultType\":\"complete\"}"))
}

/// A result with the discriminator every V2 result has (V2-BASE-4).
pub fn complete(result: RawRef<'_>) -> Result<Raw, NotAnObject> {
    let [kind] = object::pick(result, ["resultType"])?;
    completed(result, kind).map(|text| RawRef::scanned(&text).to_raw())
}

/// A result as it leaves a server: with the discriminator, if it has none, and with who answers (V2-META-6).
pub fn signed(result: RawRef<'_>, info: RawRef<'_>) -> Result<Raw, NotAnObject> {
    let [kind, meta] = object::pick(result, ["resultType", meta::META])?;
    if meta.is_some() {
        return match kind {
            Some(_) => meta::set(result, meta::SERVER_INFO, info),
            None => meta::set(complete(result)?.borrow(), meta::SERVER_INFO, info),
        };
    }
    // Most results have none: what is added goes in front, and the rest is copied once.
    Ok(Raw::written_around(result.as_str().len(), |out| {
        let mut fields = Fields::begin(out);
        if kind.is_none() {
            fields.text("resultType", "complete");
        }
        fields.nested(meta::META, |out| {
            let mut fields = Fields::begin(out);
            fields.json(meta::SERVER_INFO, info.as_str());
            fields.end();
        });
        fields.end_with(result);
    }))
}

/// A result as `tasks/get` inlines it: with the discriminator (A2-1), without the V1 mark
/// (V2-GET-7, BR-RES-2).
pub fn inlined(result: RawRef<'_>) -> Result<Cow<'_, str>, NotAnObject> {
    let [kind, meta] = object::pick(result, ["resultType", meta::META])?;
    if meta.is_some()
        && let Cow::Owned(unmarked) = object::without(result, &[meta::META, meta::RELATED_TASK])?
    {
        let text = completed(RawRef::scanned(&unmarked), kind)?.into_owned();
        return Ok(Cow::Owned(text));
    }
    completed(result, kind)
}

/// An error with a code that V2 allows (V2-CODE-2); every other byte stays.
pub fn modern_error(error: RawRef<'_>) -> Raw {
    let code = ErrorView::read(error).map_or(codes::INTERNAL_ERROR, |error| error.code);
    let allowed = codes::for_modern(code);
    if allowed == code {
        return error.to_raw();
    }
    let allowed = allowed.to_string();
    object::set(error, &["code"], RawRef::scanned(&allowed)).unwrap_or_else(|_| error.to_raw())
}

/// A result whose discriminator is `kind` so far.
fn completed<'a>(
    result: RawRef<'a>,
    kind: Option<RawRef<'_>>,
) -> Result<Cow<'a, str>, NotAnObject> {
    let word = RawRef::scanned("\"complete\"");
    if kind == Some(word) {
        return Ok(Cow::Borrowed(result.as_str()));
    }
    if kind.is_some() {
        let set = object::set(result, &["resultType"], word)?;
        return Ok(Cow::Owned(set.as_str().to_owned()));
    }
    // Most results have none: it goes behind the last member, and nothing is looked at again.
    let text = result.as_str();
    let members = text.strip_suffix('}').unwrap_or(text).trim_end();
    let comma = if members.ends_with('{') { "" } else { "," };
    let end = &text[members.len()..];
    Ok(Cow::Owned(
        [members, comma, r#""resultType":"complete""#, end].concat(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V2-BASE-4, V2-META-6.
    #[test]
    fn what_leaves_has_a_type_and_says_who_answers() {
        let info = RawRef::scanned(r#"{"name":"s"}"#);
        let key = meta::SERVER_INFO;
        for result in [
            "{}",
            "{ }",
            r#"{ "x" : 1.50}"#,
            r#"{"resultType":"task","x":1}"#,
            r#"{"_meta":{"k":1},"x":2}"#,
            r#"{"x":2,"resultType":"input_required","_meta":{}}"#,
        ] {
            let signed = signed(RawRef::scanned(result), info).unwrap();
            let mut expected: serde_json::Value = serde_json::from_str(result).unwrap();
            if expected.get("resultType").is_none() {
                expected["resultType"] = "complete".into();
            }
            expected["_meta"][key] = serde_json::json!({ "name": "s" });
            let signed: serde_json::Value = serde_json::from_str(signed.as_str()).unwrap();
            assert_eq!(signed, expected, "{result}");
        }
        assert!(signed(RawRef::scanned("[]"), info).is_err());
    }

    /// V2-RT-5.
    #[test]
    fn absent_means_complete_and_unknown_is_said() {
        for (result, expected) in [
            ("{}", ResultType::Complete),
            (r#"{"resultType":"complete"}"#, ResultType::Complete),
            (r#"{"resultType":"task"}"#, ResultType::Task),
            (
                r#"{"resultType":"input_required"}"#,
                ResultType::InputRequired,
            ),
            (
                r#"{"resultType":"later"}"#,
                ResultType::Unknown("later".into()),
            ),
            (r#"{"resultType":7}"#, ResultType::Unknown("7".into())),
        ] {
            assert_eq!(ResultType::of(RawRef::parse(result).unwrap()), expected);
        }
    }

    /// A2-1, BR-RES-2.
    #[test]
    fn an_inlined_result_is_complete_and_unmarked() {
        for (before, after) in [
            (
                r#"{"content":[ ]}"#,
                r#"{"content":[ ],"resultType":"complete"}"#,
            ),
            (
                r#"{"resultType":"complete","x":1.0}"#,
                r#"{"resultType":"complete","x":1.0}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"k":1},"x":1}"#,
                r#"{"_meta":{"k":1},"x":1,"resultType":"complete"}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"_meta":{"k":1}}"#,
                r#"{"_meta":{"k":1},"resultType":"complete"}"#,
            ),
        ] {
            assert_eq!(inlined(RawRef::parse(before).unwrap()).unwrap(), after);
        }
    }

    /// V2-CODE-2, BR-IN-11.
    #[test]
    fn codes_of_the_old_generation_are_not_said() {
        let error = |text: &str| modern_error(RawRef::parse(text).unwrap());
        assert_eq!(
            error(r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#).as_str(),
            r#"{"code":-32603,"message":"m","data":{"elicitations":[]}}"#
        );
        let other = r#"{"code":-1, "message":"m","x":1}"#;
        assert_eq!(error(other).as_str(), other);
    }
}
