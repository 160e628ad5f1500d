//! The example with a Redis queue, against a real Redis server.

use std::process::Command;

use crate::{debian, part};

/// Runs the test of the example. Installs Redis if this machine has none.
pub(crate) fn run() -> Result<(), String> {
    debian::program("redis-server", "redis-server")?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "-p", "outlast", "--all-features", "--test", "http"]);
    part::run(command.args(["--", "--ignored", "redis_queue"]))
}
