//! Elicitation whose form is a Rust type.
//!
//! The protocol allows only flat forms: texts, numbers, booleans, and choices of texts. The form
//! follows from the JSON Schema of the type; what a form cannot have is left out or refused.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::typed::root_schema;
use super::{ElicitError, ToolContext};

/// What the user did with a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user filled it in.
    Accepted(T),
    /// The user refused.
    Declined,
    /// The user closed it without a decision.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The form, if the user filled it in.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(form) => Some(form),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

impl ToolContext {
    /// Asks the user of the client to fill in a `T`.
    ///
    /// `T` is a struct whose fields are texts, numbers, booleans, enums without data, or lists of
    /// such enums; each can be an `Option`. The client shows doc comments as descriptions.
    ///
    /// ```
    /// use outlast::prelude::*;
    /// use outlast::schemars::{self, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Confirm {
    ///     /// Delete the file for good.
    ///     agree: bool,
    /// }
    ///
    /// let delete = Tool::new("delete", "Deletes the file", |_, cx| async move {
    ///     let form = cx.elicit::<Confirm>("Delete it?").await?.accepted();
    ///     let agreed = form.is_some_and(|form| form.agree);
    ///     Ok(text(if agreed { "deleted" } else { "kept" }))
    /// });
    /// ```
    pub async fn elicit<T>(&self, message: &str) -> Result<Elicited<T>, ElicitError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = form_schema(&root_schema::<T>()).map_err(ElicitError::NotAForm)?;
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        let mut response = self.elicit_raw(params).await?;
        match response["action"].as_str() {
            Some("accept") => {
                let content = match response["content"].take() {
                    Value::Null => json!({}),
                    content => content,
                };
                let form = serde_path_to_error::deserialize(content)
                    .map_err(|error| ElicitError::Unreadable(error.to_string()))?;
                Ok(Elicited::Accepted(form))
            }
            Some("decline") => Ok(Elicited::Declined),
            _ => Ok(Elicited::Cancelled),
        }
    }
}

/// The form for the schema of a type. The error names what a form cannot have.
fn form_schema(schema: &Value) -> Result<Value, String> {
    if schema["type"] != "object" || schema.get("oneOf").is_some() {
        return Err("the type is not a struct with named fields".into());
    }
    let mut properties = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let converted = field_schema(field).ok_or_else(|| {
            format!("the field `{name}` is not a text, a number, a boolean or a choice of texts")
        })?;
        properties.insert(name.clone(), converted);
    }
    let mut form = json!({ "type": "object", "properties": properties });
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

fn field_schema(field: &Value) -> Option<Value> {
    let inner = without_null(field);
    let mut converted = match kind(inner)? {
        "boolean" => json!({ "type": "boolean" }),
        number @ ("integer" | "number") => {
            keep(json!({ "type": number }), inner, &["minimum", "maximum"])
        }
        "string" => text_schema(inner)?,
        "array" => {
            let choice = text_schema(&inner["items"])?;
            let items = match (choice.get("enum"), choice.get("oneOf")) {
                (Some(_), _) => choice,
                (None, Some(titled)) => json!({ "anyOf": titled }),
                (None, None) => return None,
            };
            let list = json!({ "type": "array", "items": items });
            keep(list, inner, &["minItems", "maxItems"])
        }
        _ => return None,
    };
    for from in [inner, field] {
        converted = keep(converted, from, &["title", "description", "default"]);
    }
    Some(converted)
}

/// A text, or a choice of texts.
fn text_schema(schema: &Value) -> Option<Value> {
    let texts = |values: &Vec<Value>| values.iter().filter(|value| value.is_string()).count();
    if let Some(choices) = schema["oneOf"].as_array() {
        let titled = choices.iter().map(|choice| {
            let value = choice["const"].as_str()?;
            let title = choice["description"].as_str().unwrap_or(value);
            Some(json!({ "const": value, "title": title }))
        });
        return Some(json!({ "type": "string", "oneOf": titled.collect::<Option<Vec<_>>>()? }));
    }
    if let Some(choices) = schema["enum"].as_array() {
        let nulls = choices.iter().filter(|value| value.is_null()).count();
        let strings = choices.iter().filter(|value| value.is_string());
        let strings: Vec<_> = strings.collect();
        let all = texts(choices) + nulls == choices.len();
        return all.then(|| json!({ "type": "string", "enum": strings }));
    }
    if let Some(only) = schema["const"].as_str() {
        return Some(json!({ "type": "string", "enum": [only] }));
    }
    if kind(schema)? != "string" {
        return None;
    }
    let text = keep(
        json!({ "type": "string" }),
        schema,
        &["minLength", "maxLength"],
    );
    let known = ["email", "uri", "date", "date-time"];
    let format = schema["format"]
        .as_str()
        .filter(|name| known.contains(name));
    Some(match format {
        Some(_) => keep(text, schema, &["format"]),
        None => text,
    })
}

/// The type of a value, `null` aside. A choice of constants is a text.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => schema
            .get("oneOf")
            .or(schema.get("const"))
            .map(|_| "string"),
    }
}

/// The schema inside of a choice between it and `null`.
fn without_null(schema: &Value) -> &Value {
    let choices = schema["anyOf"].as_array();
    match choices.map(Vec::as_slice) {
        Some([inner, null]) | Some([null, inner]) if null["type"] == "null" => inner,
        _ => schema,
    }
}

/// Adds the members of `from` with these names, unless they are `null`.
fn keep(mut schema: Value, from: &Value, names: &[&str]) -> Value {
    for name in names {
        if let Some(value) = from.get(*name).filter(|value| !value.is_null()) {
            schema[*name] = value.clone();
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Order {
        /// Who gets it.
        name: String,
        amount: u32,
        price: Option<f64>,
        #[serde(default)]
        gift: bool,
        size: Size,
        colour: Option<Colour>,
        extras: Vec<Size>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Colour {
        /// Dark red.
        Red,
        /// Light blue.
        Blue,
    }

    #[test]
    fn a_form_has_only_what_the_protocol_allows() {
        let form = form_schema(&root_schema::<Order>()).unwrap();
        let properties = json!({
            "name": { "type": "string", "description": "Who gets it." },
            "amount": { "type": "integer", "minimum": 0 },
            "price": { "type": "number" },
            "gift": { "type": "boolean", "default": false },
            "size": { "type": "string", "enum": ["small", "large"] },
            "colour": { "type": "string", "oneOf": [
                { "const": "Red", "title": "Dark red." },
                { "const": "Blue", "title": "Light blue." },
            ] },
            "extras": { "type": "array", "items": { "type": "string", "enum": ["small", "large"] } },
        });
        assert_eq!(form["properties"], properties);
        assert_eq!(
            form["required"],
            json!(["name", "amount", "size", "extras"])
        );
    }

    #[test]
    fn a_nested_field_is_refused_by_name() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct Nested {
            inner: Inner,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct Inner {
            text: String,
        }
        let refused = form_schema(&root_schema::<Nested>()).unwrap_err();
        assert!(refused.contains("`inner`"), "{refused}");
        let refused = form_schema(&root_schema::<u32>()).unwrap_err();
        assert!(refused.contains("not a struct"), "{refused}");
    }
}
