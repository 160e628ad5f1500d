//! A gateway with few file descriptors: connections never use those of the store.

use std::process::Command;
use std::time::Duration;

use outlast_testkit::mcp::{HttpConnection, tasks_only};
use outlast_testkit::{ServerProcess, example, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use tempfile::TempDir;

use crate::gateway::GatewayProcess;

/// Starts a gateway with these limits of open files.
fn start(home: &std::path::Path, soft: u64, hard: u64) -> GatewayProcess {
    // Every call becomes a task immediately.
    let config = json!({ "mcpServers": {
        "behind": { "command": example("behind"), "outlast": { "task": "always" } },
    } });
    std::fs::write(home.join("mcp.json"), config.to_string()).expect("it is written");
    let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    let log = std::fs::File::create(home.join("stderr")).expect("a file");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_outlast")])
        .args(["serve", "--http", "127.0.0.1:0", "--config", "mcp.json"])
        .env("XDG_DATA_HOME", home)
        .current_dir(home)
        .stderr(log);
    GatewayProcess {
        process: ServerProcess::start(&mut command, 1),
        home: home.to_owned(),
    }
}

/// Creates a task and returns its id.
fn task(connection: &mut HttpConnection, token: &str) -> String {
    let params = json!({ "name": "wait", "arguments": { "ms": 1 } });
    let created = connection.call_tool("/mcp", token, params, tasks_only());
    assert_eq!(created.status, 200, "{created:?}");
    let id = created.json()["result"]["taskId"].clone();
    id.as_str().expect("an id").to_owned()
}

fn is_ready(gateway: &GatewayProcess) -> bool {
    gateway.get("/readyz").status == 200
}

#[test]
fn the_soft_limit_is_raised_and_the_store_retains_descriptors() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(home.path(), 48, 72);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.process.id()));
    let limits = limits.expect("a process");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limits: Vec<_> = line.expect("a limit").split_whitespace().collect();
    assert_eq!(limits[3..5], ["72", "72"]);
    let mut served = gateway.connect();
    assert_eq!(served.get("/healthz").status, 200);
    // Far more connections than descriptors.
    let flood: Vec<_> = (0..200).map(|_| gateway.connect()).collect();
    until("all connections are in use", || !is_ready(&gateway));
    let why = gateway.get("/readyz").body;
    assert_eq!(why, "not ready: all 32 connections are in use\n");
    // A connection that is served works to its end, and its tasks are stored.
    let token = gateway.token();
    let tasks: Vec<_> = (0..3).map(|_| task(&mut served, &token)).collect();
    assert_eq!(served.get("/healthz").status, 200);
    drop(flood);
    until("connections are free", || is_ready(&gateway));
    let address = gateway.kill();
    let gateway = GatewayProcess::start(home.path(), &address, &["--config", "mcp.json"], 1);
    for task in tasks {
        let found = gateway.run_ok(&["tasks", "get", "{}", &task, "--as", "v2"]);
        assert!(found.contains(&task), "{found}");
    }
}

#[test]
fn a_gateway_without_descriptors_is_unready_and_recovers() {
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    let mut served = gateway.connect();
    assert_eq!(served.get("/readyz").status, 200);
    let pid = i32::try_from(gateway.process.id())
        .ok()
        .and_then(Pid::from_raw);
    let limit = |current| {
        let limit = Rlimit {
            current: Some(current),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        let set = prlimit(pid, Resource::Nofile, limit);
        set.expect("the limit is set")
            .current
            .expect("a limit before")
    };
    // Below the number of open files: no more can be opened.
    let before = limit(4);
    let refused = served.get("/readyz");
    assert_eq!(refused.status, 503);
    assert_eq!(
        refused.body,
        "not ready: no file descriptor is free (limit: 4)\n"
    );
    assert_eq!(served.get("/healthz").status, 200);
    // Connections that cannot be accepted wait, and the listener continues.
    let mut waiting = gateway.connect();
    std::thread::sleep(Duration::from_millis(200));
    limit(before);
    assert_eq!(waiting.get("/readyz").status, 200);
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
}
