//! `cargo xtask schemas`: checks that the stored JSON Schemas are those of the published packages.

use std::process::Command;

use crate::npm::{package, root};
use crate::part::run as run_command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("cargo xtask schemas takes no argument (got {arg})"));
    }
    let mut node = Command::new("node");
    node.arg(root().join("xtask/npm/schemas.mjs"));
    for (name, version) in PACKAGES {
        node.arg(package(name, version)?);
    }
    node.arg(root().join("crates/outlast-wire/tests/schemas"));
    node.arg(root().join("target/npm/scratch"));
    run_command(&mut node)
}

/// In the order of the script's arguments.
const PACKAGES: [(&str, &str); 3] = [
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
    ("@modelcontextprotocol/ext-tasks", "0.2.2"),
    ("zod", "4.5.4"),
];
