//! `cargo xtask bench`: what the engine and its servers cost, as tables.

use std::process::Command;

use crate::npm::root;
use crate::part::run as run_command;
use crate::peers;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [what, args @ ..] = args else {
        return Err(format!(
            "usage: cargo xtask bench {} [--quick] [--out FILE]",
            BENCHMARKS.join("|")
        ));
    };
    if !BENCHMARKS.contains(&what.as_str()) {
        let there = BENCHMARKS.join(", ");
        return Err(format!("no benchmark is named {what}; there are: {there}"));
    }
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--release", "--package", "outlast-bench", "--", what])
        .args(args)
        .current_dir(root());
    if what == "http-v1" {
        let server = peers::typescript()?.join("v1_server.mjs");
        command.arg("--typescript").arg(server);
    }
    run_command(&mut command)
}

const BENCHMARKS: [&str; 3] = ["engine", "http-v1", "http-v2"];
