//! `cargo xtask cluster`: the official suite and real clients with three nodes behind nginx, which
//! sends requests to them by turns.
//!
//! The program `cluster` of the testkit starts PostgreSQL, the nodes and nginx. The nodes are
//! gateways with three servers: the fixtures of the suite at a URL, those on rmcp as a child process,
//! and the sample server. At the end each node must have got about a third of the requests.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::gateways::{Build, binary};
use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::peers::{Listening, clients_over_http, example};
use crate::{conformance, debian, programs};

pub(crate) fn run() -> Result<(), String> {
    programs::postgres()?;
    debian::program("nginx", "nginx-light")?;
    let outlast = binary(Build::Debug)?;
    let fixtures = Listening::start(&example("conformance")?)?;
    let config = serde_json::json!({
        "mcpServers": {
            "url": { "url": fixtures.url },
            "child": { "command": example("rmcp_conformance")? },
            "samples": { "command": example("samples")? },
        },
    });
    let file = npm::target().join("cluster.json");
    std::fs::write(&file, config.to_string())
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let cluster = Cluster::start(&outlast, &file)?;
    conformance::run_at(cluster.url("url")?, cluster.url("child")?)?;
    clients_over_http(cluster.url("samples")?, "cluster", "through three nodes")?;
    cluster.end()
}

/// The nodes and nginx, until this is dropped.
struct Cluster {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The servers, at nginx.
    urls: Vec<String>,
}

impl Cluster {
    /// Starts three nodes with this configuration file.
    fn start(outlast: &Path, config: &Path) -> Result<Self, String> {
        let build = [
            "build",
            "--quiet",
            "--package",
            "outlast-testkit",
            "--bin",
            "cluster",
        ];
        run_command(Command::new(env!("CARGO")).args(build).current_dir(root()))?;
        let mut command = Command::new(npm::target().join("debug/cluster"));
        command
            .arg(SERVERS.to_string())
            .arg(outlast)
            .args(["--no-token", "--log", "warn", "--config"])
            .arg(config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let stdout = child.stdout.take().ok_or("the program has no stdout")?;
        let mut cluster = Self {
            child,
            stdout: BufReader::new(stdout),
            urls: Vec::new(),
        };
        for _ in 0..SERVERS {
            let url = cluster.line()?;
            cluster.urls.push(url);
        }
        Ok(cluster)
    }

    /// The endpoint of the server `name`.
    fn url(&self, name: &str) -> Result<&str, String> {
        let path = format!("/mcp/{name}");
        let url = self.urls.iter().find(|url| url.ends_with(&path));
        url.map(String::as_str)
            .ok_or_else(|| format!("no node serves {path}"))
    }

    /// Ends it, and checks that each node has got about a third of the requests.
    fn end(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        println!("{}", self.line()?);
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err("the nodes have not got a third of the requests each".into())
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        match line.trim_end() {
            "" => Err("the program `cluster` ended early".into()),
            line => Ok(line.to_owned()),
        }
    }
}

impl Drop for Cluster {
    /// Closes its standard input: then it ends the nodes, nginx and PostgreSQL.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

const SERVERS: usize = 3;
