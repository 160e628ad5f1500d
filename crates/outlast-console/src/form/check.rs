//! Validates a whole value against its schema. Each message belongs to the pointer of a part.

use jsonschema::error::ValidationErrorKind;
use outlast::wire::RawRef;
use serde_json::Value;

use super::entries;
use super::read::Faults;

/// What is wrong with `value`. A schema that cannot be used, such as one that refers to another
/// document, rejects nothing.
pub(super) fn faults(schema: RawRef<'_>, value: RawRef<'_>) -> Faults {
    let (Ok(schema), Ok(value)) = (schema.open::<Value>(), value.open::<Value>()) else {
        return Faults::new();
    };
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema);
    let Ok(validator) = validator else {
        return Faults::new();
    };
    let mut faults = Faults::new();
    for error in validator.iter_errors(&value).take(MAX_FAULTS) {
        let at = error.instance_path().as_str();
        let (pointer, why) = match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                (
                    entries::member(at, name),
                    "this member is required".to_owned(),
                )
            }
            _ => (at.to_owned(), error.to_string()),
        };
        faults.entry(pointer).or_insert(why);
    }
    faults
}

/// How many messages a form shows.
const MAX_FAULTS: usize = 50;
