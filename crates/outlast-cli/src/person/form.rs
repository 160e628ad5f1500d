//! A form made from the schema of an elicitation, filled in line by line.

use serde_json::{Map, Value, json};

use super::Reply;
use super::lines::Lines;

/// Lets the person fill in the form.
pub(super) async fn fill_in(schema: &Value, lines: &Lines) -> Reply {
    let nothing = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&nothing);
    let question = match fields.is_empty() {
        true => "[y]es, [d]ecline, [c]ancel",
        false => "[y]es, fill in the form; [d]ecline; [c]ancel",
    };
    match lines.choose(question, &["y", "d", "c"]).await {
        Some("y") => {}
        Some("d") => return Reply::Decline,
        _ => return Reply::Cancel,
    }
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    let mut content = Map::new();
    for (name, field) in fields {
        match fill_field(name, field, required(name), lines).await {
            Some(Some(value)) => {
                content.insert(name.clone(), value);
            }
            Some(None) => {}
            None => return Reply::Cancel,
        }
    }
    Reply::Respond(json!({ "action": "accept", "content": content }))
}

/// One field, asked until it fits: a value, nothing, or none at the end of the input.
async fn fill_field(
    name: &str,
    field: &Value,
    required: bool,
    lines: &Lines,
) -> Option<Option<Value>> {
    eprintln!("{}", describe(name, field, required));
    loop {
        let line = lines.next().await?;
        match (line.is_empty(), field.get("default")) {
            (true, Some(default)) => return Some(Some(default.clone())),
            (true, None) if !required => return Some(None),
            (true, None) if field["type"] != "string" => eprintln!("  this is needed"),
            _ => match read(field, &line) {
                Ok(value) => return Some(Some(value)),
                Err(why) => eprintln!("  {why}"),
            },
        }
    }
}

fn describe(name: &str, field: &Value, required: bool) -> String {
    let mut text = field["title"].as_str().unwrap_or(name).to_owned();
    if let Some(more) = field["description"].as_str() {
        text = format!("{text}: {more}");
    }
    let mut notes = vec![match choices(field) {
        Some(choices) => {
            let shown = choices.iter().map(|(value, title)| match value == title {
                true => value.clone(),
                false => format!("{value} = {title}"),
            });
            let shown: Vec<_> = shown.collect();
            let several = if field["type"] == "array" {
                "any of, with commas"
            } else {
                "one of"
            };
            format!("{several}: {}", shown.join(", "))
        }
        None => match (field["type"].as_str(), field["format"].as_str()) {
            (Some("boolean"), _) => "yes or no".into(),
            (_, Some(format)) => format.into(),
            (kind, _) => kind.unwrap_or("text").into(),
        },
    }];
    if let Some(default) = field.get("default") {
        notes.push(format!("empty for {default}"));
    } else if !required {
        notes.push("may be empty".into());
    }
    format!("  {text} [{}]", notes.join("; "))
}

/// What may be chosen, with titles, if this is a choice.
fn choices(field: &Value) -> Option<Vec<(String, String)>> {
    let field = if field["type"] == "array" {
        &field["items"]
    } else {
        field
    };
    if let Some(titled) = field["oneOf"]
        .as_array()
        .or_else(|| field["anyOf"].as_array())
    {
        let one = |choice: &Value| {
            let value = choice["const"].as_str()?;
            Some((
                value.to_owned(),
                choice["title"].as_str().unwrap_or(value).to_owned(),
            ))
        };
        return titled.iter().map(one).collect();
    }
    let values = field["enum"].as_array()?;
    let title =
        |at: usize, value: &str| field["enumNames"][at].as_str().unwrap_or(value).to_owned();
    let one = |(at, value): (usize, &Value)| {
        value
            .as_str()
            .map(|value| (value.to_owned(), title(at, value)))
    };
    values.iter().enumerate().map(one).collect()
}

/// What the person typed as a value of the field, or why it is none.
fn read(field: &Value, text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Some(choices) = choices(field) {
        let one = |text: &str| {
            let found = choices
                .iter()
                .find(|(value, title)| value == text || title == text);
            found
                .map(|(value, _)| value.clone())
                .ok_or_else(|| format!("`{text}` is no choice"))
        };
        if field["type"] != "array" {
            return one(text).map(Into::into);
        }
        let all: Vec<_> = text
            .split(',')
            .map(|part| one(part.trim()))
            .collect::<Result<_, _>>()?;
        within(
            all.len() as f64,
            &field["minItems"],
            &field["maxItems"],
            "choices",
        )?;
        return Ok(json!(all));
    }
    match field["type"].as_str() {
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("type yes or no".into()),
        },
        Some("integer") => {
            let number: i64 = text.parse().map_err(|_| "type a whole number".to_owned())?;
            within(number as f64, &field["minimum"], &field["maximum"], "")?;
            Ok(number.into())
        }
        Some("number") => {
            let number: f64 = text.parse().map_err(|_| "type a number".to_owned())?;
            within(number, &field["minimum"], &field["maximum"], "")?;
            serde_json::Number::from_f64(number)
                .map(Value::Number)
                .ok_or("type a number".into())
        }
        _ => {
            within(
                text.chars().count() as f64,
                &field["minLength"],
                &field["maxLength"],
                "characters",
            )?;
            match (field["format"].as_str(), text) {
                (Some("email"), text) if !text.contains('@') => {
                    Err("type an address with an @".into())
                }
                (Some("uri"), text) if !text.contains(':') => {
                    Err("type a URI such as https://example.org".into())
                }
                _ => Ok(text.into()),
            }
        }
    }
}

fn within(number: f64, least: &Value, most: &Value, what: &str) -> Result<(), String> {
    match (least.as_f64(), most.as_f64()) {
        (Some(least), _) if number < least => {
            Err(format!("at least {least} {what}").trim_end().into())
        }
        (_, Some(most)) if number > most => Err(format!("at most {most} {what}").trim_end().into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_what_the_field_wants() {
        for (field, text, want) in [
            (json!({ "type": "string" }), " x ", json!("x")),
            (json!({ "type": "integer", "minimum": 1 }), "3", json!(3)),
            (json!({ "type": "number" }), "2.5", json!(2.5)),
            (json!({ "type": "boolean" }), "Yes", json!(true)),
            (
                json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bread"] }),
                "Bread",
                json!("b"),
            ),
            (
                json!({ "type": "string", "oneOf": [{ "const": "a", "title": "Apple" }] }),
                "a",
                json!("a"),
            ),
            (
                json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
                "b, a",
                json!(["b", "a"]),
            ),
        ] {
            assert_eq!(read(&field, text), Ok(want), "{field}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (field, text, want) in [
            (json!({ "type": "integer" }), "3.5", "type a whole number"),
            (json!({ "type": "integer", "maximum": 2 }), "3", "at most 2"),
            (
                json!({ "type": "string", "minLength": 2 }),
                "x",
                "at least 2 characters",
            ),
            (
                json!({ "type": "string", "enum": ["a"] }),
                "b",
                "`b` is no choice",
            ),
            (
                json!({ "type": "string", "format": "email" }),
                "b",
                "type an address with an @",
            ),
            (
                json!({ "type": "array", "minItems": 2, "items": { "enum": ["a"] } }),
                "a",
                "at least 2 choices",
            ),
            (json!({ "type": "number" }), "NaN", "type a number"),
        ] {
            assert_eq!(read(&field, text), Err(want.to_owned()), "{field}");
        }
    }

    #[test]
    fn a_field_says_what_it_wants() {
        let field = json!({ "type": "string", "title": "Colour", "description": "of the cover", "enum": ["r"], "enumNames": ["Red"], "default": "r" });
        assert_eq!(
            describe("c", &field, true),
            "  Colour: of the cover [one of: r = Red; empty for \"r\"]"
        );
        assert_eq!(
            describe("n", &json!({ "type": "integer" }), false),
            "  n [integer; may be empty]"
        );
    }
}
