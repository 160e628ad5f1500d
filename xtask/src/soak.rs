//! `cargo xtask soak --minutes N`: a long run with kills.

use std::process::Command;

use crate::npm::root;
use crate::part::run as run_command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let minutes: u64 = match args {
        [] => 5,
        [flag, minutes] if flag == "--minutes" => minutes
            .parse()
            .map_err(|_| format!("{minutes} is not a number of minutes"))?,
        other => {
            return Err(format!(
                "usage: cargo xtask soak --minutes N (got {})",
                other.join(" ")
            ));
        }
    };
    let build = [
        "build",
        "--release",
        "--package",
        "outlast-testkit",
        "--bins",
    ];
    run_command(Command::new(env!("CARGO")).args(build).current_dir(root()))?;
    let release = root().join("target/release");
    run_command(
        Command::new(release.join("soak"))
            .arg(release.join("mortal"))
            .arg(minutes.to_string()),
    )
}
