//! The host side of a relay, and helpers to run `outlast`.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use outlast_testkit::mcp::ProcessClient;
use outlast_testkit::{OutputLines, RunCommand, example, wait_for_end};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::launcher;

/// A host with a relay to the sample server.
pub(crate) fn start_host(home: &Path) -> ProcessClient {
    let behind = example("behind");
    start_host_with(outlast(home).arg("stdio").arg("--").arg(behind))
}

/// A host with the relay that `command` starts.
pub(crate) fn start_host_with(command: &mut Command) -> ProcessClient {
    let mut host = ProcessClient::start(command);
    host.initialize(json!({ "tasks": {}, "elicitation": {} }));
    host
}

/// What a host gets from a relay that cannot start: the error of its `initialize` request, and then
/// the standard error and the exit code of the process. The host keeps its pipe open.
pub(crate) fn start_refused_host(home: &Path, words: &[&str]) -> (String, String, Option<i32>) {
    let mut child = outlast(home)
        .arg("stdio")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let initialize = json!({ "jsonrpc": "2.0", "id": "one", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    } });
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{initialize}").expect("it reads");
    let stdout = OutputLines::read(child.stdout.take().expect("a pipe")).finish();
    let stderr = OutputLines::read(child.stderr.take().expect("a pipe")).finish();
    let status = wait_for_end(&mut child);
    let response: Value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{error}: {stdout:?} {stderr}"));
    assert_eq!(response["id"], "one", "{response}");
    let error = response["error"]["message"].as_str();
    let error = error.unwrap_or_else(|| panic!("no error: {response}"));
    (error.to_owned(), stderr, status.code())
}

/// Calls `echo` and checks its result.
pub(crate) fn call_echo(host: &mut ProcessClient, say: &str) {
    let params = json!({ "name": "echo", "arguments": { "say": say } });
    let response = host.call("tools/call", params);
    let said = &response["result"]["content"][0]["text"];
    assert_eq!(said, say, "{response}");
}

/// Closes the pipe of a relay, which must end without an error.
pub(crate) fn close_host(host: ProcessClient) {
    let status = host.close();
    assert!(status.success(), "{status}");
}

/// The program, which starts gateways that end soon and log the audit trail.
pub(crate) fn outlast(home: &Path) -> Command {
    let mut command = launcher::outlast(home);
    command
        .env("OUTLAST_BACKGROUND_IDLE_MS", "700")
        .env("OUTLAST_LOG", "info,outlast::audit=info");
    command
}

pub(crate) fn run(home: &Path, words: &[&str]) -> Output {
    outlast(home).args(words).stdin(Stdio::null()).run()
}

/// The output of a command, which must succeed.
pub(crate) fn stdout_of(home: &Path, words: &[&str]) -> String {
    let output = run(home, words);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{words:?}: {out}{err}");
    out.trim().to_owned()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The running gateway, from `outlast gateway status --json`.
pub(crate) fn status(home: &Path) -> Value {
    let output = run(home, &["gateway", "status", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(crate) fn gateway_pid(home: &Path) -> Pid {
    let pid = status(home)["gateway"]["pid"]
        .as_i64()
        .expect("a gateway runs");
    Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
}

/// Kills the gateway like `kill -9`.
pub(crate) fn kill_gateway(home: &Path) -> Pid {
    let pid = gateway_pid(home);
    kill_process(pid, Signal::KILL).expect("it runs");
    pid
}

/// A running `outlast serve`, killed when dropped.
pub(crate) struct RunningServe {
    pub(crate) child: Child,
    pub(crate) url: String,
    stdout: OutputLines,
    pub(crate) stderr: OutputLines,
}

impl RunningServe {
    pub(crate) fn start(home: &Path) -> Self {
        Self::begin(home).started()
    }

    /// Starts the process without waiting until it listens.
    pub(crate) fn begin(home: &Path) -> Self {
        let behind = example("behind");
        Self::begin_with(home, &["--", behind.to_str().expect("a path")])
    }

    /// The same with another server.
    pub(crate) fn begin_with(home: &Path, server: &[&str]) -> Self {
        let mut child = outlast(home)
            .args(["serve", "--http", "127.0.0.1:0", "--no-probe"])
            .args(server)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self {
            stdout: OutputLines::read(child.stdout.take().expect("a pipe")),
            stderr: OutputLines::read(child.stderr.take().expect("a pipe")),
            child,
            url: String::new(),
        }
    }

    /// Waits until it listens.
    pub(crate) fn started(mut self) -> Self {
        self.url = self.stdout.until("http://");
        self
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the process has ended.
    pub(crate) fn wait_for_end(&mut self) {
        wait_for_end(&mut self.child);
    }
}

impl Drop for RunningServe {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
