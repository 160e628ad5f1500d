//! `cargo xtask soak`: long runs. `--minutes` runs load with kills, `images` simulates power loss,
//! `gateway` runs every event in every cell and kills the gateway in every state of every cell,
//! `nodes` lets nodes and their database fail, and `simulation` does it with simulated time.

use std::process::Command;

use crate::npm::root;
use crate::part::{Part, run as run_command, run_all};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let words: Vec<_> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => store(5),
        ["--minutes", minutes] => match minutes.parse() {
            Ok(minutes) => store(minutes),
            Err(_) => Err(format!("{minutes} is not a number of minutes")),
        },
        ["images"] => images(),
        ["gateway"] => gateway(),
        ["simulation"] => simulation(),
        ["nodes"] => nodes(10),
        ["nodes", "--minutes", minutes] => match minutes.parse() {
            Ok(minutes) => nodes(minutes),
            Err(_) => Err(format!("{minutes} is not a number of minutes")),
        },
        _ => Err(format!(
            "usage: cargo xtask soak --minutes N | cargo xtask soak images | cargo xtask soak gateway | \
             cargo xtask soak nodes --minutes N | cargo xtask soak simulation (got {})",
            args.join(" ")
        )),
    }
}

/// The checks of the store: power loss, then kills for this number of minutes.
fn store(minutes: u64) -> Result<(), String> {
    images()?;
    engine(minutes)
}

/// The test that `cargo test` runs in part, with 10,000 images.
fn images() -> Result<(), String> {
    let test = [
        "test",
        "--release",
        "--package",
        "outlast-testkit",
        "--test",
        "crash_images",
        "--",
        "--ignored",
        "--exact",
        "--nocapture",
        "acknowledged_facts_survive_power_loss_in_10000_images",
    ];
    run_command(Command::new(env!("CARGO")).args(test).current_dir(root()))
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
            .arg(release.join("death_child"))
            .arg(minutes.to_string()),
    )
}

/// The test that `cargo test` runs for one minute: three nodes on PostgreSQL that fail, for this
/// number of minutes.
fn nodes(minutes: u64) -> Result<(), String> {
    let test = [
        "test",
        "--release",
        "--package",
        "outlast-testkit",
        "--test",
        "nodes",
        "--",
        "--nocapture",
    ];
    let mut command = Command::new(env!("CARGO"));
    command.args(test).current_dir(root());
    run_command(command.env("OUTLAST_NODES_SECONDS", (60 * minutes).to_string()))
}

/// The test that `cargo test` runs with 500 seeds: three nodes on simulated time. The first seed is
/// the time, so that every run tries other ones.
fn simulation() -> Result<(), String> {
    let test = [
        "test",
        "--release",
        "--package",
        "outlast-testkit",
        "--test",
        "simulation",
        "--",
        "--nocapture",
    ];
    let since = std::time::UNIX_EPOCH
        .elapsed()
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(env!("CARGO"));
    command.args(test).current_dir(root());
    command.env("OUTLAST_SIMULATION_SEED", since.as_secs().to_string());
    run_command(command.env("OUTLAST_SIMULATION_SEEDS", "20000"))
}

/// The complete tables, of which `cargo test` runs a part. They print a table each and fail on any
/// wrong cell.
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
