//! Converts the tool arguments of the command line to the types in the tool's schema.

use serde_json::{Map, Value};

/// Why an argument is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("`{0}` is not an argument\n  next: write NAME=VALUE or NAME:=JSON")]
    Shape(String),
    #[error(
        "argument `{name}` must be {want}, and `{text}` is not\n  next: `outlast tools` lists the tools with their arguments"
    )]
    Kind {
        name: String,
        want: String,
        text: String,
    },
    #[error("the tool has no argument {name}\n  next: use {}", choices(.known))]
    Unknown { name: String, known: Vec<String> },
    #[error("the tool needs `{}`\n  next: add {}=VALUE", .0.join("`, `"), .0.first().map_or("", String::as_str))]
    Missing(Vec<String>),
}

fn choices(names: &[String]) -> String {
    match names {
        [] => "none: it takes no arguments".into(),
        names => format!("one of: {}", names.join(", ")),
    }
}

/// Adds `NAME=VALUE` and `NAME:=JSON` to `given`, by the schema of the tool.
pub(super) fn read(
    schema: &Value,
    words: &[String],
    mut given: Map<String, Value>,
) -> Result<Map<String, Value>, ArgumentError> {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let closed = schema["additionalProperties"] == Value::Bool(false);
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| ArgumentError::Shape(word.clone()))?;
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => (name, json(name, value)?),
            None => (name, typed(name, value, properties.get(name))?),
        };
        if name.is_empty() {
            return Err(ArgumentError::Shape(word.clone()));
        }
        if closed && !properties.contains_key(name) {
            let known = properties.keys().cloned().collect();
            return Err(ArgumentError::Unknown {
                name: name.into(),
                known,
            });
        }
        given.insert(name.into(), value);
    }
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let missing: Vec<_> = required
        .filter(|name| !given.contains_key(*name))
        .map(str::to_owned)
        .collect();
    if missing.is_empty() {
        Ok(given)
    } else {
        Err(ArgumentError::Missing(missing))
    }
}

fn json(name: &str, text: &str) -> Result<Value, ArgumentError> {
    serde_json::from_str(text).map_err(|_| kind(name, "JSON", text))
}

/// Converts `text` to the type in the schema. Without a type in the schema it stays text.
fn typed(name: &str, text: &str, schema: Option<&Value>) -> Result<Value, ArgumentError> {
    let Some(schema) = schema else {
        return Ok(text.into());
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => match schema["enum"].as_array() {
            // Use the allowed value that is spelled like the text.
            Some(choices) => return choice(name, text, choices),
            None => return Ok(text.into()),
        },
    };
    let found = types.iter().find_map(|kind| of_type(kind, text));
    found.ok_or_else(|| kind(name, &format!("of type {}", types.join(" or ")), text))
}

fn choice(name: &str, text: &str, choices: &[Value]) -> Result<Value, ArgumentError> {
    let spelled = |value: &&Value| match value.as_str() {
        Some(it) => it == text,
        None => serde_json::from_str::<Value>(text).is_ok_and(|typed| typed == **value),
    };
    choices.iter().find(spelled).cloned().ok_or_else(|| {
        let all: Vec<_> = choices.iter().map(Value::to_string).collect();
        kind(name, &format!("one of {}", all.join(", ")), text)
    })
}

fn of_type(kind: &str, text: &str) -> Option<Value> {
    let parsed = || serde_json::from_str::<Value>(text).ok();
    match kind {
        "string" => Some(text.into()),
        "integer" => text.parse::<i64>().ok().map(Into::into),
        "number" => parsed().filter(Value::is_number),
        "boolean" => match text {
            "true" | "yes" => Some(true.into()),
            "false" | "no" => Some(false.into()),
            _ => None,
        },
        "null" => (text == "null").then_some(Value::Null),
        "array" => parsed().filter(Value::is_array),
        "object" => parsed().filter(Value::is_object),
        _ => None,
    }
}

fn kind(name: &str, want: &str, text: &str) -> ArgumentError {
    ArgumentError::Kind {
        name: name.into(),
        want: want.into(),
        text: text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "count": { "type": "integer" },
                "much": { "type": ["number", "null"] },
                "sure": { "type": "boolean" },
                "list": { "type": "array" },
                "choice": { "enum": ["a", 2] },
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    }

    fn read_words(words: &[&str]) -> Result<Value, ArgumentError> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        read(&schema(), &words, Map::new()).map(Value::Object)
    }

    #[test]
    fn arguments_are_converted_to_the_types_of_the_schema() {
        assert_eq!(
            read_words(&[
                "text=5", "count=5", "much=5.5", "sure=yes", "list=[1]", "choice=2"
            ]),
            Ok(
                json!({ "text": "5", "count": 5, "much": 5.5, "sure": true, "list": [1], "choice": 2 })
            )
        );
        assert_eq!(
            read_words(&["text=a=b", "much=null"]),
            Ok(json!({ "text": "a=b", "much": null }))
        );
        assert_eq!(read_words(&["text:=[1]"]), Ok(json!({ "text": [1] })));
    }

    #[test]
    fn an_invalid_argument_is_named() {
        let error_text = |words: &[&str]| read_words(words).unwrap_err().to_string();
        assert!(
            error_text(&["count=1"]).starts_with("the tool needs `text`\n  next: add text=VALUE")
        );
        assert!(
            error_text(&["text=x", "count=five"])
                .starts_with("argument `count` must be of type integer, and `five` is not")
        );
        assert!(error_text(&["text=x", "choice=c"]).contains(r#"one of "a", 2"#));
        assert!(error_text(&["text=x", "other=1"]).contains("one of: choice, count"));
        assert!(error_text(&["text"]).contains("`text` is not an argument"));
        assert!(error_text(&["text=x", "list:=["]).contains("must be JSON"));
    }
}
