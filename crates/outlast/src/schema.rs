//! Validates values against JSON Schemas of a peer.

use outlast_wire::RawRef;
use serde_json::Value;

/// Why `value` does not match `schema`, with up to three errors; `None` if it does. A schema that
/// cannot be used, such as one that refers to another document, rejects nothing.
pub(crate) fn misfit(schema: RawRef<'_>, value: RawRef<'_>) -> Option<String> {
    let (Ok(schema), Ok(value)) = (schema.open::<Value>(), value.open::<Value>()) else {
        return Some("it is not JSON".into());
    };
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema);
    let validator = match validator {
        Ok(validator) => validator,
        Err(error) => {
            tracing::debug!(%error, "ignoring an unusable JSON Schema of a peer");
            return None;
        }
    };
    let faults = validator.iter_errors(&value).take(MOST_FAULTS);
    let faults: Vec<_> = faults
        .map(|fault| {
            // The value can be a secret.
            let what = fault.masked_with("it");
            match fault.instance_path().as_str() {
                "" => what.to_string(),
                path => format!("`{path}`: {what}"),
            }
        })
        .collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// The maximum of reported errors.
const MOST_FAULTS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(schema: &str, value: &str) -> Option<String> {
        misfit(
            RawRef::parse(schema).unwrap(),
            RawRef::parse(value).unwrap(),
        )
    }

    #[test]
    fn a_fault_is_named_with_its_place_and_without_the_value() {
        let schema = r#"{"type":"object","properties":{"age":{"type":"integer"},"mail":{"type":"string","format":"email"}},"required":["age"]}"#;
        assert_eq!(judged(schema, r#"{"age":7,"mail":"a@b.org"}"#), None);
        let why = judged(schema, r#"{"age":"secret"}"#).unwrap();
        assert!(why.contains("/age") && why.contains("integer"), "{why}");
        assert!(!why.contains("secret"), "{why}");
        assert!(judged(schema, "{}").unwrap().contains("age"));
        assert!(judged(schema, r#"{"age":7,"mail":"nobody"}"#).is_some());
    }

    #[test]
    fn a_schema_that_cannot_be_used_refuses_nothing() {
        assert_eq!(judged(r#"{"type":"no such type"}"#, "{}"), None);
        assert_eq!(judged(r#"{"$ref":"https://example.org/x"}"#, "{}"), None);
    }
}
