//! The official schemas as validators.

use std::collections::BTreeMap;

use jsonschema::Validator;
use outlast_wire::Raw;
use serde_json::{Value, json};

/// One schema file, with a validator per definition.
pub(crate) struct Schemas(Value);

impl Schemas {
    pub(crate) fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    fn validator(&self, name: &str) -> Validator {
        assert!(self.0["$defs"].get(name).is_some(), "no definition {name}");
        let mut schema = self.0.clone();
        schema["$ref"] = json!(format!("#/$defs/{name}"));
        jsonschema::validator_for(&schema).unwrap()
    }

    pub(crate) fn is_valid(&self, name: &str, value: &Value) -> bool {
        self.validator(name).is_valid(value)
    }

    pub(crate) fn accept(&self, shapes: &[(&'static str, Raw)]) {
        let mut validators = BTreeMap::new();
        for (name, shape) in shapes {
            let validator = validators
                .entry(*name)
                .or_insert_with(|| self.validator(name));
            let value: Value = shape.open().unwrap();
            let faults: Vec<_> = validator
                .iter_errors(&value)
                .map(|fault| fault.to_string())
                .collect();
            assert!(
                faults.is_empty(),
                "{name}: {value:#}\n{}",
                faults.join("\n")
            );
        }
    }
}
