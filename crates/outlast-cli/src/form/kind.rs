//! The type of a field: text, number, boolean or choices, as in the primitive schemas of the
//! specification (V1-ELIC-16).

use serde_json::{Number, Value, json};

use super::kind::format::Format;

mod format;

/// The type of a field and its limits.
pub(crate) enum Kind {
    Text {
        format: Option<Format>,
        characters: Range,
    },
    Integer(Range),
    Number(Range),
    Boolean,
    One(Vec<Choice>),
    Many {
        choices: Vec<Choice>,
        count: Range,
    },
}

/// One allowed value and its title.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: String,
}

/// The smallest and the largest allowed number.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    least: Option<f64>,
    most: Option<f64>,
}

impl Kind {
    pub(super) fn read(property: &Value) -> Self {
        let range = |least: &str, most: &str| Range {
            least: property[least].as_f64(),
            most: property[most].as_f64(),
        };
        let kind = property["type"].as_str();
        if kind == Some("array") {
            return Self::Many {
                choices: choices(&property["items"]).unwrap_or_default(),
                count: range("minItems", "maxItems"),
            };
        }
        if let Some(choices) = choices(property) {
            return Self::One(choices);
        }
        match kind {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer(range("minimum", "maximum")),
            Some("number") => Self::Number(range("minimum", "maximum")),
            _ => Self::Text {
                format: property["format"].as_str().and_then(Format::named),
                characters: range("minLength", "maxLength"),
            },
        }
    }

    /// The choices. Empty for other types.
    pub(crate) fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Many { choices, .. } => choices,
            Self::Text { .. } | Self::Integer(_) | Self::Number(_) | Self::Boolean => &[],
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Text { format, characters } => {
                let what = format.map_or("text", Format::describe);
                format!("{what}{}", characters.describe(" characters"))
            }
            Self::Integer(range) => format!("whole number{}", range.describe("")),
            Self::Number(range) => format!("number{}", range.describe("")),
            Self::Boolean => "yes or no".into(),
            Self::One(_) => "one choice".into(),
            Self::Many { count, .. } => {
                format!("choices, separated by commas{}", count.describe(""))
            }
        }
    }

    /// Converts `text` to a value, or says what to type instead.
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text { format, characters } => {
                characters.check(text.chars().count() as f64, " characters")?;
                if let Some(format) = format {
                    format.check(text)?;
                }
                Ok(text.into())
            }
            Self::Integer(range) => {
                let number: i64 = text.parse().map_err(|_| "type a whole number".to_owned())?;
                range.check(number as f64, "")?;
                Ok(number.into())
            }
            Self::Number(range) => {
                let number: f64 = text.parse().map_err(|_| "type a number".to_owned())?;
                range.check(number, "")?;
                Number::from_f64(number)
                    .map(Value::Number)
                    .ok_or("type a number".into())
            }
            Self::Boolean => yes_or_no(text)
                .map(Value::Bool)
                .ok_or("type yes or no".into()),
            Self::One(choices) => choose(choices, text).map(Value::from),
            Self::Many { choices, count } => {
                let chosen: Vec<_> = text
                    .split(',')
                    .map(|part| choose(choices, part.trim()))
                    .collect::<Result<_, _>>()?;
                count.check(chosen.len() as f64, " choices")?;
                Ok(json!(chosen))
            }
        }
    }
}

/// Reads `yes`, `no` and their usual short forms.
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Finds the choice that `text` names by its value, its title or its number in the list.
fn choose(choices: &[Choice], text: &str) -> Result<String, String> {
    let named = choices
        .iter()
        .find(|choice| choice.value == text || choice.title == text);
    let numbered = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    named
        .or_else(numbered)
        .map(|choice| choice.value.clone())
        .ok_or_else(|| {
            format!(
                "`{text}` is not a choice: type a number from 1 to {}",
                choices.len()
            )
        })
}

fn choices(property: &Value) -> Option<Vec<Choice>> {
    let titled = property["oneOf"]
        .as_array()
        .or_else(|| property["anyOf"].as_array());
    if let Some(titled) = titled {
        let one = |choice: &Value| {
            let value = choice["const"].as_str()?;
            let title = choice["title"].as_str().unwrap_or(value);
            Some(Choice {
                value: value.to_owned(),
                title: title.to_owned(),
            })
        };
        return titled.iter().map(one).collect();
    }
    let values = property["enum"].as_array()?;
    let one = |(at, value): (usize, &Value)| {
        let value = value.as_str()?;
        let title = property["enumNames"][at].as_str().unwrap_or(value);
        Some(Choice {
            value: value.to_owned(),
            title: title.to_owned(),
        })
    };
    values.iter().enumerate().map(one).collect()
}

impl Range {
    fn check(self, number: f64, unit: &str) -> Result<(), String> {
        match (self.least, self.most) {
            (Some(least), _) if number < least => Err(format!("at least {least}{unit}")),
            (_, Some(most)) if number > most => Err(format!("at most {most}{unit}")),
            _ => Ok(()),
        }
    }

    fn describe(self, unit: &str) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
            (Some(least), None) => format!(", at least {least}{unit}"),
            (None, Some(most)) => format!(", at most {most}{unit}"),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_text_becomes_a_value_of_the_kind() {
        let titled =
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bread"] });
        for (property, text, want) in [
            (json!({ "type": "string" }), "x y", json!("x y")),
            (json!({ "type": "integer", "minimum": 1 }), "3", json!(3)),
            (json!({ "type": "number" }), "2.5", json!(2.5)),
            (json!({ "type": "boolean" }), "Yes", json!(true)),
            (json!({ "type": "boolean" }), "n", json!(false)),
            (titled.clone(), "Bread", json!("b")),
            (titled, "2", json!("b")),
            // Text that is a value and also a number in the list means the value.
            (json!({ "enum": ["2", "1"] }), "1", json!("1")),
            (
                json!({ "oneOf": [{ "const": "a", "title": "Apple" }] }),
                "a",
                json!("a"),
            ),
            (
                json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
                "2, a",
                json!(["b", "a"]),
            ),
            (
                json!({ "type": "array", "items": { "anyOf": [{ "const": "a" }] } }),
                "1",
                json!(["a"]),
            ),
        ] {
            assert_eq!(Kind::read(&property).parse(text), Ok(want), "{property}");
        }
    }

    #[test]
    fn an_invalid_text_is_refused_with_what_to_type() {
        for (property, text, want) in [
            (json!({ "type": "integer" }), "3.5", "type a whole number"),
            (json!({ "type": "integer", "maximum": 2 }), "3", "at most 2"),
            (json!({ "type": "number" }), "NaN", "type a number"),
            (json!({ "type": "boolean" }), "maybe", "type yes or no"),
            (
                json!({ "type": "string", "minLength": 2 }),
                "x",
                "at least 2 characters",
            ),
            (
                json!({ "enum": ["a"] }),
                "b",
                "`b` is not a choice: type a number from 1 to 1",
            ),
            (
                json!({ "enum": ["a"] }),
                "0",
                "`0` is not a choice: type a number from 1 to 1",
            ),
            (
                json!({ "type": "array", "minItems": 2, "items": { "enum": ["a"] } }),
                "a",
                "at least 2 choices",
            ),
        ] {
            assert_eq!(
                Kind::read(&property).parse(text),
                Err(want.to_owned()),
                "{property}"
            );
        }
    }
}
