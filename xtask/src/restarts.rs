//! The gateway is killed and restarted with real servers at a URL: a part of `cargo xtask peers`.

use std::path::Path;
use std::process::Command;

use crate::check;
use crate::gateways::{Build, binary};
use crate::peers::example;
use crate::servers;

pub(crate) fn run() -> Result<(), String> {
    let outlast = binary(Build::Debug)?;
    let driver = example("restart_gateway")?;
    for (name, listening) in servers::v1_over_http()? {
        restart(
            name,
            &driver,
            "many,commands,ask",
            &outlast,
            &listening?.url,
        )?;
    }
    let everything = servers::everything_over_http()?;
    restart(
        "server-everything",
        &driver,
        "ask,cut",
        &outlast,
        &everything.url,
    )
}

fn restart(
    name: &str,
    driver: &Path,
    parts: &str,
    outlast: &Path,
    url: &str,
) -> Result<(), String> {
    let mut command = Command::new(driver);
    command.arg(parts).arg(outlast).arg(url);
    check::run(name, "behind a gateway that is killed", &mut command)
}
