//! A form made from the JSON Schema of a form elicitation (V1-ELIC-16).
//!
//! Fields keep the order of the schema. Each [`Field`] describes itself and converts typed text to
//! a JSON value, or says why the text is invalid. `terminal_host/form.rs` shows a form on the
//! terminal.

mod field;
mod kind;

use indexmap::IndexMap;
use outlast::wire::RawRef;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use field::Field;
pub(crate) use kind::Kind;

/// The fields of a form, in the order of its schema.
pub(crate) struct Form {
    pub(crate) fields: Vec<Field>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    properties: IndexMap<String, Value>,
    required: Vec<String>,
}

impl Form {
    /// Reads the schema of an object. A schema that cannot be read has no fields.
    pub(crate) fn read(schema: RawRef<'_>) -> Self {
        let schema: Schema = schema.open().unwrap_or_default();
        let required = &schema.required;
        let fields = schema.properties.iter().map(|(name, property)| {
            let is_required = required.iter().any(|one| one == name);
            Field::read(name, property, is_required)
        });
        Self {
            fields: fields.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        Form::read(RawRef::parse(text).expect("the schema is JSON"))
    }

    #[test]
    fn fields_keep_the_order_of_the_schema() {
        let form = form(
            r#"{"type":"object","properties":{"name":{},"check":{},"email":{},"age":{}},"required":["name"]}"#,
        );
        let names: Vec<_> = form.fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["name", "check", "email", "age"]);
        let required: Vec<_> = form.fields.iter().map(|field| field.required).collect();
        assert_eq!(required, [true, false, false, false]);
    }

    #[test]
    fn a_schema_without_properties_has_no_fields() {
        assert!(form(r#"{"type":"object"}"#).fields.is_empty());
        assert!(form("7").fields.is_empty());
    }
}
