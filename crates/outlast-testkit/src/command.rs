//! A command line program in a test: its output, and a program that still runs. Every wait has a
//! limit.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::output::WAIT_LIMIT;
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

/// Runs a command to its end.
pub trait RunCommand {
    /// The output of the command, whose standard input is empty.
    ///
    /// # Panics
    ///
    /// If it does not start, or does not end within two minutes.
    fn run(&mut self) -> Output;
}

impl RunCommand for Command {
    fn run(&mut self) -> Output {
        self.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = self.spawn();
        output_of(spawned.unwrap_or_else(|error| panic!("{self:?}: {error}")))
    }
}

/// Closes the standard input of a process, and waits for its end. An output that is not a pipe is
/// empty.
///
/// # Panics
///
/// If the process does not end within two minutes.
pub fn output_of(mut child: Child) -> Output {
    drop(child.stdin.take());
    let stdout = child.stdout.take().map(read_to_end);
    let stderr = child.stderr.take().map(read_to_end);
    let mut wait =
        |pipe: Option<Receiver<Vec<u8>>>| match pipe.map(|all| all.recv_timeout(WAIT_LIMIT)) {
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => {
                // The process may have ended, and a process that it started keeps the pipe open.
                let _ = child.kill();
                panic!("the process does not end within {} s", WAIT_LIMIT.as_secs());
            }
            None => Vec::new(),
        };
    let (stdout, stderr) = (wait(stdout), wait(stderr));
    Output {
        status: wait_for_end(&mut child),
        stdout,
        stderr,
    }
}

/// Reads a pipe to its end in a separate thread.
fn read_to_end(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, all) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What can be read is the output.
        let _ = pipe.read_to_end(&mut bytes);
        // The test may have ended.
        let _ = send.send(bytes);
    });
    all
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

    /// Waits for a line of its standard error that is `wanted`.
    ///
    /// # Panics
    ///
    /// As [`OutputLines::find`].
    pub fn find(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        self.stderr.find(what, wanted);
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
        let code = wait_for_end(&mut self.child).code();
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
