//! The harness: a server in a separate process, and commands that are run with it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlast_testkit::{CommandOutput, RunningCommand, ServerProcess, output_of};
use tempfile::TempDir;

use crate::launcher::outlast;

/// The demo as a server, with its own home directory for its callers.
pub(crate) struct DemoServer {
    process: ServerProcess,
    pub(crate) url: String,
    pub(crate) home: TempDir,
    step: Duration,
}

impl DemoServer {
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
        let mut child = self
            .command(words)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        if let (Some(typed), Some(mut stdin)) = (typed, child.stdin.take()) {
            stdin.write_all(typed.as_bytes()).expect("it reads");
        }
        output_of(child).into()
    }

    /// Starts `outlast` with `words`. The test can read its output and type while it runs.
    pub(crate) fn begin(&self, words: &[&str]) -> RunningCommand {
        RunningCommand::start(&mut self.command(words))
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
