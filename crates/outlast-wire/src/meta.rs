//! The `_meta` keys, and edits of the `_meta` of an unparsed object.
//!
//! Edits change the text: every other key of `_meta` and every other member keeps its bytes
//! (V1-RES-6). `_meta` that is absent, null or not an object is treated as empty.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::envelope::Id;
use crate::json::write::{ObjectWriter, quoted};
use crate::object::{self, Edit, NotAnObject};
use crate::raw::{Raw, RawRef};

/// V1: the task that a message belongs to, `{"taskId": …}` (V1-META-1).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// V1: text that a host may give to the model while the task runs (V1-CREATE-11).
pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
/// Both: the token for progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// V2: the protocol version of the request (V2-META-1).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// V2: the client that sends the request (V2-META-2).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// V2: the client capabilities for this request (V2-META-1).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// V2: the server that responds (V2-META-6).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// V2: enables log notifications for this request (V2-META-8).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// V2: the listen request that a notification belongs to (V2-SUB-3).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// W3C trace context (V2-META-9).
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context (V2-META-9).
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage (V2-META-9).
pub const BAGGAGE: &str = "baggage";

/// The member with all of these keys.
pub const META: &str = "_meta";

/// Returns the value of one key.
pub fn value<'a>(object: RawRef<'a>, key: &str) -> Option<RawRef<'a>> {
    object::find(object, &[META, key])
}

/// Returns `object` with one key set.
pub fn set(object: RawRef<'_>, key: &str, value: RawRef<'_>) -> Result<Raw, NotAnObject> {
    object::set(object, &[META, key], value)
}

/// Returns `object` without one key, and without `_meta` if it would be empty.
pub fn remove(object: RawRef<'_>, key: &str) -> Result<Raw, NotAnObject> {
    object::remove(object, &[META, key])
}

/// Returns `object` without these members and without these keys of its `_meta`, which is removed
/// if it would be empty.
pub fn strip(object: &Raw, names: &[&str], keys: &[&str]) -> Raw {
    let edit = |name: &str, value: RawRef<'_>| match name {
        name if names.contains(&name) => Edit::Drop,
        META => match object::edited(value, |key, _| {
            if keys.contains(&key) {
                Edit::Drop
            } else {
                Edit::Keep
            }
        }) {
            Ok(Some(left)) if object::members(left.borrow()).is_ok_and(|left| left.is_empty()) => {
                Edit::Drop
            }
            Ok(Some(left)) => Edit::Replace(left),
            Ok(None) | Err(NotAnObject) => Edit::Keep,
        },
        _ => Edit::Keep,
    };
    match object::edited(object.borrow(), edit) {
        Ok(Some(left)) => left,
        Ok(None) | Err(NotAnObject) => object.clone(),
    }
}

/// Returns the task that params or a result belong to. The string of the old draft is not
/// supported.
pub fn related_task(object: RawRef<'_>) -> Option<String> {
    let id = object::find(object, &[META, RELATED_TASK, "taskId"])?;
    Some(id.text()?.into_owned())
}

/// Marks `object` as belonging to `task` and replaces an existing mark (V1-META-1, BR-RES-2).
pub fn relate(object: RawRef<'_>, task: &str) -> Result<Raw, NotAnObject> {
    let mut mark = String::new();
    write_relation(&mut mark, task);
    set(object, RELATED_TASK, RawRef::scanned(&mark))
}

/// Appends the mark for `task`.
pub(crate) fn write_relation(out: &mut String, task: &str) {
    let mut fields = ObjectWriter::begin(out);
    fields.text("taskId", task);
    fields.end();
}

/// Removes the mark (BR-RES-2, V2-GET-7).
pub fn unrelate(object: RawRef<'_>) -> Result<Raw, NotAnObject> {
    remove(object, RELATED_TASK)
}

/// Returns the token with which the sender of `params` requests progress (V1-PRG-1).
pub fn progress_token(params: RawRef<'_>) -> Option<Id> {
    value(params, PROGRESS_TOKEN).and_then(|token| Id::read(token).ok())
}

/// Returns the W3C trace parent in `params` (V2-META-9).
pub fn trace(params: RawRef<'_>) -> Option<Cow<'_, str>> {
    static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TRACEPARENT));
    // Few requests have one. The search avoids parsing the others.
    KEY.find(params.as_str().as_bytes())?;
    value(params, TRACEPARENT)?.text()
}

/// Returns the text that a host may give to the model while the task runs (V1-CREATE-11).
pub fn model_immediate_response(result: RawRef<'_>) -> Option<String> {
    Some(
        value(result, MODEL_IMMEDIATE_RESPONSE)?
            .text()?
            .into_owned(),
    )
}

/// Returns `object` with one key set to a string.
pub fn set_text(object: RawRef<'_>, key: &str, text: &str) -> Result<Raw, NotAnObject> {
    set(object, key, RawRef::scanned(&quoted(text)))
}

/// Whether `key` is a valid `_meta` key or extension identifier (V1-BASE-7): an optional prefix of
/// dotted labels and `/`, then a name that may be empty.
pub fn is_valid_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |text: &str, also: &[u8]| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
    };
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && alphanumeric(bytes.last())
            && inner(label, b"-")
    };
    let bytes = name.as_bytes();
    prefix.is_none_or(|prefix| prefix.split('.').all(label))
        && (name.is_empty()
            || alphanumeric(bytes.first()) && alphanumeric(bytes.last()) && inner(name, b"-_."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::{any_json, any_object};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const MARK: &str = r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#;

    #[test]
    fn a_trace_is_found_only_in_meta() {
        // V2-META-9.
        for (params, expected) in [
            (r#"{"_meta":{"traceparent":"00-1"}}"#, Some("00-1")),
            (r#"{"traceparent":"00-1"}"#, None),
            (r#"{"_meta":{"traceparent":1}}"#, None),
            ("{}", None),
        ] {
            let params = RawRef::parse(params).unwrap();
            assert_eq!(trace(params).as_deref(), expected, "{params:?}");
        }
    }

    /// V1-RES-6.
    #[test]
    fn the_mark_is_merged_and_other_keys_keep_their_bytes() {
        for (before, after) in [
            ("{}", format!("{{\"_meta\":{{{MARK}}}}}")),
            (
                r#"{"a":1.50}"#,
                format!("{{\"a\":1.50,\"_meta\":{{{MARK}}}}}"),
            ),
            (
                r#"{"_meta":null,"a":1}"#,
                format!("{{\"_meta\":{{{MARK}}},\"a\":1}}"),
            ),
            (
                r#"{"_meta": { },"a":1}"#,
                format!("{{\"_meta\": {{{MARK} }},\"a\":1}}"),
            ),
            (
                r#"{"_meta":{"k": 1e1}}"#,
                format!("{{\"_meta\":{{\"k\": 1e1,{MARK}}}}}"),
            ),
            (
                r#"{"_m\u0065ta":{"k":1}}"#,
                format!("{{\"_m\\u0065ta\":{{\"k\":1,{MARK}}}}}"),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"old"},"k":1}}"#,
                r#"{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"t"},"k":1}}"#
                    .to_owned(),
            ),
        ] {
            let before = RawRef::parse(before).unwrap();
            let marked = relate(before, "t").unwrap();
            assert_eq!(marked.as_str(), after);
            assert_eq!(related_task(marked.borrow()).as_deref(), Some("t"));
            assert_eq!(
                related_task(unrelate(marked.borrow()).unwrap().borrow()),
                None
            );
        }
        assert_eq!(relate(RawRef::parse("[]").unwrap(), "t"), Err(NotAnObject));
    }

    #[test]
    fn keys_are_stripped_in_one_pass_with_an_emptied_meta() {
        for (before, after) in [
            (
                r#"{"a":1,"b":{"x":1}, "_meta":{"k":1,"l":2}}"#,
                r#"{"b":{"x":1}, "_meta":{"l":2}}"#,
            ),
            (r#"{"_meta":{"k":1},"b":2}"#, r#"{"b":2}"#),
            (r#"{"a":1}"#, "{}"),
            (r#"{"_meta":{"\u006b":1},"_meta":{ }}"#, r#"{"_meta":{ }}"#),
            (r#"{"_meta":7,"b":1.0}"#, r#"{"_meta":7,"b":1.0}"#),
            ("[1]", "[1]"),
        ] {
            let object = Raw::parse(before.into()).unwrap();
            assert_eq!(strip(&object, &["a"], &["k"]).as_str(), after);
        }
    }

    #[test]
    fn tokens_keep_their_type() {
        let params = |token: &str| {
            Raw::parse(format!("{{\"_meta\":{{\"progressToken\":{token}}}}}")).unwrap()
        };
        assert_eq!(progress_token(params("0").borrow()), Some(Id::from(0)));
        assert_eq!(
            progress_token(params("\"0\"").borrow()),
            Some(Id::text("0"))
        );
        assert_eq!(progress_token(params("1.5").borrow()), None);
    }

    /// V1-BASE-7.
    #[test]
    fn keys_are_spelled_by_the_rule() {
        for good in [
            "a",
            "a.b-c_d",
            "io.modelcontextprotocol/tasks",
            "a.b-2/",
            "",
            "x/1",
        ] {
            assert!(is_valid_key(good), "{good}");
        }
        for bad in [
            "-a", "a-", "1a/x", "a./x", "a-/x", "a b", "/x", "a/b/c", "ü",
        ] {
            assert!(!is_valid_key(bad), "{bad}");
        }
    }

    proptest! {
        /// BR-RES-2.
        #[test]
        fn marking_and_unmarking_keeps_the_meaning(mut object in any_object(), meta in any_json(), with_meta: bool, task: String) {
            object.as_object_mut().unwrap().remove(META);
            if with_meta && meta.is_object() {
                object[META] = meta;
            }
            let text = object.to_string();
            let marked = relate(RawRef::parse(&text).unwrap(), &task).unwrap();
            prop_assert_eq!(related_task(marked.borrow()), Some(task));
            let unmarked = unrelate(marked.borrow()).unwrap();
            let mut expected = object;
            if expected.get(META) == Some(&json!({})) {
                expected.as_object_mut().unwrap().remove(META);
            }
            prop_assert_eq!(unmarked.open::<Value>().unwrap(), expected);
        }
    }
}
