//! The manifests of `packaging/cluster`. They are not run: the tests check their form and the
//! arguments of `outlast serve` in them.

use outlast_testkit::{RunCommand, packaged};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::launcher::outlast;

#[test]
fn the_compose_file_has_its_form_and_starts_nodes_correctly() {
    let [compose] = &documents("compose.yaml")[..] else {
        panic!("there is one document");
    };
    assert_form(include_str!("compose.schema.json"), compose);
    let nginx = packaged("nginx.conf");
    for name in ["one", "two", "three"] {
        let node = &compose["services"][name];
        assert_accepted(&node["command"]);
        let address = &node["networks"]["nodes"]["ipv4_address"];
        let address = format!("server {}:8040 ", address.as_str().expect("an address"));
        assert!(nginx.contains(&address), "{address}");
    }
}

#[test]
fn the_kubernetes_manifest_has_its_form_and_starts_nodes_correctly() {
    let documents = documents("kubernetes.yaml");
    assert_eq!(documents.len(), 5);
    for document in &documents {
        assert_form(include_str!("kubernetes.schema.json"), document);
    }
    let pod = &documents[0]["spec"]["template"]["spec"];
    let words = pod["containers"][0]["args"].to_string();
    let words = serde_json::from_str(&words.replace("$(POD_IP)", "10.0.0.11"));
    assert_accepted(&words.expect("a list"));
}

/// The documents of a YAML file.
fn documents(name: &str) -> Vec<Value> {
    let text = packaged(name);
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let read = documents.map(|document| {
        let mut yaml = serde_yaml_ng::Value::deserialize(document).expect("YAML");
        yaml.apply_merge().expect("it merges maps");
        serde_json::to_value(yaml).expect("its keys are strings")
    });
    read.collect()
}

fn assert_form(schema: &str, document: &Value) {
    let schema = serde_json::from_str(schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = schema.iter_errors(document).collect();
    let errors = errors
        .iter()
        .map(|error| format!("{}: {error}", error.instance_path()));
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0]);
}

/// Asserts that the command line knows the arguments.
fn assert_accepted(words: &Value) {
    let home = TempDir::new().expect("a folder");
    let words = words.as_array().expect("a list").iter();
    let words = words.map(|word| word.as_str().expect("a word"));
    let output = outlast(home.path()).args(words).arg("--help").run();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
}
