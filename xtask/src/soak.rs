//! `cargo xtask soak`: long runs. The engine's is load with kills; the gateway's plays every event in every cell, and kills the
//! gateway in every state of every cell.

use std::process::Command;

use crate::npm::root;
use crate::part::{Part, run as run_command, run_all};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let words: Vec<_> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => engine(5),
        ["--minutes", minutes] => match minutes.parse() {
            Ok(minutes) => engine(minutes),
            Err(_) => Err(format!("{minutes} is not a number of minutes")),
        },
        ["gateway"] => gateway(),
        _ => Err(format!(
            "usage: cargo xtask soak --minutes N | cargo xtask soak gateway (got {})",
            args.join(" ")
        )),
    }
}

fn engine(minutes: u64) -> Result<(), String> {
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

/// The whole products, of which `cargo test` plays a part. They print a table each and fail on any wrong cell.
fn gateway() -> Result<(), String> {
    run_all(vec![
        Part::cargo(
            "cells",
            &[
                "test",
                "--package",
                "outlast",
                "--all-features",
                "--test",
                "gateway",
                "--",
                "--ignored",
                "--nocapture",
                "product",
            ],
            &[],
        ),
        Part::cargo(
            "server",
            &[
                "build",
                "--package",
                "outlast-cli",
                "--example",
                "every_kind",
            ],
            &[],
        ),
        Part::cargo(
            "kills",
            &[
                "test",
                "--package",
                "outlast-cli",
                "--test",
                "killed",
                "--",
                "--ignored",
                "--nocapture",
            ],
            &[],
        ),
    ])
}
