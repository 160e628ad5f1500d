//! The example with a Redis queue, against a real Redis server.

use std::process::{Command, Stdio};

use crate::part;

/// Runs the test of the example. Installs Redis if this machine has none.
pub(crate) fn run() -> Result<(), String> {
    if !is_installed() {
        let mut install = Command::new("apt-get");
        part::run(install.args(["install", "-y", "redis-server"])).map_err(|error| {
            format!("{error}\ninstall Redis yourself: apt-get install redis-server")
        })?;
    }
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "-p", "outlast", "--all-features", "--test", "http"]);
    part::run(command.args(["--", "--ignored", "redis_queue"]))
}

fn is_installed() -> bool {
    let mut version = Command::new("redis-server");
    let version = version.arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
