//! A form as a flat list of parts, which a template can show without recursion.

use axum::Form as FormBody;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;

use crate::error::ConsoleError;
use crate::form::{ChoiceView, Control, Entries, FieldView};

/// A part of a form, in the order of the page.
pub(crate) enum FormPart {
    /// A group or a list begins.
    Open(Opening),
    /// The last group or list ends.
    Close {
        /// The pointer of the list to which an item can be added.
        add: Option<String>,
        title: String,
    },
    /// One control.
    Field(FieldPart),
}

/// The beginning of a group or of a list.
pub(crate) struct Opening {
    pub(crate) id: String,
    pub(crate) pointer: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) fault: Option<String>,
    pub(crate) required: bool,
    /// Whether the group is used, if it may be left out.
    pub(crate) is_used: Option<bool>,
    /// How many items a list has.
    pub(crate) items: Option<usize>,
    /// Whether it is an item that can be removed.
    pub(crate) is_item: bool,
}

/// One control.
pub(crate) struct FieldPart {
    pub(crate) id: String,
    pub(crate) view: FieldView,
    /// Whether it is an item that can be removed.
    pub(crate) is_item: bool,
}

impl FieldPart {
    /// The elements that describe the control.
    pub(crate) fn described_by(&self) -> String {
        let mut ids = Vec::new();
        if self.view.description.is_some() || self.view.hint.is_some() {
            ids.push(format!("{}-hint", self.id));
        }
        if self.view.fault.is_some() {
            ids.push(format!("{}-fault", self.id));
        }
        ids.join(" ")
    }

    pub(crate) fn line(&self) -> Option<(&'static str, &'static str, &str, &'static str)> {
        match &self.view.control {
            Control::Line {
                input,
                mode,
                text,
                example,
            } => Some((input, mode, text, example)),
            _ => None,
        }
    }

    pub(crate) fn lines(&self) -> Option<&str> {
        match &self.view.control {
            Control::Lines(text) => Some(text),
            _ => None,
        }
    }

    /// The number of rows that show the text.
    pub(crate) fn rows(&self) -> usize {
        let text = self.lines().or_else(|| self.json().map(|(text, ..)| text));
        let lines = text.map_or(1, |text| text.lines().count());
        let least = if self.json().is_some() { 3 } else { 1 };
        lines.clamp(least, 12)
    }

    pub(crate) fn checkbox(&self) -> Option<bool> {
        match self.view.control {
            Control::Checkbox(is_on) => Some(is_on),
            _ => None,
        }
    }

    pub(crate) fn select(&self) -> Option<(&[ChoiceView], bool)> {
        match &self.view.control {
            Control::Select {
                choices,
                allows_empty,
            } => Some((choices, *allows_empty)),
            _ => None,
        }
    }

    pub(crate) fn checks(&self) -> Option<&[ChoiceView]> {
        match &self.view.control {
            Control::Checks(choices) => Some(choices),
            _ => None,
        }
    }

    pub(crate) fn json(&self) -> Option<(&str, &str, &str)> {
        match &self.view.control {
            Control::Json { text, why, schema } => Some((text, why, schema)),
            _ => None,
        }
    }
}

/// The parts of a form. Their ids begin with `prefix`.
pub(crate) fn parts(fields: Vec<FieldView>, prefix: &str) -> Vec<FormPart> {
    let mut parts = Vec::new();
    add(fields, prefix, false, &mut parts);
    parts
}

fn add(fields: Vec<FieldView>, prefix: &str, are_items: bool, parts: &mut Vec<FormPart>) {
    for view in fields {
        let id = format!("{prefix}-{}", parts.len());
        match view.control {
            Control::Group { fields, is_used } => {
                let opening = Opening {
                    is_used: if are_items { None } else { is_used },
                    items: None,
                    is_item: are_items,
                    ..Opening::of(
                        id,
                        FieldView {
                            control: Control::Checkbox(false),
                            ..view
                        },
                    )
                };
                let title = opening.title.clone();
                parts.push(FormPart::Open(opening));
                add(fields, prefix, false, parts);
                parts.push(FormPart::Close { add: None, title });
            }
            Control::List { items, has_room } => {
                let opening = Opening {
                    items: Some(items.len()),
                    is_item: are_items,
                    ..Opening::of(
                        id,
                        FieldView {
                            control: Control::Checkbox(false),
                            ..view
                        },
                    )
                };
                let (title, pointer) = (opening.title.clone(), opening.pointer.clone());
                parts.push(FormPart::Open(opening));
                add(items, prefix, true, parts);
                let add = has_room.then_some(pointer);
                parts.push(FormPart::Close { add, title });
            }
            _ => parts.push(FormPart::Field(FieldPart {
                id,
                view,
                is_item: are_items,
            })),
        }
    }
}

impl Opening {
    fn of(id: String, view: FieldView) -> Self {
        Self {
            id,
            pointer: view.pointer,
            title: view.title,
            description: view.description,
            hint: view.hint,
            fault: view.fault,
            required: view.required,
            is_used: None,
            items: None,
            is_item: false,
        }
    }
}

/// The fields of a submitted form, in their order.
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// The text of a field; empty if it is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map_or("", |(_, text)| text)
    }

    /// What was typed into the fields of a schema. Their names begin with a slash.
    pub(crate) fn entries(&self) -> Entries {
        let typed = self.0.iter().filter(|(name, _)| name.starts_with('/'));
        typed.cloned().collect()
    }
}

impl<S: Send + Sync> FromRequest<S> for FormFields {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ConsoleError> {
        match FormBody::<Vec<(String, String)>>::from_request(request, state).await {
            Ok(FormBody(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(ConsoleError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("the form cannot be read: {error}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast::wire::RawRef;

    use super::*;
    use crate::form::{Faults, Form};

    #[test]
    fn groups_and_lists_open_and_close() {
        let schema = r#"{"type":"object","properties":{
            "a":{"type":"object","properties":{"b":{"type":"string"}}},
            "c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"integer"}}}}}}"#;
        let form = Form::of_schema(RawRef::parse(schema).unwrap());
        let mut entries = Entries::default();
        entries.set("/c", "2");
        let parts = parts(form.view(&entries, &Faults::new()), "f");
        let shape: String = parts
            .iter()
            .map(|part| match part {
                FormPart::Open(_) => '(',
                FormPart::Close { .. } => ')',
                FormPart::Field(_) => '.',
            })
            .collect();
        assert_eq!(shape, "(.)((.)(.))");
    }
}
