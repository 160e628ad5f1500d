//! The host side of a relay, and helpers to run `outlast`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use outlast_testkit::{example, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The host side of a relay.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout_of: Receiver<Value>,
    next: i64,
    /// Messages that no `ask` waited for.
    pub(crate) others: Vec<Value>,
}

impl Host {
    pub(crate) fn start(home: &Path) -> Self {
        let behind = example("behind");
        Self::with(home, &["--", behind.to_str().expect("a path")])
    }

    /// A host with a relay that is started with these arguments.
    pub(crate) fn with(home: &Path, words: &[&str]) -> Self {
        Self::from(outlast(home).arg("stdio").args(words))
    }

    /// A host with the relay that `command` starts.
    pub(crate) fn from(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it starts");
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, stdout_of) = channel();
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
            stdout_of,
            next: 0,
            others: Vec::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tasks": {}, "elicitation": {} },
            "clientInfo": { "name": "host", "version": "1" },
        });
        host.ask("initialize", hello);
        host.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the response to a request.
    pub(crate) fn answer(&mut self, id: i64) -> Value {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(found) = self.others.iter().position(is_answer) {
            return self.others.remove(found);
        }
        loop {
            let message = self.next_message();
            if is_answer(&message) {
                return message;
            }
            self.others.push(message);
        }
    }

    /// Waits for a request of the server.
    pub(crate) fn question(&mut self) -> Value {
        let is_question =
            |message: &Value| message["id"] != Value::Null && message.get("method").is_some();
        if let Some(found) = self.others.iter().position(is_question) {
            return self.others.remove(found);
        }
        loop {
            let message = self.next_message();
            if is_question(&message) {
                return message;
            }
            self.others.push(message);
        }
    }

    fn next_message(&self) -> Value {
        match self.stdout_of.recv_timeout(Duration::from_secs(90)) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("no message within 90 s"),
            Err(RecvTimeoutError::Disconnected) => panic!("the relay has ended"),
        }
    }

    /// Calls a tool and returns the id of its task.
    pub(crate) fn task(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let created = self.ask("tools/call", params);
        let task = created["result"]["task"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    /// Calls `echo` and checks its result.
    pub(crate) fn echo(&mut self, say: &str) {
        let params = json!({ "name": "echo", "arguments": { "say": say } });
        let stdout_of = self.ask("tools/call", params);
        assert_eq!(
            stdout_of["result"]["content"][0]["text"], say,
            "{stdout_of}"
        );
    }

    pub(crate) fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{message}").expect("it reads");
    }

    /// Closes the pipe of the relay.
    pub(crate) fn leave(mut self) {
        drop(self.stdin.take());
        let left = wait_for_end(&mut self.child);
        assert!(left.success(), "{left}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with its own home directory.
pub(crate) fn outlast(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command
        .env("XDG_DATA_HOME", home)
        .env("OUTLAST_BACKGROUND_IDLE_MS", "700")
        .env("OUTLAST_LOG", "info,outlast::audit=info")
        .current_dir(home);
    command
}

pub(crate) fn run(home: &Path, words: &[&str]) -> Output {
    outlast(home)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
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
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) url: String,
    stdout: Receiver<String>,
    pub(crate) stderr: Receiver<String>,
}

impl Serving {
    pub(crate) fn start(home: &Path) -> Self {
        Self::begin(home).started()
    }

    /// Starts the process without waiting until it listens.
    pub(crate) fn begin(home: &Path) -> Self {
        let behind = example("behind");
        let mut child = outlast(home)
            .args(["serve", "--http", "127.0.0.1:0", "--no-probe", "--"])
            .arg(behind)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let (tell, stderr) = channel();
        std::thread::spawn(move || {
            for line in errors.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, stdout) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self {
            child,
            url: String::new(),
            stdout,
            stderr,
        }
    }

    /// Waits until it listens.
    pub(crate) fn started(mut self) -> Self {
        let url = self.stdout.recv_timeout(Duration::from_secs(90));
        self.url = url.unwrap_or_else(|error| {
            panic!("{error}: {:?}", self.stderr.try_iter().collect::<Vec<_>>())
        });
        assert!(self.url.starts_with("http://"), "{}", self.url);
        self
    }

    pub(crate) fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        Pid::from_raw(pid).expect("a pid")
    }

    /// Waits for a line on standard error.
    pub(crate) fn wait_for(&self, words: &str) {
        let mut lines = Vec::new();
        until(words, || {
            lines.extend(self.stderr.try_iter());
            lines.iter().any(|line| line.contains(words))
        });
    }

    /// Waits until the process has ended.
    pub(crate) fn wait_for_end(&mut self) {
        wait_for_end(&mut self.child);
    }
}

/// Waits until a process has ended.
pub(crate) fn wait_for_end(child: &mut Child) -> ExitStatus {
    let mut ended = None;
    until("the process ends", || {
        ended = child.try_wait().expect("it is our child");
        ended.is_some()
    });
    ended.expect("it has ended")
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
