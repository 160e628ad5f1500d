//! What a page shows of a form: one control for each field, with its text and its message.

use super::entries::{self, Entries, MAX_ITEMS};
use super::field::Field;
use super::format::Format;
use super::kind::{Kind, plain};
use super::range::Range;
use super::read::{Faults, shows_checkbox};

/// A field as a page shows it.
#[derive(Clone, Debug)]
pub struct FieldView {
    /// The name of its control: a JSON pointer.
    pub pointer: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub required: bool,
    /// What may be typed, if that is not obvious.
    pub hint: Option<String>,
    /// Why its text is wrong.
    pub fault: Option<String>,
    /// Its control.
    pub control: Control,
}

/// The control of a field.
#[derive(Clone, Debug)]
pub enum Control {
    /// One line of text.
    Line {
        /// The `type` of the HTML control.
        input: &'static str,
        /// The `inputmode` of the HTML control.
        mode: &'static str,
        /// The text.
        text: String,
        /// An example.
        example: &'static str,
    },
    /// Text of any number of lines.
    Lines(String),
    /// A checkbox.
    Checkbox(bool),
    /// One of several values.
    Select {
        /// The values.
        choices: Vec<ChoiceView>,
        /// Whether the value may be left out.
        allows_empty: bool,
    },
    /// Several of several values.
    Checks(Vec<ChoiceView>),
    /// The members of an object.
    Group {
        /// Its fields.
        fields: Vec<FieldView>,
        /// Whether it is used, if it may be left out.
        is_used: Option<bool>,
    },
    /// The items of an array.
    List {
        /// The items.
        items: Vec<FieldView>,
        /// Whether an item can be added.
        has_room: bool,
    },
    /// JSON.
    Json {
        /// The JSON text.
        text: String,
        /// Why this part is JSON.
        why: &'static str,
        /// Its schema.
        schema: String,
    },
}

/// A choice as a page shows it.
#[derive(Clone, Debug)]
pub struct ChoiceView {
    /// Its value as JSON text.
    pub value: String,
    /// Its title.
    pub title: String,
    /// Whether it is chosen.
    pub is_chosen: bool,
}

/// The fields of a group.
pub(super) fn fields(
    fields: &[Field],
    pointer: &str,
    entries: &Entries,
    faults: &Faults,
) -> Vec<FieldView> {
    let mut views: Vec<_> = fields
        .iter()
        .map(|field| {
            view(
                field,
                entries::member(pointer, &field.name),
                entries,
                faults,
            )
        })
        .collect();
    let pointer = entries::others(pointer);
    if let Some(text) = entries
        .text(&pointer)
        .filter(|text| !text.trim().is_empty())
    {
        views.push(FieldView {
            title: "Other members".into(),
            description: Some("Members that the schema does not name, as a JSON object.".into()),
            required: false,
            hint: None,
            fault: faults.get(&pointer).cloned(),
            control: Control::Lines(text.to_owned()),
            pointer,
        });
    }
    views
}

fn view(field: &Field, pointer: String, entries: &Entries, faults: &Faults) -> FieldView {
    let text = || entries.text(&pointer).unwrap_or_default().to_owned();
    let control = match &field.kind {
        Kind::Text { format, characters } => text_control(*format, *characters, text()),
        Kind::Integer(_) => line("text", "numeric", text(), ""),
        Kind::Number(_) => line("text", "decimal", text(), ""),
        Kind::Boolean if shows_checkbox(field) => Control::Checkbox(text() == "true"),
        Kind::Boolean => Control::Select {
            choices: [("true", "Yes"), ("false", "No")]
                .map(|(value, title)| ChoiceView {
                    value: value.into(),
                    title: title.into(),
                    is_chosen: text() == value,
                })
                .into(),
            allows_empty: true,
        },
        Kind::One(_) => Control::Select {
            choices: choices(field, entries.all(&pointer)),
            // Nothing is chosen on behalf of the user.
            allows_empty: true,
        },
        Kind::Many { .. } => Control::Checks(choices(field, entries.all(&pointer))),
        Kind::Group(members) => Control::Group {
            fields: fields(members, &pointer, entries, faults),
            is_used: (!field.required).then(|| text() == "on"),
        },
        Kind::List { item, count } => {
            let items = entries.count(&pointer);
            let most = count.most().map_or(MAX_ITEMS, |most| most as usize);
            let item_view = |at: usize| {
                let mut shown = view(item, entries::item(&pointer, at), entries, faults);
                if shown.title.is_empty() {
                    shown.title = format!("Item {}", at + 1);
                }
                shown
            };
            Control::List {
                items: (0..items).map(item_view).collect(),
                has_room: items < most.min(MAX_ITEMS),
            }
        }
        Kind::Json { why, schema } => Control::Json {
            text: text(),
            why,
            schema: pretty(schema.as_str()),
        },
    };
    FieldView {
        title: field.title.clone(),
        description: field.description.clone(),
        required: field.required,
        hint: hint(field),
        fault: faults.get(&pointer).cloned(),
        control,
        pointer,
    }
}

fn text_control(format: Option<Format>, characters: Range, text: String) -> Control {
    match format {
        Some(Format::Email) => line("email", "email", text, "ada@example.org"),
        Some(Format::Uri) => line("url", "url", text, "https://example.org"),
        Some(Format::Date) => line("date", "text", text, ""),
        Some(Format::DateTime) => line("text", "text", text, "2026-07-28T09:30:00Z"),
        None => match characters.most() {
            Some(most) if most <= MAX_LINE_CHARS && !text.contains('\n') => {
                line("text", "text", text, "")
            }
            _ => Control::Lines(text),
        },
    }
}

fn line(input: &'static str, mode: &'static str, text: String, example: &'static str) -> Control {
    Control::Line {
        input,
        mode,
        text,
        example,
    }
}

fn choices(field: &Field, chosen: &[String]) -> Vec<ChoiceView> {
    let view = |choice: &super::kind::Choice| ChoiceView {
        value: choice.value.as_str().to_owned(),
        title: choice.title.clone(),
        is_chosen: chosen.iter().any(|text| text == choice.value.as_str()),
    };
    field.kind.choices().iter().map(view).collect()
}

/// What may be typed, if the control does not show it.
fn hint(field: &Field) -> Option<String> {
    let mut notes = Vec::new();
    match &field.kind {
        Kind::Text { format, characters } => {
            let limits = characters.describe(" characters");
            if let Some(Format::DateTime) = format {
                notes.push("date and time with a time zone".to_owned());
            }
            if !limits.is_empty() {
                notes.push(limits.trim_start_matches(", ").to_owned());
            }
        }
        Kind::Integer(_) | Kind::Number(_) => notes.push(field.kind.describe()),
        Kind::Many { count, .. } => {
            let limits = count.describe(" choices");
            if !limits.is_empty() {
                notes.push(limits.trim_start_matches(", ").to_owned());
            }
        }
        Kind::List { count, .. } => {
            let limits = count.describe(" items");
            if !limits.is_empty() {
                notes.push(limits.trim_start_matches(", ").to_owned());
            }
        }
        Kind::Boolean | Kind::One(_) | Kind::Group(_) | Kind::Json { .. } => {}
    }
    if let Some(default) = &field.default
        && !matches!(field.kind, Kind::Group(_) | Kind::List { .. })
        && !default.borrow().is_null()
    {
        notes.push(format!("default {}", plain(default.borrow())));
    }
    (!notes.is_empty()).then(|| notes.join(", "))
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    let text = value
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| json.to_owned())
}

/// The longest text that has a control of one line.
const MAX_LINE_CHARS: f64 = 80.0;
