//! Tool parameters mirrored as headers: the `x-mcp-header` annotation of an input schema and the
//! headers of a call (V2-PARAM).

use std::collections::BTreeSet;

use crate::codes::header_mismatch;
use crate::envelope::ErrorObject;
use crate::headers::{PARAM_PREFIX, decode, encode};
use crate::neutral::MAX_SAFE_INTEGER;
use crate::object::{elements, find, members, pick};
use crate::raw::RawRef;

/// A parameter that is also sent as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The full header name, `Mcp-Param-…`.
    pub header: String,
    /// The property names that lead from the arguments to the parameter.
    pub path: Vec<String>,
    /// Its type.
    pub kind: ParamKind,
}

/// The types of a mirrored parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `string`.
    Text,
    /// `integer`.
    Integer,
    /// `boolean`.
    Boolean,
}

/// An invalid annotation, which makes its tool unusable over HTTP (V2-PARAM-2, V2-PARAM-3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnnotation {
    /// The name is not a non-empty HTTP token.
    #[error("`x-mcp-header` is not a header name: {0}")]
    Name(String),
    /// The name occurs twice, compared without case.
    #[error("`x-mcp-header` occurs twice: {0}")]
    Twice(String),
    /// The property is not a string, an integer or a boolean.
    #[error("`x-mcp-header` on a property that is not a string, an integer or a boolean: {0}")]
    Kind(String),
    /// The property is not reached through `properties` alone.
    #[error("`x-mcp-header` on something not reached through `properties` alone: {0}")]
    Unreachable(String),
}

/// Returns the annotations of a tool's input schema.
pub fn annotations(schema: RawRef<'_>) -> Result<Vec<HeaderParam>, InvalidAnnotation> {
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    // A work list instead of recursion, because the schema is untrusted.
    let mut work = vec![(schema, Some(Vec::new()))];
    while let Some((schema, path)) = work.pop() {
        for member in members(schema).unwrap_or_default() {
            match (&*member.name, SubschemaLocation::of(&member.name)) {
                (ANNOTATION, _) => {
                    let param = annotated(schema, member.value, path.as_deref())?;
                    if !names.insert(param.header.to_ascii_lowercase()) {
                        return Err(InvalidAnnotation::Twice(param.header));
                    }
                    found.push(param);
                }
                (_, SubschemaLocation::Nothing) => {}
                (_, SubschemaLocation::Schema) => work.push((member.value, None)),
                (_, SubschemaLocation::List) => {
                    let inner = elements(member.value).unwrap_or_default();
                    work.extend(inner.into_iter().map(|schema| (schema, None)));
                }
                (name, SubschemaLocation::Map) => {
                    for inner in members(member.value).unwrap_or_default() {
                        let path = path
                            .clone()
                            .filter(|_| name == "properties")
                            .map(|mut path| {
                                path.push(inner.name.clone().into_owned());
                                path
                            });
                        work.push((inner.value, path));
                    }
                }
            }
        }
    }
    found.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(found)
}

/// Returns the encoded headers of a call with these arguments. An absent or null argument has no
/// header (V2-PARAM-4).
pub fn mirrored_params<'p>(
    params: &'p [HeaderParam],
    arguments: Option<RawRef<'_>>,
) -> Vec<(&'p str, String)> {
    let header = |param: &'p HeaderParam| {
        let value = param.expected(arguments)?;
        Some((&*param.header, encode(&value).into_owned()))
    };
    params.iter().filter_map(header).collect()
}

/// Checks the headers of a call against its arguments (V2-PARAM-5). `header` looks up a header by
/// its name, without case. Other headers are ignored (V2-HH-6).
pub fn check_params<'h>(
    params: &[HeaderParam],
    arguments: Option<RawRef<'_>>,
    header: impl Fn(&str) -> Option<&'h str>,
) -> Result<(), ErrorObject> {
    for param in params {
        let Some(expected) = param.expected(arguments) else {
            continue;
        };
        let name = &param.header;
        let value =
            header(name).ok_or_else(|| header_mismatch(format!("header `{name}` is missing")))?;
        let value =
            decode(value).map_err(|error| header_mismatch(format!("header `{name}`: {error}")))?;
        let equal = match param.kind {
            ParamKind::Integer => {
                parse_integer(&value).is_some() && parse_integer(&value) == parse_integer(&expected)
            }
            ParamKind::Text | ParamKind::Boolean => value == expected,
        };
        if !equal {
            return Err(header_mismatch(format!(
                "header `{name}` differs from the body"
            )));
        }
    }
    Ok(())
}

impl HeaderParam {
    /// The expected header: the string, the decimal integer, `true` or `false`. A value of another
    /// type is sent as its JSON text, and the schema check reports it.
    fn expected(&self, arguments: Option<RawRef<'_>>) -> Option<String> {
        let path: Vec<_> = self.path.iter().map(String::as_str).collect();
        let value = find(arguments?, &path).filter(|value| !value.is_null())?;
        let text = value.text_or_json();
        if self.kind == ParamKind::Integer
            && !value.is_text()
            && let Some(integer) = parse_integer(&text)
        {
            return Some(integer.to_string());
        }
        Some(text.into_owned())
    }
}

/// Reads one annotation.
fn annotated(
    schema: RawRef<'_>,
    name: RawRef<'_>,
    path: Option<&[String]>,
) -> Result<HeaderParam, InvalidAnnotation> {
    let spelled = name.text_or_json().into_owned();
    if !name.is_text() || !is_token(&spelled) {
        return Err(InvalidAnnotation::Name(spelled));
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Err(InvalidAnnotation::Unreachable(spelled));
    };
    let kind = pick(schema, ["type"]).ok().and_then(|[kind]| kind?.text());
    let kind = match kind.as_deref() {
        Some("string") => ParamKind::Text,
        Some("integer") => ParamKind::Integer,
        Some("boolean") => ParamKind::Boolean,
        _ => return Err(InvalidAnnotation::Kind(spelled)),
    };
    Ok(HeaderParam {
        header: format!("{PARAM_PREFIX}{spelled}"),
        path: path.to_vec(),
        kind,
    })
}

/// Parses a decimal integer, `42` and `42.0` alike, if it is a safe integer.
fn parse_integer(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    let safe = number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER as f64;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
    safe.then_some(number as i64)
}

fn is_token(name: &str) -> bool {
    let mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || mark(byte))
}

/// Where a schema keyword contains further schemas.
enum SubschemaLocation {
    Nothing,
    Schema,
    List,
    Map,
}

impl SubschemaLocation {
    fn of(keyword: &str) -> Self {
        match keyword {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                Self::Map
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::List,
            "items"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "additionalItems"
            | "contentSchema" => Self::Schema,
            _ => Self::Nothing,
        }
    }
}

const ANNOTATION: &str = "x-mcp-header";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::Raw;

    #[test]
    fn annotations_are_found_where_properties_alone_lead() {
        let found = read(
            r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
                "x-mcp-header":{"type":"string","default":{"x-mcp-header":""}}}}"#,
        );
        let param = |header: &str, path: &[&str], kind| HeaderParam {
            header: header.into(),
            path: path.iter().map(ToString::to_string).collect(),
            kind,
        };
        assert_eq!(
            found,
            Ok(vec![
                param("Mcp-Param-N", &["deep", "n"], ParamKind::Integer),
                param("Mcp-Param-Region", &["region"], ParamKind::Text),
            ])
        );
    }

    /// V2-PARAM-2.
    #[test]
    fn annotations_that_break_a_rule_are_refused() {
        let one = |property: &str| read(&format!(r#"{{"properties":{{"a":{property}}}}}"#));
        let name = |name: &str| Err(InvalidAnnotation::Name(name.into()));
        assert_eq!(one(r#"{"type":"string","x-mcp-header":""}"#), name(""));
        assert_eq!(
            one(r#"{"type":"string","x-mcp-header":"a b"}"#),
            name("a b")
        );
        assert_eq!(one(r#"{"type":"string","x-mcp-header":"a:"}"#), name("a:"));
        assert_eq!(one(r#"{"type":"string","x-mcp-header":"ü"}"#), name("ü"));
        assert_eq!(one(r#"{"type":"string","x-mcp-header":7}"#), name("7"));
        for kind in [
            r#""number""#,
            r#""object""#,
            r#""array""#,
            r#""null""#,
            r#"["string"]"#,
        ] {
            let found = one(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#));
            assert_eq!(found, Err(InvalidAnnotation::Kind("A".into())), "{kind}");
        }
        let property = r#"{"type":"string","x-mcp-header":"A"}"#;
        for around in [
            format!(r#"{{"items":{property}}}"#),
            format!(r#"{{"anyOf":[{property}]}}"#),
            format!(r#"{{"$defs":{{"d":{property}}}}}"#),
            property.to_owned(),
        ] {
            assert_eq!(
                read(&around),
                Err(InvalidAnnotation::Unreachable("A".into())),
                "{around}"
            );
        }
        let twice = format!(
            r#"{{"properties":{{"a":{property},"b":{}}}}}"#,
            property.replace("\"A\"", "\"a\"")
        );
        assert!(matches!(read(&twice), Err(InvalidAnnotation::Twice(_))));
    }

    /// V2-PARAM-4.
    #[test]
    fn values_are_mirrored_and_null_is_not() {
        let params = three();
        let arguments = raw(r#"{"t":"grün","i":-7,"b":true}"#);
        let headers = mirrored_params(&params, Some(arguments.borrow()));
        assert_eq!(
            headers,
            [
                ("Mcp-Param-B", "true".to_owned()),
                ("Mcp-Param-I", "-7".to_owned()),
                ("Mcp-Param-T", "=?base64?Z3LDvG4=?=".to_owned()),
            ]
        );
        let none = raw(r#"{"t":null}"#);
        assert_eq!(mirrored_params(&params, Some(none.borrow())), []);
        assert_eq!(mirrored_params(&params, None), []);
    }

    /// V2-PARAM-5.
    #[test]
    fn headers_are_compared_with_the_body() {
        let params = three();
        let arguments = raw(r#"{"t":"x","i":42}"#);
        let check = |headers: &[(&str, &'static str)]| {
            let look = |name: &str| {
                let found = headers
                    .iter()
                    .find(|(header, _)| header.eq_ignore_ascii_case(name));
                found.map(|(_, value)| *value)
            };
            check_params(&params, Some(arguments.borrow()), look).is_ok()
        };
        assert!(check(&[
            ("mcp-param-t", "x"),
            ("Mcp-Param-I", "42.0"),
            ("Mcp-Param-Z", "1")
        ]));
        assert!(check(&[
            ("mcp-param-t", "=?base64?eA==?="),
            ("Mcp-Param-I", "42")
        ]));
        assert!(!check(&[("mcp-param-t", "x")]));
        assert!(!check(&[("mcp-param-t", "X"), ("Mcp-Param-I", "42")]));
        assert!(!check(&[("mcp-param-t", "x"), ("Mcp-Param-I", "43")]));
        assert!(!check(&[
            ("mcp-param-t", "=?base64?eA?="),
            ("Mcp-Param-I", "42")
        ]));
    }

    fn three() -> Vec<HeaderParam> {
        read(
            r#"{"properties":{"t":{"type":"string","x-mcp-header":"T"},
                "i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"}}}"#,
        )
        .unwrap()
    }

    fn read(schema: &str) -> Result<Vec<HeaderParam>, InvalidAnnotation> {
        annotations(RawRef::parse(schema).unwrap())
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }
}
