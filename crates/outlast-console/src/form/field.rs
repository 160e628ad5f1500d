//! One field of a form: its title, whether it is required, and how typed text becomes its value.

use outlast::wire::{Raw, RawRef};
use outlast_wire::object;

use super::budget::Budget;
use super::kind::Kind;
use super::schema::SchemaPart;

/// One field of a form.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name of the member.
    pub name: String,
    /// Its title, or its name.
    pub title: String,
    /// Its description.
    pub description: Option<String>,
    /// Whether the member must be present.
    pub required: bool,
    /// Whether `null` is a value.
    pub is_nullable: bool,
    /// The value of an untouched field, if the schema has one.
    pub default: Option<Raw>,
    /// Its type.
    pub kind: Kind,
}

impl Field {
    /// The members of an object, in the order of the schema.
    pub(super) fn all(
        object: &SchemaPart<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<Self>, &'static str> {
        let Some(properties) = object.member("properties") else {
            return Ok(Vec::new());
        };
        let required = object.member("required").and_then(object::elements);
        let required: Vec<_> = required
            .into_iter()
            .flatten()
            .filter_map(RawRef::text)
            .collect();
        let members = object::members(properties).unwrap_or_default();
        let mut fields: Vec<Self> = Vec::new();
        for member in members {
            if budget.is_used_up() {
                return Err("the form has too many fields");
            }
            // Of duplicates the last one counts.
            fields.retain(|field| field.name != member.name);
            let is_required = required.contains(&member.name);
            let node = object.child(member.value);
            fields.push(Self::read(
                &member.name,
                node,
                member.value,
                is_required,
                budget,
            ));
        }
        Ok(fields)
    }

    /// An item of an array.
    pub(super) fn item(node: SchemaPart<'_>, schema: RawRef<'_>, budget: &mut Budget) -> Self {
        Self::read("", node, schema, true, budget)
    }

    fn read(
        name: &str,
        mut node: SchemaPart<'_>,
        schema: RawRef<'_>,
        required: bool,
        budget: &mut Budget,
    ) -> Self {
        let kind = Kind::read(&mut node, schema, budget);
        Self {
            name: name.to_owned(),
            title: node.text("title").unwrap_or_else(|| name.to_owned()),
            description: node.text("description"),
            required,
            is_nullable: node.is_nullable,
            default: node.member("default").map(RawRef::to_raw),
            kind,
        }
    }

    /// Converts a typed line to the value of the field. `None` leaves the field out. An error says
    /// what to type instead.
    pub fn value(&self, text: &str) -> Result<Option<Raw>, String> {
        let text = text.trim();
        if !text.is_empty() {
            return self.kind.parse(text).map(Some);
        }
        match &self.default {
            Some(default) => Ok(Some(default.clone())),
            None => self.empty(),
        }
    }

    /// The value of a field in which nothing was typed.
    pub(super) fn empty(&self) -> Result<Option<Raw>, String> {
        match (self.required, self.is_nullable) {
            (true, true) => Ok(Some(RawRef::parse("null").expect("null is JSON").to_raw())),
            (true, false) => Err(REQUIRED.into()),
            (false, _) => Ok(None),
        }
    }

    /// The title, the description and what may be typed, in one line.
    pub fn describe(&self) -> String {
        let mut text = self.title.clone();
        if let Some(description) = &self.description {
            text = format!("{text}: {description}");
        }
        let mut notes = vec![self.kind.describe()];
        match &self.default {
            Some(default) => notes.push(format!("empty for {}", default.as_str())),
            None if self.required => notes.push("required".into()),
            None => notes.push("may be empty".into()),
        }
        format!("{text} [{}]", notes.join("; "))
    }
}

const REQUIRED: &str = "this field is required";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn field(name: &str, schema: &Value, required: bool) -> Field {
        let text = schema.to_string();
        let schema = RawRef::parse(&text).unwrap();
        Field::read(
            name,
            SchemaPart::root(schema),
            schema,
            required,
            &mut Budget::default(),
        )
    }

    #[test]
    fn a_field_describes_what_may_be_typed() {
        let colour = json!({ "type": "string", "title": "Colour", "description": "of the cover", "enum": ["r"], "default": "r" });
        assert_eq!(
            field("c", &colour, true).describe(),
            "Colour: of the cover [one choice; empty for \"r\"]"
        );
        let number = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        assert_eq!(
            field("n", &number, false).describe(),
            "n [whole number, 1 to 9; may be empty]"
        );
    }

    #[test]
    fn a_required_field_is_never_empty() {
        let schema = json!({ "type": "string" });
        let required = field("name", &schema, true);
        assert_eq!(required.value("  "), Err("this field is required".into()));
        let optional = field("name", &schema, false);
        assert_eq!(optional.value(""), Ok(None));
        let filled = field("name", &json!({ "type": "string", "default": "x" }), true);
        assert_eq!(filled.value("").unwrap().unwrap().as_str(), "\"x\"");
        let nullable = field("name", &json!({ "type": ["string", "null"] }), true);
        assert_eq!(nullable.value("").unwrap().unwrap().as_str(), "null");
    }
}
