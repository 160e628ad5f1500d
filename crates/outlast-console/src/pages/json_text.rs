//! JSON on several lines. Members keep their order, and numbers their digits.

use outlast::wire::RawRef;
use outlast_wire::object;

/// The value on several lines.
pub(crate) fn pretty(value: RawRef<'_>) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
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
