//! Status messages for people. Servers put whole errors into them, as JSON; a page shows the
//! message inside. The API returns the text as it is.

use serde_json::Value;

/// The text, with JSON replaced by the messages in it.
pub(crate) fn readable(text: &str) -> String {
    let Some(start) = text.find(['{', '[']) else {
        return text.to_owned();
    };
    let (before, json) = text.split_at(start);
    let Ok(value) = serde_json::from_str::<Value>(json.trim_end()) else {
        return text.to_owned();
    };
    match message(&value, 0) {
        Some(message) if before.trim().is_empty() => message,
        Some(message) => format!("{} {message}", before.trim_end()),
        None => text.to_owned(),
    }
}

/// As [`readable`]; `None` if it is the text itself.
pub(crate) fn replacement(text: &str) -> Option<String> {
    let shown = readable(text);
    (shown != text).then_some(shown)
}

/// The message of an error: its member `message`, or those of its parts.
fn message(value: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(members) => match members.get("message").or_else(|| members.get("msg")) {
            Some(Value::String(text)) => {
                let place = members.get("path").and_then(place).unwrap_or_default();
                Some(format!("{place}{}", readable(text)))
            }
            _ => ["error", "detail", "errors"]
                .iter()
                .find_map(|name| message(members.get(*name)?, depth + 1)),
        },
        Value::Array(parts) => {
            let texts: Option<Vec<_>> = parts.iter().map(|part| message(part, depth + 1)).collect();
            texts
                .filter(|texts| !texts.is_empty())
                .map(|texts| texts.join("; "))
        }
        Value::String(text) if depth > 0 => Some(text.clone()),
        _ => None,
    }
}

/// The place of a fault in a value, such as `rows.0: `.
fn place(path: &Value) -> Option<String> {
    let names: Option<Vec<_>> = path
        .as_array()?
        .iter()
        .map(|name| match name {
            Value::String(name) => Some(name.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    names
        .filter(|names| !names.is_empty())
        .map(|names| format!("{}: ", names.join(".")))
}

const MAX_DEPTH: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_by_its_message_not_json() {
        for (text, shown) in [
            ("3 of 10", "3 of 10"),
            ("wrote {a}", "wrote {a}"),
            ("[3/10] reading", "[3/10] reading"),
            ("{\"progress\":3}", "{\"progress\":3}"),
            (r#"{"code":-32603,"message":"it broke"}"#, "it broke"),
            (r#"{"error":{"message":"no file"}}"#, "no file"),
            (
                r#"MCP error -32602: [{"path":["rows",0],"message":"Required"},{"message":"b"}]"#,
                "MCP error -32602: rows.0: Required; b",
            ),
        ] {
            assert_eq!(readable(text), shown);
        }
    }
}
