//! From what was typed to the JSON value, with a message for each field that is wrong.

use std::collections::BTreeMap;

use outlast::wire::{Raw, RawRef};
use outlast_wire::object;

use super::entries::{self, Entries};
use super::field::Field;
use super::kind::{self, Kind};

/// A message for each field that is wrong, by its pointer.
pub type Faults = BTreeMap<String, String>;

/// Reads the members of a group.
pub(super) fn members(
    fields: &[Field],
    pointer: &str,
    entries: &Entries,
    faults: &mut Faults,
) -> Raw {
    let mut members = Vec::new();
    for field in fields {
        let pointer = entries::member(pointer, &field.name);
        if let Some(value) = value(field, &pointer, entries, faults) {
            let name = kind::text_value(&field.name);
            members.push(format!("{}:{}", name.as_str(), value.as_str()));
        }
    }
    let named = Raw::parse(format!("{{{}}}", members.join(",")));
    let named = named.expect("members of JSON values are an object");
    let pointer = entries::others(pointer);
    match entries.text(&pointer).map(str::trim) {
        None | Some("") => named,
        Some(text) => match with_others(&named, text) {
            Ok(all) => all,
            Err(why) => {
                faults.insert(pointer, why);
                named
            }
        },
    }
}

/// Adds members that the form does not show.
fn with_others(named: &Raw, text: &str) -> Result<Raw, String> {
    let others = RawRef::parse(text).map_err(|error| format!("this is not JSON: {error}"))?;
    let others = object::members(others).map_err(|_| "type a JSON object".to_owned())?;
    let mut all = named.clone();
    for other in others {
        if object::find(named.borrow(), &[&other.name]).is_some() {
            return Err(format!("the member {} has a field of its own", other.name));
        }
        let set = object::set(all.borrow(), &[&other.name], other.value);
        all = set.map_err(|_| "type a JSON object".to_owned())?;
    }
    Ok(all)
}

/// The value of a field; `None` if it is left out or wrong.
fn value(field: &Field, pointer: &str, entries: &Entries, faults: &mut Faults) -> Option<Raw> {
    let found = match &field.kind {
        Kind::Group(fields) => {
            let is_used = field.required || entries.text(pointer) == Some("on");
            if is_used {
                return Some(members(fields, pointer, entries, faults));
            }
            return None;
        }
        Kind::List { item, count } => {
            let items = entries.count(pointer);
            if items == 0 && !field.required {
                return None;
            }
            if let Err(why) = count.check(items as f64, " items") {
                faults.insert(pointer.to_owned(), why);
            }
            let values = (0..items)
                .filter_map(|at| value(item, &entries::item(pointer, at), entries, faults));
            return Some(kind::array(&values.collect::<Vec<_>>()));
        }
        Kind::Many { count, .. } => {
            let chosen = entries.all(pointer).iter().filter(|text| !text.is_empty());
            let chosen: Result<Vec<_>, _> = chosen.map(|text| field.kind.pick(text)).collect();
            match chosen {
                Ok(chosen) if chosen.is_empty() && !field.required => Ok(None),
                Ok(chosen) => kind::list(&chosen, *count).map(Some),
                Err(why) => Err(why),
            }
        }
        Kind::Boolean if shows_checkbox(field) => {
            let is_on = entries.text(pointer) == Some("true");
            return Some(Raw::encode(&is_on).expect("a boolean is JSON"));
        }
        Kind::Boolean | Kind::One(_) => match entries.text(pointer) {
            None | Some("") => field.empty(),
            Some(text) if matches!(field.kind, Kind::Boolean) => field.kind.parse(text).map(Some),
            Some(text) => field.kind.pick(text).map(Some),
        },
        // White space belongs to a text.
        Kind::Text { format: None, .. } => match entries.text(pointer) {
            None | Some("") => field.empty(),
            Some(text) => field.kind.parse(text).map(Some),
        },
        Kind::Text { .. } | Kind::Integer(_) | Kind::Number(_) | Kind::Json { .. } => {
            match entries.text(pointer).map(str::trim) {
                None | Some("") => field.empty(),
                Some(text) => field.kind.parse(text).map(Some),
            }
        }
    };
    found.unwrap_or_else(|why| {
        faults.insert(pointer.to_owned(), why);
        None
    })
}

/// Whether a yes or no is a checkbox. One without a default that may be left out has three states.
pub(super) fn shows_checkbox(field: &Field) -> bool {
    let has_default = field
        .default
        .as_ref()
        .is_some_and(|value| value.borrow().boolean().is_some());
    has_default || (field.required && !field.is_nullable)
}
