//! `resultType`, and the members that every V2 result needs.

use std::borrow::Cow;

use crate::codes;
use crate::envelope::ErrorView;
use crate::json::write::{ObjectWriter, quoted};
use crate::meta;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};
use crate::v2::cache::CacheHint;

/// The type of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// The result itself; also without a discriminator (V2-RT-5, A3-6).
    Complete,
    /// A task instead of the result (V2-RT-1).
    Task,
    /// The server needs input first.
    InputRequired,
    /// Any other value, which makes the result invalid (V2-RT-5).
    Unknown(String),
}

impl ResultType {
    /// Reads the discriminator of a result.
    pub fn of(result: RawRef<'_>) -> Self {
        match object::find(result, &["resultType"]) {
            None => Self::Complete,
            Some(word) => match &*word.text_or_json() {
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

/// The members that a server adds to a result, all in one copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultMembers<'a> {
    /// Whether `resultType` is always set to complete. Otherwise it is set only if absent
    /// (V2-BASE-4).
    pub complete: bool,
    /// The cache hint of a result without its own (V2-CACHE-1).
    pub cache: Option<CacheHint>,
    /// The server that responds (V2-META-6).
    pub info: Option<RawRef<'a>>,
}

impl ResultMembers<'_> {
    /// Returns `result` with these members.
    pub fn apply(&self, result: RawRef<'_>) -> Result<Raw, NotAnObject> {
        let names = ["resultType", meta::META, "ttlMs", "cacheScope"];
        let [kind, meta, ttl, scope] = object::pick(result, names)?;
        let types = match kind {
            None => true,
            Some(kind) => self.complete && kind != COMPLETE,
        };
        let cache = self.cache.map(|otherwise| {
            // A hint of the backend takes precedence.
            let stated = CacheHint::of(ttl, scope);
            if stated.ttl_ms > 0 { stated } else { otherwise }
        });
        let replaces = types && kind.is_some()
            || cache.is_some() && (ttl.is_some() || scope.is_some())
            || self.info.is_some() && meta.is_some();
        let ttl = cache.map(CacheHint::written_ttl);
        if replaces {
            let scope = cache.map(|cache| quoted(cache.scope.as_str()));
            let mut rewrite = object::Rewrite::default();
            rewrite
                .set
                .extend(types.then_some(("resultType", COMPLETE)));
            let members = [("ttlMs", &ttl), ("cacheScope", &scope)];
            for (name, value) in members {
                let value = value.as_deref().map(RawRef::scanned);
                rewrite.set.extend(value.map(|value| (name, value)));
            }
            rewrite
                .set_meta
                .extend(self.info.map(|info| (meta::SERVER_INFO, info)));
            return rewrite.apply(result);
        }
        // Most results have none of these members: the new ones are inserted at the start, and the
        // rest is copied once.
        Ok(Raw::written_with_capacity(result.as_str().len(), |out| {
            let mut fields = ObjectWriter::begin(out);
            if types {
                fields.json("resultType", COMPLETE.as_str());
            }
            if let (Some(ttl), Some(cache)) = (&ttl, cache) {
                fields.json("ttlMs", ttl);
                fields.text("cacheScope", cache.scope.as_str());
            }
            if let Some(info) = self.info {
                fields.nested(meta::META, |out| {
                    let mut fields = ObjectWriter::begin(out);
                    fields.json(meta::SERVER_INFO, info.as_str());
                    fields.end();
                });
            }
            fields.end_with(result);
        }))
    }
}

/// A result for `tasks/get`: with the discriminator (A2-1), without the V1 mark (V2-GET-7,
/// BR-RES-2).
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

/// Returns an error with a code that V2 allows (V2-CODE-2). Every other byte is unchanged.
pub fn modern_error(error: RawRef<'_>) -> Raw {
    let code = ErrorView::read(error).map_or(codes::INTERNAL_ERROR, |error| error.code);
    let allowed = codes::for_modern(code);
    if allowed == code {
        return error.to_raw();
    }
    let allowed = allowed.to_string();
    object::set(error, &["code"], RawRef::scanned(&allowed)).unwrap_or_else(|_| error.to_raw())
}

/// Returns a result as complete, given its current discriminator `kind`.
fn completed<'a>(
    result: RawRef<'a>,
    kind: Option<RawRef<'_>>,
) -> Result<Cow<'a, str>, NotAnObject> {
    if kind == Some(COMPLETE) {
        return Ok(Cow::Borrowed(result.as_str()));
    }
    if kind.is_some() {
        let set = object::set(result, &["resultType"], COMPLETE)?;
        return Ok(Cow::Owned(set.as_str().to_owned()));
    }
    // Most results have no discriminator: it is appended after the last member without another
    // search.
    let text = result.as_str();
    let members = text.strip_suffix('}').unwrap_or(text).trim_end();
    let comma = if members.ends_with('{') { "" } else { "," };
    let end = &text[members.len()..];
    Ok(Cow::Owned(
        [members, comma, r#""resultType":"complete""#, end].concat(),
    ))
}

const COMPLETE: RawRef<'static> = RawRef::scanned("\"complete\"");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::CacheScope;

    /// V2-BASE-4, V2-META-6.
    #[test]
    fn every_result_has_a_type_and_the_server_info() {
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
            let finish = ResultMembers {
                info: Some(info),
                ..ResultMembers::default()
            };
            let signed = finish.apply(RawRef::scanned(result)).unwrap();
            let mut expected: serde_json::Value = serde_json::from_str(result).unwrap();
            if expected.get("resultType").is_none() {
                expected["resultType"] = "complete".into();
            }
            expected["_meta"][key] = serde_json::json!({ "name": "s" });
            let signed: serde_json::Value = serde_json::from_str(signed.as_str()).unwrap();
            assert_eq!(signed, expected, "{result}");
        }
        assert!(
            ResultMembers::default()
                .apply(RawRef::scanned("[]"))
                .is_err()
        );
    }

    /// V2-BASE-4, V2-CACHE-1, V2-META-6.
    #[test]
    fn a_result_of_a_backend_is_finished_in_one_copy() {
        let finish = ResultMembers {
            complete: true,
            cache: Some(CacheHint {
                ttl_ms: 9,
                scope: CacheScope::Private,
            }),
            info: Some(RawRef::scanned(r#"{"name":"s"}"#)),
        };
        let info = format!(r#""{}":{{"name":"s"}}"#, meta::SERVER_INFO);
        for (before, after) in [
            (
                r#"{ "x" : 1.50}"#,
                format!(
                    r#"{{"resultType":"complete","ttlMs":9,"cacheScope":"private","_meta":{{{info}}}, "x" : 1.50}}"#
                ),
            ),
            // A cache hint of the backend is kept, its result type is not.
            (
                r#"{"resultType":"odd","cacheScope":"public","ttlMs":5,"_meta":{"k":1e1}}"#,
                format!(
                    r#"{{"resultType":"complete","cacheScope":"public","ttlMs":5,"_meta":{{"k":1e1,{info}}}}}"#
                ),
            ),
            // An empty hint does not count.
            (
                r#"{"cacheScope":"public"}"#,
                format!(
                    r#"{{"cacheScope":"private","resultType":"complete","ttlMs":9,"_meta":{{{info}}}}}"#
                ),
            ),
        ] {
            let finished = finish.apply(RawRef::scanned(before)).unwrap();
            assert_eq!(finished.as_str(), after);
        }
    }

    /// V2-RT-5.
    #[test]
    fn an_absent_type_is_complete_and_an_unknown_returned() {
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
    fn codes_of_v1_are_not_sent() {
        let error = |text: &str| modern_error(RawRef::parse(text).unwrap());
        assert_eq!(
            error(r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#).as_str(),
            r#"{"code":-32603,"message":"m","data":{"elicitations":[]}}"#
        );
        let other = r#"{"code":-1, "message":"m","x":1}"#;
        assert_eq!(error(other).as_str(), other);
    }
}
