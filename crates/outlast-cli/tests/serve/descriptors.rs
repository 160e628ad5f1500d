//! A gateway with few file descriptors: connections never use those of the store.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use outlast_testkit::{ServerProcess, example, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tempfile::TempDir;

use crate::gateway::Gateway;

/// Starts a gateway with these limits of open files.
fn start(home: &std::path::Path, soft: u64, hard: u64) -> Gateway {
    // Every call becomes a task immediately.
    let config = serde_json::json!({ "mcpServers": {
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
    Gateway {
        process: ServerProcess::start(&mut command, 1),
        home: home.to_owned(),
    }
}

/// A connection for consecutive requests.
struct Connection(BufReader<TcpStream>, String);

impl Connection {
    fn open(gateway: &Gateway) -> Self {
        let stream = TcpStream::connect(gateway.authority()).expect("it listens");
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        Self(BufReader::new(stream), gateway.authority().to_owned())
    }

    /// Sends a request and returns the status and the body of the response.
    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let Self(stream, authority) = self;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {authority}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        let sent = stream.get_mut().write_all(request.as_bytes());
        sent.expect("it is read");
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("it is answered");
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().expect("a status");
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        (status, String::from_utf8(body).expect("a text"))
    }

    /// Creates a task and returns its id.
    fn task(&mut self, token: &str) -> String {
        let headers = format!(
            "authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: wait\r\n"
        );
        let meta = serde_json::json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
        let params = serde_json::json!({ "name": "wait", "arguments": { "ms": 1 }, "_meta": meta });
        let call = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (status, body) = self.ask("POST", "/mcp", &headers, &call.to_string());
        assert_eq!(status, 200, "{body}");
        let rest = body.split_once("\"taskId\":\"").expect("a task").1;
        rest.split('"').next().expect("its id").to_owned()
    }
}

fn ready(gateway: &Gateway) -> (bool, String) {
    let (head, body) = gateway.get("/readyz");
    (head.starts_with("HTTP/1.1 200"), body)
}

#[test]
fn the_soft_limit_is_raised_and_connections_leave_the_store_its_descriptors() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(home.path(), 48, 72);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.process.id()));
    let limits = limits.expect("a process");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limits: Vec<_> = line.expect("a limit").split_whitespace().collect();
    assert_eq!(limits[3..5], ["72", "72"]);
    let mut served = Connection::open(&gateway);
    assert_eq!(served.ask("GET", "/healthz", "", "").0, 200);
    // Far more connections than descriptors.
    let flood: Vec<_> = (0..200).map(|_| Connection::open(&gateway)).collect();
    until("all connections are in use", || !ready(&gateway).0);
    let (_, why) = ready(&gateway);
    assert_eq!(why, "not ready: all 32 connections are in use\n");
    // A connection that is served works to its end, and its tasks are stored.
    let token = gateway.token();
    let tasks: Vec<_> = (0..3).map(|_| served.task(&token)).collect();
    assert_eq!(served.ask("GET", "/healthz", "", "").0, 200);
    drop(flood);
    until("connections are free", || ready(&gateway).0);
    let address = gateway.kill();
    let gateway = Gateway::start(home.path(), &address, &["--config", "mcp.json"], 1);
    for task in tasks {
        let found = gateway.run_ok(&["tasks", "get", "{}", &task, "--as", "v2"]);
        assert!(found.contains(&task), "{found}");
    }
}

#[test]
fn a_gateway_without_a_free_descriptor_is_not_ready_and_recovers() {
    let home = TempDir::new().expect("a folder");
    let gateway = Gateway::for_sample_server(home.path(), "127.0.0.1:0");
    let mut served = Connection::open(&gateway);
    assert_eq!(served.ask("GET", "/readyz", "", "").0, 200);
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
    let (status, why) = served.ask("GET", "/readyz", "", "");
    assert_eq!(status, 503);
    assert_eq!(why, "not ready: no file descriptor is free (limit: 4)\n");
    assert_eq!(served.ask("GET", "/healthz", "", "").0, 200);
    // Connections that cannot be accepted wait, and the listener continues.
    let mut waiting = Connection::open(&gateway);
    std::thread::sleep(Duration::from_millis(200));
    limit(before);
    assert_eq!(waiting.ask("GET", "/readyz", "", "").0, 200);
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
}
