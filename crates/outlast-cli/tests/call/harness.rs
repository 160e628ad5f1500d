//! The harness: a server in a separate process, and commands that are run with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use outlast_testkit::ServerProcess;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The limit of every wait.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The demo as a server, with its own home directory for its callers.
pub(crate) struct Server {
    process: ServerProcess,
    pub(crate) url: String,
    pub(crate) home: TempDir,
    step: Duration,
}

/// The output of a command.
pub(crate) struct CommandOutput {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Server {
    /// A server that keeps tasks in memory.
    pub(crate) fn start() -> Self {
        Self::begin_with(Duration::from_millis(20), |_| "memory:".into())
    }

    /// A server with a store file. A step of its tools takes `step`.
    pub(crate) fn with_store(step: Duration) -> Self {
        Self::begin_with(step, store)
    }

    fn begin_with(step: Duration, store: impl Fn(&Path) -> String) -> Self {
        let home = TempDir::new().expect("a folder");
        let process = serve(home.path(), "127.0.0.1:0", &store(home.path()), step);
        Self {
            url: process.url().to_owned(),
            process,
            home,
            step,
        }
    }

    /// The URL of the store file.
    pub(crate) fn store(&self) -> String {
        store(self.home.path())
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.process.end();
    }

    /// Starts the server again with the same store and port.
    pub(crate) fn start_again(&mut self) {
        let address = self.process.authority();
        self.process = serve(self.home.path(), address, &self.store(), self.step);
        assert_eq!(self.process.url(), self.url);
    }

    /// Runs `outlast` with `words`. `{}` is replaced by the URL of the server.
    pub(crate) fn run(&self, words: &[&str]) -> CommandOutput {
        self.run_with(words, None)
    }

    /// The same with `typed` as the input.
    pub(crate) fn run_with(&self, words: &[&str], typed: Option<&str>) -> CommandOutput {
        let stdin = match typed {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let mut child = self.spawn(words, stdin);
        if let (Some(typed), Some(mut stdin)) = (typed, child.stdin.take()) {
            stdin.write_all(typed.as_bytes()).expect("it reads");
        }
        child.wait_with_output().expect("it ends").into()
    }

    /// Starts `outlast` with `words`. The test can read its output and type while it runs.
    pub(crate) fn begin(&self, words: &[&str]) -> RunningCommand {
        RunningCommand::new(self.spawn(words, Stdio::piped()))
    }

    /// The command `outlast` with `words`.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let words = words.iter().map(|word| match *word {
            "{}" => self.url.as_str(),
            word => word,
        });
        let mut command = outlast(self.home.path());
        command.args(words);
        command
    }

    fn spawn(&self, words: &[&str], stdin: Stdio) -> Child {
        self.command(words)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    }
}

/// A running command.
pub(crate) struct RunningCommand {
    child: Child,
    /// The lines of its standard error.
    lines: Receiver<String>,
    err: String,
}

impl RunningCommand {
    /// Starts a command with pipes.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self::new(child.expect("it starts"))
    }

    fn new(mut child: Child) -> Self {
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // The test has ended.
                let Ok(()) = tell.send(line) else { return };
            }
        });
        Self {
            child,
            lines,
            err: String::new(),
        }
    }

    /// Waits until its standard error contains `text`.
    pub(crate) fn until(&mut self, text: &str) {
        loop {
            let line = self.lines.recv_timeout(WAIT_LIMIT);
            let line = line.unwrap_or_else(|why| panic!("{text}: {why}: {}", self.err));
            self.record_line(&line);
            if line.contains(text) {
                return;
            }
        }
    }

    /// Sends SIGINT, like Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("it reads");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> CommandOutput {
        loop {
            match self.lines.recv_timeout(WAIT_LIMIT) {
                Ok(line) => self.record_line(&line),
                // Its standard error is closed, so it ends.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {}", self.err),
            }
        }
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut out).expect("text");
        CommandOutput {
            out,
            err: std::mem::take(&mut self.err),
            code: self.child.wait().expect("it ends").code(),
        }
    }

    fn record_line(&mut self, line: &str) {
        self.err.push_str(line);
        self.err.push('\n');
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            out: text(output.stdout),
            err: text(output.stderr),
            code: output.status.code(),
        }
    }
}

impl CommandOutput {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("no JSON: {} {}", self.out, self.err))
    }
}

fn store(home: &Path) -> String {
    format!("sqlite:{}", home.join("server.db").display())
}

/// Starts the demo as a server.
fn serve(home: &Path, address: &str, store: &str, step: Duration) -> ServerProcess {
    let step = step.as_millis().to_string();
    let mut demo = outlast(home);
    demo.args(["demo", "--http", address, "--store", store])
        .args(["--step-ms", &step])
        .stderr(Stdio::null());
    ServerProcess::start(&mut demo, 1)
}

pub(crate) fn outlast(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command
        .env("XDG_DATA_HOME", home)
        .env_remove("OUTLAST_TOKEN")
        .current_dir(home);
    command
}
