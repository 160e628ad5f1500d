//! Validates values against JSON Schemas of a peer.

use outlast_wire::RawRef;
use serde_json::Value;

/// Why `value` does not match `schema`, with up to three errors; `None` if it does. A schema that
/// cannot be used, such as one that refers to another document, rejects nothing.
pub(crate) fn mismatch(schema: RawRef<'_>, value: RawRef<'_>) -> Option<String> {
    let Ok(schema) = schema.open::<Value>() else {
        return Some("the schema is not JSON".into());
    };
    let Ok(value) = value.open::<Value>() else {
        return Some("the value is not JSON".into());
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
    let faults = validator.iter_errors(&value).take(MAX_ERRORS);
    let faults: Vec<_> = faults
        .map(|fault| {
            // The text must not contain the value, which can be a secret.
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
const MAX_ERRORS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(schema: &str, value: &str) -> Option<String> {
        mismatch(
            RawRef::parse(schema).unwrap(),
            RawRef::parse(value).unwrap(),
        )
    }

    #[test]
    fn an_error_names_the_path_and_not_the_value() {
        let schema = r#"{"type":"object","properties":{"age":{"type":"integer"},"mail":{"type":"string","format":"email"}},"required":["age"]}"#;
        assert_eq!(checked(schema, r#"{"age":7,"mail":"a@b.org"}"#), None);
        let why = checked(schema, r#"{"age":"secret"}"#).unwrap();
        assert!(why.contains("/age") && why.contains("integer"), "{why}");
        assert!(!why.contains("secret"), "{why}");
        assert!(checked(schema, "{}").unwrap().contains("age"));
        assert!(checked(schema, r#"{"age":7,"mail":"ada"}"#).is_some());
    }

    #[test]
    fn an_unusable_schema_rejects_nothing() {
        assert_eq!(checked(r#"{"type":"no such type"}"#, "{}"), None);
        assert_eq!(checked(r#"{"$ref":"https://example.org/x"}"#, "{}"), None);
    }
}
