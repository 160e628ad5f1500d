//! From a JSON value to the texts of a form. A value that the form would change is refused, so that
//! it stays JSON.

use outlast::wire::{Raw, RawRef};
use outlast_wire::object;

use super::entries::{self, Entries, MAX_ITEMS};
use super::field::Field;
use super::kind::Kind;
use super::read::shows_checkbox;

/// Why a value cannot be shown in the form: the pointer of the part, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", if .pointer.is_empty() { "the value" } else { .pointer.as_str() })]
pub struct Misfit {
    /// The part of the value.
    pub pointer: String,
    /// Why it cannot be shown.
    pub why: &'static str,
}

/// Fills the fields with their defaults.
pub(super) fn defaults(fields: &[Field], pointer: &str, entries: &mut Entries) {
    for field in fields {
        let pointer = entries::member(pointer, &field.name);
        default(field, &pointer, entries);
    }
}

fn default(field: &Field, pointer: &str, entries: &mut Entries) {
    if let Some(given) = &field.default {
        // A default that does not fit its own schema is ignored.
        let mut filled = entries.clone();
        if value(field, pointer, given.borrow(), &mut filled).is_ok() {
            *entries = filled;
            return;
        }
    }
    match &field.kind {
        Kind::Group(fields) => defaults(fields, pointer, entries),
        Kind::List { item, count } => {
            let least = if field.required {
                count.least().unwrap_or(0.0)
            } else {
                0.0
            };
            let least = (least.max(0.0) as usize).min(MAX_ITEMS);
            if least > 0 {
                entries.set(pointer, least.to_string());
                for at in 0..least {
                    default(item, &entries::item(pointer, at), entries);
                }
            }
        }
        _ => {}
    }
}

/// Fills the fields of a group with the members of an object.
pub(super) fn members(
    fields: &[Field],
    pointer: &str,
    given: RawRef<'_>,
    entries: &mut Entries,
) -> Result<(), Misfit> {
    let misfit = |why| Misfit {
        pointer: pointer.to_owned(),
        why,
    };
    let found = object::members(given).map_err(|_| misfit("it is not an object"))?;
    for field in fields {
        let member = entries::member(pointer, &field.name);
        match object::find(given, &[&field.name]) {
            Some(given) => value(field, &member, given, entries)?,
            // The form sends a checkbox as no. If there is no value, the default counts.
            None if shows_checkbox(field) => default(field, &member, entries),
            None => {}
        }
    }
    let is_named = |name: &str| fields.iter().any(|field| field.name == name);
    let mut others = Raw::empty_object();
    for member in found.iter().filter(|member| !is_named(&member.name)) {
        let set = object::set(others.borrow(), &[&member.name], member.value);
        others = set.map_err(|_| misfit("it is not an object"))?;
    }
    if others != Raw::empty_object() {
        entries.set(entries::others(pointer), others.as_str());
    }
    Ok(())
}

fn value(
    field: &Field,
    pointer: &str,
    given: RawRef<'_>,
    entries: &mut Entries,
) -> Result<(), Misfit> {
    let misfit = |why| {
        Err(Misfit {
            pointer: pointer.to_owned(),
            why,
        })
    };
    let is_default = field
        .default
        .as_ref()
        .is_some_and(|default| default.borrow() == given);
    if given.is_null() && !matches!(field.kind, Kind::Json { .. }) {
        return if is_default || (field.is_nullable && field.required) {
            Ok(())
        } else {
            misfit("it is null, and the form would leave it out")
        };
    }
    match &field.kind {
        Kind::Text { .. } => match given.text() {
            Some(text) if text.contains('\r') => misfit("it has a carriage return"),
            Some(text) if text.is_empty() && !is_default => {
                misfit("it is an empty text, and the form would leave it out")
            }
            Some(text) => {
                entries.set(pointer, text);
                Ok(())
            }
            None => misfit("it is not a text"),
        },
        Kind::Integer(_) | Kind::Number(_) => match given.number() {
            Some(_) => {
                entries.set(pointer, given.as_str());
                Ok(())
            }
            None => misfit("it is not a number"),
        },
        Kind::Boolean => match given.boolean() {
            Some(is_on) => {
                entries.set(pointer, is_on.to_string());
                Ok(())
            }
            None => misfit("it is not true or false"),
        },
        Kind::One(_) => match field.kind.pick(given.as_str()) {
            Ok(value) => {
                entries.set(pointer, value.as_str());
                Ok(())
            }
            Err(_) => misfit("it is not one of the choices"),
        },
        Kind::Many { .. } => {
            let Some(values) = object::elements(given) else {
                return misfit("it is not an array");
            };
            if values.is_empty() && !field.required && !is_default {
                return misfit("it is an empty array, and the form would leave it out");
            }
            let mut chosen = Vec::new();
            for value in values {
                match field.kind.pick(value.as_str()) {
                    Ok(value) if !chosen.iter().any(|one| one == value.as_str()) => {
                        chosen.push(value.as_str().to_owned());
                    }
                    Ok(_) => return misfit("it has a choice twice"),
                    Err(_) => return misfit("it has a value that is not one of the choices"),
                }
            }
            entries.set_all(pointer, chosen);
            Ok(())
        }
        Kind::Group(fields) => {
            entries.set(pointer, "on");
            members(fields, pointer, given, entries)
        }
        Kind::List { item, .. } => {
            let Some(values) = object::elements(given) else {
                return misfit("it is not an array");
            };
            if values.len() > MAX_ITEMS {
                return misfit("it has too many items for the form");
            }
            if values.is_empty() && !field.required && !is_default {
                return misfit("it is an empty array, and the form would leave it out");
            }
            entries.set(pointer, values.len().to_string());
            for (at, given) in values.into_iter().enumerate() {
                value(item, &entries::item(pointer, at), given, entries)?;
            }
            Ok(())
        }
        Kind::Json { .. } => {
            entries.set(pointer, given.as_str());
            Ok(())
        }
    }
}
