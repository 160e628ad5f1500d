//! `cargo xtask bench engine`: what the engine costs, as a table.

use std::process::Command;

use crate::npm::root;
use crate::part::run as run_command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [what, args @ ..] = args else {
        return Err("usage: cargo xtask bench engine [--quick] [--out FILE]".into());
    };
    if what != "engine" {
        return Err(format!("no benchmark is named {what}; there is: engine"));
    }
    let build = ["run", "--release", "--package", "outlast-bench", "--"];
    run_command(
        Command::new(env!("CARGO"))
            .args(build)
            .args(args)
            .current_dir(root()),
    )
}
