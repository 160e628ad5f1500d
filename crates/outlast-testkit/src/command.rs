//! A command line program in a test: its output, and a program that still runs.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{OutputLines, until};

/// The output of a command that has ended.
pub struct CommandOutput {
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
}

impl CommandOutput {
    /// Its standard output, parsed.
    ///
    /// # Panics
    ///
    /// If the output is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("no JSON: {} {}", self.out, self.err))
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

/// A command that runs, with pipes for its input and outputs. It is killed when this is dropped.
pub struct RunningCommand {
    child: Child,
    stderr: OutputLines,
}

impl RunningCommand {
    /// Starts the command.
    pub fn start(command: &mut Command) -> Self {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stderr = OutputLines::read(child.stderr.take().expect("a pipe"));
        Self { child, stderr }
    }

    /// Waits until its standard error contains `text`.
    ///
    /// # Panics
    ///
    /// As [`OutputLines::until`].
    pub fn until(&mut self, text: &str) {
        self.stderr.until(text);
    }

    /// Sends SIGINT, like Ctrl-C.
    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
    }

    /// Writes a line to its standard input.
    pub fn type_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("it reads");
    }

    /// Waits for its end.
    pub fn end(mut self) -> CommandOutput {
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().expect("a pipe");
        // Standard error is closed when the command ends, and its output fits into the pipe.
        let err = self.stderr.finish();
        stdout.read_to_string(&mut out).expect("text");
        let code = self.child.wait().expect("it ends").code();
        CommandOutput { out, err, code }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a process has ended.
///
/// # Panics
///
/// If it does not end within the limit of [`until`].
pub fn wait_for_end(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the process ends", || {
        status = child.try_wait().expect("it is our child");
        status.is_some()
    });
    status.expect("it has ended")
}
