//! Headers that repeat parts of the body, for routing without parsing it (V2-HH-3).

use std::borrow::Cow;

use crate::codes::header_mismatch;
use crate::envelope::ErrorObject;
use crate::headers::{METHOD, NAME, PROTOCOL_VERSION, decode};
use crate::object::find;
use crate::raw::RawRef;
use crate::{method, tool, v2};

/// What the server does with a `tasks/*` request without the header `Mcp-Name` (V2-HDR-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissingName {
    /// Serve it, because existing clients omit the header.
    #[default]
    Accept,
    /// Refuse it, like the core methods.
    Refuse,
}

/// Returns the value of the name header of a request: its tool, prompt, resource or task. `None`
/// for methods without this header.
pub fn mirrored_name<'a>(method: &str, params: Option<RawRef<'a>>) -> Option<Cow<'a, str>> {
    find(params?, &[named_by(method)?])?.text()
}

/// Checks the method header of a request (V2-HH-2, V2-HH-4).
pub fn check_method(method: &str, header: Option<&str>) -> Result<(), ErrorObject> {
    let header = header.ok_or_else(|| missing(METHOD))?;
    same(METHOD, header, method)
}

/// Checks the name header of a request. A mismatch is always refused (V2-HDR-2).
pub fn check_name(
    method: &str,
    params: Option<RawRef<'_>>,
    header: Option<&str>,
    on_missing: OnMissingName,
) -> Result<(), ErrorObject> {
    let Some(name) = mirrored_name(method, params) else {
        return Ok(());
    };
    match header {
        Some(header) => same(NAME, header, &name),
        None if method.starts_with("tasks/") && on_missing == OnMissingName::Accept => Ok(()),
        None => Err(missing(NAME)),
    }
}

/// Checks the version header against the version in the body (V2-HH-1, V2-HH-2).
pub fn check_version(version: &str, header: Option<&str>) -> Result<(), ErrorObject> {
    let header = header.ok_or_else(|| missing(PROTOCOL_VERSION))?;
    same(PROTOCOL_VERSION, header, version)
}

/// The parameter that the name header of `method` repeats.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        tool::CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        v2::method::GET | v2::method::UPDATE | v2::method::CANCEL => Some("taskId"),
        _ => None,
    }
}

fn same(name: &str, header: &str, body: &str) -> Result<(), ErrorObject> {
    match decode(header) {
        Ok(value) if value == body => Ok(()),
        Ok(_) => Err(header_mismatch(format!(
            "header `{name}` differs from the body"
        ))),
        Err(error) => Err(header_mismatch(format!("header `{name}`: {error}"))),
    }
}

fn missing(name: &str) -> ErrorObject {
    header_mismatch(format!("header `{name}` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::HEADER_MISMATCH;

    #[test]
    fn each_method_mirrors_its_own_parameter() {
        let params = RawRef::parse(r#"{"name":"n","uri":"u","taskId":"t"}"#).ok();
        for (method, expected) in [
            ("tools/call", Some("n")),
            ("prompts/get", Some("n")),
            ("resources/read", Some("u")),
            ("tasks/get", Some("t")),
            ("tasks/update", Some("t")),
            ("tasks/cancel", Some("t")),
            ("tools/list", None),
            ("tasks/list", None),
        ] {
            assert_eq!(
                mirrored_name(method, params).as_deref(),
                expected,
                "{method}"
            );
        }
    }

    /// V2-HDR-2, V2-HDR-3, V2-HH-4.
    #[test]
    fn mismatches_are_refused_and_missing_task_names_if_strict() {
        let params = RawRef::parse(r#"{"name":"N\u00fc","taskId":"t"}"#).ok();
        let check = |method, header, strict| {
            check_name(method, params, header, strict).map_err(|error| error.code)
        };
        let (lax, strict) = (OnMissingName::Accept, OnMissingName::Refuse);
        assert_eq!(check("tools/call", Some(" =?base64?TsO8?= "), lax), Ok(()));
        assert_eq!(check("tools/call", Some("n"), lax), Err(HEADER_MISMATCH));
        assert_eq!(check("tools/call", None, lax), Err(HEADER_MISMATCH));
        assert_eq!(check("tasks/get", Some("t"), strict), Ok(()));
        assert_eq!(check("tasks/get", Some("T"), lax), Err(HEADER_MISMATCH));
        assert_eq!(check("tasks/get", None, lax), Ok(()));
        assert_eq!(check("tasks/get", None, strict), Err(HEADER_MISMATCH));
        assert_eq!(check("tools/list", Some("whatever"), strict), Ok(()));
        assert!(check_method("tools/call", Some("tools/call")).is_ok());
        assert!(check_method("tools/call", Some("TOOLS/CALL")).is_err());
        assert!(check_version("v999", Some("2026-07-28")).is_err());
        assert!(check_version("2026-07-28", None).is_err());
    }
}
