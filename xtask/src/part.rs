//! The parts of a longer run: each is a command. A table at the end shows the time and the result
//! of each.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::record;

/// A named step of a run.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) work: Box<dyn FnOnce() -> Result<(), String>>,
}

impl Part {
    /// A part that runs `cargo` with `args` and `env`.
    pub(crate) fn cargo(
        name: &'static str,
        args: &'static [&'static str],
        env: &'static [(&'static str, &'static str)],
    ) -> Self {
        let work = move || {
            let mut command = Command::new(env!("CARGO"));
            command.args(args).envs(env.iter().copied());
            run(&mut command)
        };
        Self {
            name,
            work: Box::new(work),
        }
    }
}

/// Runs `command` and returns its error, if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

/// Runs `command`, prints its stdout, and passes each line of it to `read`. If it prints nothing
/// for [`MAX_SILENCE`], it is killed: a test that waits without an end fails.
pub(crate) fn run_reading(
    command: &mut Command,
    read: &mut dyn FnMut(&str),
) -> Result<ExitStatus, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is a pipe");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut last_line = Instant::now();
    loop {
        match lines.recv_timeout(Duration::from_millis(300)) {
            Ok(mut line) => {
                last_line = Instant::now();
                read(&String::from_utf8_lossy(&line));
                line.push(b'\n');
                std::io::stdout().write_all(&line).map_err(failed)?;
            }
            // A process that the command started can keep the pipe open after the command has
            // ended.
            Err(RecvTimeoutError::Timeout) => {
                if child.try_wait().map_err(failed)?.is_some() {
                    break;
                }
                if last_line.elapsed() > MAX_SILENCE {
                    child.kill().map_err(failed)?;
                    child.wait().map_err(failed)?;
                    let minutes = MAX_SILENCE.as_secs() / 60;
                    return Err(format!("{command:?} printed nothing for {minutes} minutes"));
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    child.wait().map_err(failed)
}

/// No test and no check with a peer takes as long, not even on a busy machine.
const MAX_SILENCE: Duration = Duration::from_secs(15 * 60);

/// Runs all parts, even if one fails, and prints the time of each.
pub(crate) fn run_all(parts: Vec<Part>) -> Result<(), String> {
    let mut rows: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for part in parts {
        eprintln!("\n== {} ==", part.name);
        let began = Instant::now();
        let done = record::begin(part.name)
            .and_then(|()| (part.work)())
            .and_then(|()| record::end(part.name));
        if let Err(why) = &done {
            eprintln!("{}: {why}", part.name);
        }
        rows.push((part.name, began.elapsed(), done));
    }
    eprintln!();
    for (name, took, done) in &rows {
        let word = if done.is_ok() { "ok" } else { "FAILED" };
        eprintln!("{name:<12} {:>8.1} s  {word}", took.as_secs_f64());
    }
    let failed: Vec<_> = rows
        .iter()
        .filter(|row| row.2.is_err())
        .map(|row| row.0)
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}
