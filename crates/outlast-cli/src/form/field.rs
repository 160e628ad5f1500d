//! One field of a form: its title, whether it is required, and how typed text becomes its value.

use serde_json::Value;

use super::kind::Kind;

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) kind: Kind,
}

impl Field {
    pub(super) fn read(name: &str, property: &Value, required: bool) -> Self {
        let text = |member: &str| property[member].as_str().map(str::to_owned);
        Self {
            name: name.to_owned(),
            title: text("title").unwrap_or_else(|| name.to_owned()),
            description: text("description"),
            required,
            default: property.get("default").cloned(),
            kind: Kind::read(property),
        }
    }

    /// Converts typed text to the value of the field. `None` leaves the field out. An error says
    /// what to type instead.
    pub(crate) fn value(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if !text.is_empty() {
            return self.kind.parse(text).map(Some);
        }
        match &self.default {
            Some(default) => Ok(Some(default.clone())),
            None if self.required => Err("this field is required".into()),
            None => Ok(None),
        }
    }

    /// The title, the description and what may be typed, in one line.
    pub(crate) fn describe(&self) -> String {
        let mut text = self.title.clone();
        if let Some(description) = &self.description {
            text = format!("{text}: {description}");
        }
        let mut notes = vec![self.kind.describe()];
        match &self.default {
            Some(default) => notes.push(format!("empty for {default}")),
            None if self.required => notes.push("required".into()),
            None => notes.push("may be empty".into()),
        }
        format!("{text} [{}]", notes.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_describes_what_may_be_typed() {
        let colour = json!({ "type": "string", "title": "Colour", "description": "of the cover", "enum": ["r"], "default": "r" });
        assert_eq!(
            Field::read("c", &colour, true).describe(),
            "Colour: of the cover [one choice; empty for \"r\"]"
        );
        let number = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        assert_eq!(
            Field::read("n", &number, false).describe(),
            "n [whole number, 1 to 9; may be empty]"
        );
    }

    #[test]
    fn a_required_field_is_never_empty() {
        let property = json!({ "type": "string" });
        let required = Field::read("name", &property, true);
        assert_eq!(required.value("  "), Err("this field is required".into()));
        let optional = Field::read("name", &property, false);
        assert_eq!(optional.value(""), Ok(None));
        let filled = Field::read("name", &json!({ "type": "string", "default": "x" }), true);
        assert_eq!(filled.value(""), Ok(Some(json!("x"))));
    }
}
