//! JSON on several lines. Members keep their order, and numbers their digits.

use outlast::wire::RawRef;
use outlast_wire::object;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The value on several lines.
pub(crate) fn pretty(value: RawRef<'_>) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

/// Serializes a JSON text as the value that it contains.
pub(crate) fn as_value<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => value.serialize(serializer),
        Err(_) => serializer.serialize_str(text),
    }
}

/// As [`as_value`], for a text that may be missing.
pub(crate) fn as_optional_value<S: Serializer>(
    text: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match text {
        Some(text) => as_value(text, serializer),
        None => serializer.serialize_none(),
    }
}

fn write(value: RawRef<'_>, depth: usize, text: &mut String) {
    let is_array = value.as_str().starts_with('[');
    if depth >= MAX_DEPTH || !(value.is_object() || is_array) {
        text.push_str(value.as_str());
        return;
    }
    let mut is_first = true;
    let mut begin = |text: &mut String| {
        text.push_str(if is_first { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n("  ", depth + 1));
        is_first = false;
    };
    let (open, close) = if is_array { ('[', ']') } else { ('{', '}') };
    text.push(open);
    let length = text.len();
    if is_array {
        for item in object::elements(value).unwrap_or_default() {
            begin(text);
            write(item, depth + 1, text);
        }
    } else {
        for member in object::members(value).unwrap_or_default() {
            begin(text);
            text.push_str(&serde_json::to_string(&member.name).unwrap_or_default());
            text.push_str(": ");
            write(member.value, depth + 1, text);
        }
    }
    if text.len() > length {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    }
    text.push(close);
}

/// Below this depth, values stay on one line.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_digits_stay() {
        let value = RawRef::parse(r#"{"b":90071992547409931234,"a":[1.50,{}],"c":"x\n"}"#).unwrap();
        assert_eq!(
            pretty(value),
            "{\n  \"b\": 90071992547409931234,\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"c\": \"x\\n\"\n}"
        );
    }
}
