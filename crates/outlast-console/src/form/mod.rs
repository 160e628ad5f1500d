//! Forms made from JSON Schemas: the arguments of tools and form elicitations (V1-ELIC-16).
//!
//! Fields keep the order of the schema. On a terminal, each [`Field`] describes itself and converts
//! a typed line to its value. On a page, [`Form::view`] says what to show for the [`Entries`] that
//! were typed, and [`Form::read`] converts them to one JSON value, or says for each field why it is
//! wrong. A part of a schema that a form cannot express is edited as JSON. The depth and the number
//! of fields are bounded. Values are JSON text: large integers stay exact.

mod budget;
mod check;
mod entries;
mod field;
mod fill;
mod format;
mod kind;
mod range;
mod read;
mod schema;
mod view;

use outlast::wire::{Raw, RawRef};

use budget::Budget;
use schema::SchemaPart;

pub use entries::{Entries, OTHER_MEMBERS};
pub use field::Field;
pub use fill::Misfit;
pub use format::Format;
pub use kind::{Choice, Kind, yes_or_no};
pub use range::Range;
pub use read::Faults;
pub use view::{ChoiceView, Control, FieldView};

/// A form for an object.
#[derive(Clone, Debug)]
pub struct Form {
    /// Its fields, in the order of the schema.
    pub fields: Vec<Field>,
    schema: Raw,
    /// Why the value is edited as JSON only, if a form cannot express its schema.
    pub json_only: Option<&'static str>,
}

impl Form {
    /// Reads the schema of an object. A schema that cannot be read has no fields.
    pub fn of_schema(schema: RawRef<'_>) -> Self {
        let too_large = schema.as_str().len() > MAX_SCHEMA_BYTES;
        let node = SchemaPart::root(schema);
        let fields = match node.unsupported {
            _ if too_large => Err("its schema is too large"),
            Some(why) if schema.is_object() => Err(why),
            _ => Field::all(&node, &mut Budget::default()),
        };
        Self {
            json_only: fields.as_ref().err().copied(),
            fields: fields.unwrap_or_default(),
            schema: schema.to_raw(),
        }
    }

    /// What an untouched form contains: the defaults.
    pub fn defaults(&self) -> Entries {
        let mut entries = Entries::default();
        fill::defaults(&self.fields, "", &mut entries);
        entries
    }

    /// What the form contains for a value. Fails if the form would change the value.
    pub fn entries(&self, value: RawRef<'_>) -> Result<Entries, Misfit> {
        let mut entries = Entries::default();
        fill::members(&self.fields, "", value, &mut entries)?;
        Ok(entries)
    }

    /// The value of what was typed, which may still be incomplete.
    pub fn draft(&self, entries: &Entries) -> Raw {
        read::members(&self.fields, "", entries, &mut Faults::new())
    }

    /// The value of what was typed, or a message for each field that is wrong.
    pub fn read(&self, entries: &Entries) -> Result<Raw, Faults> {
        let mut faults = Faults::new();
        let value = read::members(&self.fields, "", entries, &mut faults);
        if faults.is_empty() {
            faults = self.check(value.borrow());
        }
        if faults.is_empty() {
            Ok(value)
        } else {
            Err(faults)
        }
    }

    /// What is wrong with a value, by the pointer of its part.
    pub fn check(&self, value: RawRef<'_>) -> Faults {
        check::faults(self.schema.borrow(), value)
    }

    /// What to show.
    pub fn view(&self, entries: &Entries, faults: &Faults) -> Vec<FieldView> {
        view::fields(&self.fields, "", entries, faults)
    }
}

/// The largest schema of a form.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
