//! `cargo xtask bench`: the cost of the HTTP server, the gateway and the stores, as tables.

use std::process::Command;

use crate::gateways::{self, Build};
use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::{peers, python};

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
    if what == "nodes" {
        // It starts a database, which only the testkit does.
        let run = ["run", "--release", "--package", "outlast-testkit", "--bin"];
        command.args(run).args(["nodes_bench", "--"]).args(args);
        return run_command(command.current_dir(root()));
    }
    if what == "forwarding" {
        let outlast = gateways::binary(Build::Release)?;
        let run = ["run", "--release", "--package", "outlast-testkit", "--bin"];
        command.args(run).args(["forwarding", "--"]).arg(outlast);
        command
            .arg(peers::example_of("outlast-cli", "behind")?)
            .args(args);
        return run_command(command.current_dir(root()));
    }
    command
        .args(["run", "--release", "--package", "outlast-bench", "--", what])
        .args(args)
        .current_dir(root());
    let programs = match what.as_str() {
        "gateway" => vec![
            ("outlast", gateways::binary(Build::Release)?),
            ("mcp-proxy", python::interpreter("mcp-proxy")?),
            (
                "supergateway",
                npm::installed("supergateway")?.join(SUPERGATEWAY),
            ),
        ],
        _ => Vec::new(),
    };
    for (name, path) in programs {
        let path = path.display();
        command.args(["--program", &format!("{name}={path}")]);
    }
    run_command(&mut command)
}

const BENCHMARKS: [&str; 6] = ["http", "gateway", "store", "nodes", "forwarding", "bars"];

const SUPERGATEWAY: &str = "node_modules/supergateway/dist/index.js";
