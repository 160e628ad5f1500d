//! `outlast schema`: the JSON Schema of the configuration file.
//!
//! The schema is a file of the repository, so that it can be read and linked without the program.
//! The tests compare it with the readers of the settings.

use crate::terminal;

/// Prints the schema.
pub(crate) fn print() {
    terminal::out_json(SCHEMA.trim_end());
}

/// The published file.
const SCHEMA: &str = include_str!("../configuration.schema.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jsonschema::Validator;
    use serde_json::{Value, json};

    use super::SCHEMA;
    use crate::serve::{
        AUDIT_KEYS, LIMIT_KEYS, PRINCIPAL_KEYS, RETENTION_KEYS, SERVER_KEYS, TOOL_KEYS,
        WEBHOOK_KEYS, read_limits, read_settings,
    };

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).unwrap()
    }

    fn validator() -> Validator {
        jsonschema::draft202012::new(&schema()).unwrap()
    }

    /// The keys of a definition in the schema.
    fn keys(definition: &str) -> BTreeSet<String> {
        let properties = &schema()["$defs"][definition]["properties"];
        properties.as_object().unwrap().keys().cloned().collect()
    }

    fn set(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn the_schema_has_the_keys_that_the_program_reads() {
        assert_eq!(keys("gatewaySettings"), set(&LIMIT_KEYS));
        let server = [&TOOL_KEYS[..], &SERVER_KEYS[..]].concat();
        assert_eq!(keys("serverSettings"), set(&server));
        let tool = [&TOOL_KEYS[..], &["concurrency"]].concat();
        assert_eq!(keys("toolSettings"), set(&tool));
        assert_eq!(keys("principalSettings"), set(&PRINCIPAL_KEYS));
        assert_eq!(keys("webhook"), set(&WEBHOOK_KEYS));
        assert_eq!(keys("auditFile"), set(&AUDIT_KEYS));
        assert_eq!(keys("retentionLimits"), set(&RETENTION_KEYS));
    }

    #[test]
    fn the_schema_accepts_what_the_program_accepts() {
        let validator = validator();
        let samples = [
            json!(-1),
            json!(0),
            json!(1),
            json!(5_000_000_000_u64),
            json!(1.5),
            json!(true),
            json!("auto"),
            json!("never"),
            json!("owner"),
            json!("strict"),
            json!("legacy"),
            json!({}),
            json!({ "x": { "concurrency": 0 } }),
            json!({ "x": { "retry": "rerun" } }),
            json!([]),
            json!(["read_*"]),
            json!([1]),
            json!("https://example.org"),
            json!({ "file": "audit.log", "files": 100 }),
            json!({ "file": "audit.log", "files": 101 }),
            json!({ "completed": { "ageMs": 0, "count": 5, "bytes": 9 } }),
            json!({ "failed": { "ageMs": -1 } }),
            json!({ "ada": { "denyTools": ["x"], "headers": { "X": "k" }, "env": { "K": "k" } } }),
            json!({ "ada": { "headers": { "X": 1 } } }),
            json!({ "team": { "url": "http://127.0.0.1:1/", "secret": SECRET } }),
            json!({ "team": { "url": "http://127.0.0.1:1/", "secret": SECRET, "on": ["working"] } }),
            json!({ "team": { "url": "http://127.0.0.1:1/", "secret": SECRET, "on": [] } }),
            json!({ "team": { "url": "http://127.0.0.1:1/", "secret": "short" } }),
            json!({ "a/b": { "url": "http://127.0.0.1:1/", "secret": SECRET } }),
        ];
        for value in samples {
            for key in LIMIT_KEYS {
                let object = json!({ key: value });
                let file = json!({ "outlast": object });
                let read = read_limits(&object).is_ok();
                assert_eq!(validator.is_valid(&file), read, "{object}");
            }
            for key in TOOL_KEYS.iter().chain(&SERVER_KEYS) {
                let object = json!({ *key: value });
                let file = json!({ "servers": { "a": { "command": "x", "outlast": object } } });
                let read = read_settings(&object).is_ok();
                assert_eq!(validator.is_valid(&file), read, "{object}");
            }
        }
    }

    #[test]
    fn host_keys_are_allowed_and_a_server_needs_an_address() {
        let validator = validator();
        for (file, expected) in [
            (json!({ "$schema": "x.json", "inputs": [] }), true),
            (
                json!({ "mcpServers": { "a": { "command": "x", "disabled": false } } }),
                true,
            ),
            (json!({ "mcpServers": { "a": {} } }), false),
            (json!({ "outlast": { "banana": 1 } }), false),
        ] {
            assert_eq!(validator.is_valid(&file), expected, "{file}");
        }
    }
}
