//! Parts of a longer run: each is a command, timed, and the table at the end says how it went.

use std::process::Command;
use std::time::{Duration, Instant};

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

/// Runs `command` and says what went wrong, if anything did.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} ended with {status}")),
    }
}

/// Runs all parts, also after one has failed, and prints the time of each.
pub(crate) fn run_all(parts: Vec<Part>) -> Result<(), String> {
    let mut rows: Vec<(&str, Duration, Result<(), String>)> = Vec::new();
    for part in parts {
        eprintln!("\n== {} ==", part.name);
        let began = Instant::now();
        let done = (part.work)();
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
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}
