//! The type of a field: how typed text becomes a JSON value, and what may be typed.
//!
//! Values are JSON text, so that large integers stay exact.

use outlast::wire::{Raw, RawRef};

use super::budget::Budget;
use super::field::Field;
use super::format::Format;
use super::range::Range;
use super::schema::SchemaPart;

/// The type of a field and its limits.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Text.
    Text {
        /// Its format.
        format: Option<Format>,
        /// Its length.
        characters: Range,
    },
    /// A whole number.
    Integer(Range),
    /// A number.
    Number(Range),
    /// Yes or no.
    Boolean,
    /// One of several values.
    One(Vec<Choice>),
    /// Several of several values.
    Many {
        /// The allowed values.
        choices: Vec<Choice>,
        /// How many may be chosen.
        count: Range,
    },
    /// An object with these members.
    Group(Vec<Field>),
    /// An array whose items are like this field.
    List {
        /// The description of an item.
        item: Box<Field>,
        /// How many items there may be.
        count: Range,
    },
    /// A part that a form cannot express. It is edited as JSON.
    Json {
        /// Why, in the form "it accepts any value".
        why: &'static str,
        /// Its schema.
        schema: Raw,
    },
}

/// One allowed value and its title.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The value.
    pub value: Raw,
    /// Its title.
    pub title: String,
}

impl Choice {
    /// The value without the quotation marks of a text.
    pub fn text(&self) -> String {
        plain(self.value.borrow())
    }
}

impl Kind {
    pub(super) fn read(node: &mut SchemaPart<'_>, schema: RawRef<'_>, budget: &mut Budget) -> Self {
        let json = |why| Self::Json {
            why,
            schema: schema.to_raw(),
        };
        if let Some(why) = node.unsupported.or_else(|| budget.take()) {
            return json(why);
        }
        let kind = node.kind();
        if let Some(why) = node.unsupported {
            return json(why);
        }
        if kind.as_deref() != Some("array")
            && let Some(choices) = node.choices()
        {
            return Self::One(choices_of(choices));
        }
        let range = |least, most| Range {
            least: node.number(least),
            most: node.number(most),
        };
        let has_any = |names: &[&str]| names.iter().any(|name| node.member(name).is_some());
        let kind = kind.as_deref().or_else(|| {
            let is_number = has_any(&["minimum", "maximum"]);
            let is_text = has_any(&["format", "minLength", "maxLength", "pattern"]);
            let is_object = has_any(&["properties"]);
            is_object
                .then_some("object")
                .or(is_number.then_some("number"))
                .or(is_text.then_some("string"))
        });
        match kind {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer(range("minimum", "maximum")),
            Some("number") => Self::Number(range("minimum", "maximum")),
            Some("string") => Self::Text {
                format: node.text("format").as_deref().and_then(Format::named),
                characters: range("minLength", "maxLength"),
            },
            Some("object") => match budget.inside(|budget| Field::all(node, budget)) {
                Ok(fields) if fields.is_empty() => json("its members have any names"),
                Ok(fields) => Self::Group(fields),
                Err(why) => json(why),
            },
            Some("array") => {
                let count = range("minItems", "maxItems");
                Self::array(node, count, budget).unwrap_or_else(json)
            }
            _ => json("it accepts any value"),
        }
    }

    fn array(
        node: &SchemaPart<'_>,
        count: Range,
        budget: &mut Budget,
    ) -> Result<Self, &'static str> {
        let Some(items) = node
            .member("items")
            .filter(|_| node.member("prefixItems").is_none())
        else {
            return Err("its items have any type");
        };
        let mut item = node.child(items);
        if item.unsupported.is_none()
            && let Some(choices) = item.choices()
        {
            let choices = choices_of(choices);
            return Ok(Self::Many { choices, count });
        }
        let item = budget.inside(|budget| Ok(Field::item(item, items, budget)))?;
        let item = Box::new(item);
        Ok(Self::List { item, count })
    }

    /// The choices. Empty for other types.
    pub fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Many { choices, .. } => choices,
            _ => &[],
        }
    }

    /// What may be typed, for example `whole number, 1 to 9`.
    pub fn describe(&self) -> String {
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
            Self::Group(_) => "JSON object".into(),
            Self::List { count, .. } => format!("JSON array{}", count.describe(" items")),
            Self::Json { .. } => "JSON".into(),
        }
    }

    /// Converts a line of text to a value, or says what to type instead.
    pub(super) fn parse(&self, text: &str) -> Result<Raw, String> {
        match self {
            Self::Text { format, characters } => {
                characters.check(text.chars().count() as f64, " characters")?;
                if let Some(format) = format {
                    format.check(text)?;
                }
                Ok(text_value(text))
            }
            Self::Integer(range) => {
                let number = integer(text).ok_or("type a whole number")?;
                range.check_text(&number, "")?;
                parsed(number)
            }
            Self::Number(range) => {
                let number = number(text).ok_or("type a number")?;
                range.check_text(&number, "")?;
                parsed(number)
            }
            Self::Boolean => match yes_or_no(text) {
                Some(yes) => parsed(yes.to_string()),
                None => Err("type yes or no".into()),
            },
            Self::One(choices) => choose(choices, text),
            Self::Many { choices, count } => {
                let chosen = text.split(',').map(|part| choose(choices, part.trim()));
                list(&chosen.collect::<Result<Vec<_>, _>>()?, *count)
            }
            Self::Group(_) => match RawRef::parse(text) {
                Ok(value) if value.is_object() => Ok(value.to_raw()),
                _ => Err("type a JSON object, such as {\"name\": \"value\"}".into()),
            },
            Self::List { .. } => match RawRef::parse(text) {
                Ok(value) if value.as_str().starts_with('[') => Ok(value.to_raw()),
                _ => Err("type a JSON array, such as [1, 2]".into()),
            },
            Self::Json { .. } => RawRef::parse(text)
                .map(RawRef::to_raw)
                .map_err(|error| format!("this is not JSON: {error}")),
        }
    }

    /// The value of a choice that a page sends back as JSON text.
    pub(super) fn pick(&self, text: &str) -> Result<Raw, String> {
        let found = self
            .choices()
            .iter()
            .find(|choice| choice.value.as_str() == text);
        found
            .map(|choice| choice.value.clone())
            .ok_or_else(|| "choose one of the values".into())
    }
}

/// An array of chosen values.
pub(super) fn list(values: &[Raw], count: Range) -> Result<Raw, String> {
    count.check(values.len() as f64, " choices")?;
    Ok(array(values))
}

/// The array of these values.
pub(super) fn array(values: &[Raw]) -> Raw {
    let texts: Vec<_> = values.iter().map(Raw::as_str).collect();
    Raw::parse(format!("[{}]", texts.join(","))).expect("an array of JSON values is JSON")
}

/// The JSON value of a text.
pub(super) fn text_value(text: &str) -> Raw {
    Raw::encode(text).expect("a text is JSON")
}

/// A value as a person reads it: a text without its quotation marks.
pub(super) fn plain(value: RawRef<'_>) -> String {
    let text = value.text().map(std::borrow::Cow::into_owned);
    text.unwrap_or_else(|| value.as_str().to_owned())
}

/// Reads `yes`, `no` and their usual short forms.
pub fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn parsed(text: String) -> Result<Raw, String> {
    Raw::parse(text).map_err(|_| "type a number".into())
}

/// The digits of a whole number of any size, as JSON has them.
fn integer(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.len() > MAX_DIGITS {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some("0".into()),
        digits => Some(format!("{sign}{digits}")),
    }
}

/// A number as JSON has it. A number that is JSON already keeps its spelling.
fn number(text: &str) -> Option<String> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    if text.len() > MAX_DIGITS {
        return None;
    }
    let is_json = RawRef::parse(text).is_ok_and(|raw| raw.as_str() == text);
    if is_json {
        return Some(text.to_owned());
    }
    serde_json::Number::from_f64(value).map(|number| number.to_string())
}

/// Finds the choice that `text` names by its value, its title or its number in the list.
fn choose(choices: &[Choice], text: &str) -> Result<Raw, String> {
    let named = choices
        .iter()
        .find(|choice| choice.text() == text || choice.title == text);
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

fn choices_of(found: Vec<(Raw, Option<String>)>) -> Vec<Choice> {
    let choices = found.into_iter().map(|(value, title)| Choice {
        title: title.unwrap_or_else(|| plain(value.borrow())),
        value,
    });
    choices.collect()
}

/// How many digits a number may have.
const MAX_DIGITS: usize = 400;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kind(schema: &Value) -> Kind {
        let schema = schema.to_string();
        let schema = RawRef::parse(&schema).unwrap();
        Kind::read(
            &mut SchemaPart::root(schema),
            schema,
            &mut Budget::default(),
        )
    }

    fn parsed_text(schema: &Value, text: &str) -> Result<String, String> {
        kind(schema).parse(text).map(|raw| raw.as_str().to_owned())
    }

    #[test]
    fn a_typed_text_becomes_a_value_of_the_kind() {
        let titled =
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bread"] });
        for (schema, text, expected) in [
            (json!({ "type": "string" }), "x y", "\"x y\""),
            (json!({ "type": "integer", "minimum": 1 }), "3", "3"),
            (json!({ "type": "integer" }), "-007", "-7"),
            (
                json!({ "type": "integer" }),
                "90071992547409931234567",
                "90071992547409931234567",
            ),
            (json!({ "type": "number" }), "2.50", "2.50"),
            (json!({ "type": "number" }), ".5", "0.5"),
            (json!({ "type": "boolean" }), "Yes", "true"),
            (json!({ "type": "boolean" }), "n", "false"),
            (titled.clone(), "Bread", "\"b\""),
            (titled, "2", "\"b\""),
            // Text that is a value and also a number in the list means the value.
            (json!({ "enum": ["2", "1"] }), "1", "\"1\""),
            (json!({ "enum": [10, 20, null] }), "20", "20"),
            (json!({ "const": "x" }), "x", "\"x\""),
            (
                json!({ "oneOf": [{ "const": "a", "title": "Apple" }] }),
                "a",
                "\"a\"",
            ),
            (
                json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
                "2, a",
                r#"["b","a"]"#,
            ),
            (
                json!({ "type": "array", "items": { "anyOf": [{ "const": "a" }] } }),
                "1",
                r#"["a"]"#,
            ),
            (json!({ "type": ["string", "null"] }), "x", "\"x\""),
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
                "4",
                "4",
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" } }),
                "[1, 2]",
                "[1, 2]",
            ),
            (
                json!({ "type": "object", "properties": { "a": {} } }),
                "{}",
                "{}",
            ),
            (json!({}), "[1]", "[1]"),
        ] {
            assert_eq!(
                parsed_text(&schema, text).as_deref(),
                Ok(expected),
                "{schema}"
            );
        }
    }

    #[test]
    fn an_invalid_text_is_refused_with_what_to_type() {
        for (schema, text, expected) in [
            (json!({ "type": "integer" }), "3.5", "type a whole number"),
            (json!({ "type": "integer" }), "", "type a whole number"),
            (json!({ "type": "integer", "maximum": 2 }), "3", "at most 2"),
            (json!({ "type": "number" }), "NaN", "type a number"),
            (json!({ "type": "number" }), "1e999", "type a number"),
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
                parsed_text(&schema, text),
                Err(expected.to_owned()),
                "{schema}"
            );
        }
        let object = json!({ "type": "object", "properties": { "a": {} } });
        assert!(
            parsed_text(&object, "[]")
                .unwrap_err()
                .starts_with("type a JSON object")
        );
        assert!(
            parsed_text(&json!({}), "{")
                .unwrap_err()
                .starts_with("this is not JSON")
        );
    }

    #[test]
    fn a_part_that_a_form_cannot_express_is_json() {
        for (schema, reason) in [
            (json!({}), "it accepts any value"),
            (json!(true), "it accepts any value"),
            (
                json!({ "type": ["string", "integer"] }),
                "it accepts values of several types",
            ),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
                "it accepts values of several types",
            ),
            (json!({ "type": "object" }), "its members have any names"),
            (json!({ "type": "array" }), "its items have any type"),
            (
                json!({ "$ref": "https://example.org/x" }),
                "its schema refers to another document",
            ),
            (json!({ "$ref": "#" }), "its schema contains itself"),
            (
                json!({ "allOf": [{}, {}] }),
                "its schema combines several schemas",
            ),
        ] {
            match kind(&schema) {
                Kind::Json { why, .. } => assert_eq!(why, reason, "{schema}"),
                other => panic!("{schema} is {other:?}"),
            }
        }
    }

    #[test]
    fn references_within_the_schema_are_followed() {
        let schema = json!({
            "properties": { "colour": { "$ref": "#/$defs/Colour", "title": "Of the cover" } },
            "type": "object",
            "$defs": { "Colour": { "enum": ["red", "blue"], "title": "Colour" } },
        });
        let Kind::Group(fields) = kind(&schema) else {
            panic!("an object is a group");
        };
        assert_eq!(fields[0].title, "Of the cover");
        assert_eq!(fields[0].kind.choices().len(), 2);
    }

    #[test]
    fn deep_and_large_schemas_are_bounded() {
        let mut deep = json!({ "type": "string" });
        for _ in 0..50 {
            deep = json!({ "type": "object", "properties": { "in": deep } });
        }
        let mut kind_of = kind(&deep);
        let mut depth = 0;
        while let Kind::Group(fields) = kind_of {
            kind_of = fields.into_iter().next().unwrap().kind;
            depth += 1;
        }
        assert!(
            matches!(kind_of, Kind::Json { .. }) && depth < 10,
            "{depth}"
        );
        let wide: serde_json::Map<_, _> = (0..5_000)
            .map(|at| (at.to_string(), json!({ "type": "string" })))
            .collect();
        let wide = json!({ "type": "object", "properties": wide });
        assert!(matches!(kind(&wide), Kind::Json { .. }));
    }
}
