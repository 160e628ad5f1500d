//! `outlast stdio` as a host meets it: a relay that comes and goes, and a gateway in the background that stays.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use outlast_testkit::{example, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A host's end of a relay.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<Value>,
    next: i64,
}

impl Host {
    fn start(home: &Path) -> Self {
        let behind = example("behind");
        Self::with(home, &["--", behind.to_str().expect("a path")])
    }

    /// The host of a relay that is started with these words.
    fn with(home: &Path, words: &[&str]) -> Self {
        let mut child = outlast(home)
            .arg("stdio")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it starts");
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, said) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("a message");
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut host = Self {
            child,
            stdin,
            said,
            next: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tasks": {} },
            "clientInfo": { "name": "host", "version": "1" },
        });
        host.ask("initialize", hello);
        host.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self
                .said
                .recv_timeout(Duration::from_secs(60))
                .expect("an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{message}").expect("it reads");
    }

    /// The host closes its window.
    fn leave(mut self) {
        drop(self.stdin.take());
        let left = self.child.wait().expect("it ends");
        assert!(left.success(), "{left}");
    }
}

fn outlast(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command
        .env("XDG_DATA_HOME", home)
        .env("OUTLAST_BACKGROUND_IDLE_MS", "700")
        .env("OUTLAST_LOG", "info,outlast::audit=info")
        .current_dir(home);
    command
}

fn run(home: &Path, words: &[&str]) -> Output {
    outlast(home)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_task_outlives_the_host_and_the_next_window_has_its_result() {
    // BR-CAN-8; "the end of the host's pipe ends only the relay".
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut one = Host::start(home);
    let said = one.ask(
        "tools/call",
        json!({ "name": "echo", "arguments": { "say": "hi" } }),
    );
    assert_eq!(said["result"]["content"][0]["text"], "hi");
    let task = one.ask(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 2_000 }, "task": {} }),
    );
    let task = task["result"]["task"]["taskId"]
        .as_str()
        .expect("a task")
        .to_owned();
    let socket = home.join("outlast/tasks.db.sock");
    let mode = std::fs::metadata(&socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    one.leave();
    // Nobody is connected, and the work goes on: the gateway stays for it.
    let listed = run(home, &["tasks", "list"]);
    assert!(
        text(&listed.stdout).contains(&task),
        "{}",
        text(&listed.stderr)
    );
    let mut other = Host::start(home);
    let result = other.ask("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    let hung = other.ask(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 3_600_000 }, "task": {} }),
    );
    let hung = hung["result"]["task"]["taskId"]
        .as_str()
        .expect("a task")
        .to_owned();
    other.leave();
    let cancelled = run(home, &["tasks", "cancel", &hung]);
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    // What it did is written down, for its owner only.
    let log = home.join("outlast/tasks.db.log");
    let mode = std::fs::metadata(&log).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let logged = std::fs::read_to_string(&log).expect("a log");
    assert!(
        logged.contains("created") && logged.contains(&task),
        "{logged}"
    );
    // With nothing to do it leaves, and the file tells what was.
    until("the gateway has left", || !socket.exists());
    until("the file is free", || {
        let got = run(home, &["tasks", "get", &hung]);
        text(&got.stdout).contains("cancelled")
    });
}

#[test]
fn two_windows_share_one_gateway() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let starting = [(); 2].map(|()| {
        let home = home.to_owned();
        std::thread::spawn(move || Host::start(&home))
    });
    let [one, two] = starting.map(|host| host.join().expect("it starts"));
    let mut hosts = [one, two];
    let task = hosts[0].ask(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 10 }, "task": {} }),
    );
    let task = json!({ "taskId": task["result"]["task"]["taskId"] });
    let result = hosts[1].ask("tasks/result", task);
    assert_eq!(result["result"]["content"][0]["text"], "waited");
    let [one, two] = hosts;
    one.leave();
    two.leave();
    let socket = home.join("outlast/tasks.db.sock");
    until("the gateway has left", || !socket.exists());
}

#[test]
fn a_server_of_a_file_is_named_and_one_at_a_url_is_the_business_of_serve() {
    let folder = TempDir::new().expect("a folder");
    let config = json!({ "mcpServers": {
        "behind": { "command": example("behind"), "outlast": { "graceMs": 1 } },
        "web": { "url": "http://127.0.0.1:1/mcp" },
    } });
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, config.to_string()).expect("it is written");
    let mut host = Host::with(folder.path(), &["--config", "mcp.json", "behind"]);
    let said = host.ask(
        "tools/call",
        json!({ "name": "echo", "arguments": { "say": "hi" } }),
    );
    assert_eq!(said["result"]["content"][0]["text"], "hi", "{said}");
    host.leave();
    for (words, why) in [
        (
            &["stdio", "--config", "mcp.json"][..],
            "name one of: behind, web",
        ),
        (
            &["stdio", "--config", "mcp.json", "web"],
            "outlast serve --config",
        ),
    ] {
        let refused = run(folder.path(), words);
        assert_eq!(refused.status.code(), Some(2));
        let told = text(&refused.stderr);
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn settings_that_are_not_known_are_told_to_the_host() {
    let folder = TempDir::new().expect("a folder");
    let words = ["stdio", "--settings", r#"{"gracems":1}"#, "--", "x"];
    let said = run(folder.path(), &words);
    assert_eq!(said.status.code(), Some(2));
    assert!(
        text(&said.stderr).contains("write `graceMs`"),
        "{}",
        text(&said.stderr)
    );
}

#[test]
fn a_store_that_another_program_has_is_named_to_the_host_before_it_gives_up() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let behind = example("behind");
    let behind = behind.to_str().expect("a path");
    let mut serving = outlast(home)
        .args(["serve", "--http", "127.0.0.1:0", "--no-probe", "--", behind])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut url = String::new();
    let said = serving.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut url).expect("its URL");
    let refused = run(home, &["stdio", "--", behind]);
    serving.kill().expect("it runs");
    serving.wait().expect("it ends");
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(
        why.contains("in use by process") && why.contains("next:") && why.contains("--store"),
        "{why}"
    );
}
