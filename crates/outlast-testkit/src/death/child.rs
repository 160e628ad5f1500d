//! The parent of a death test: starts a child process, reads its acknowledgements and kills it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Ack;

/// How a child ends.
#[derive(Clone, Copy, Debug)]
pub enum Death {
    /// The parent kills it after this time.
    After(Duration),
    /// It aborts itself when it reaches a named point for the n-th time.
    At {
        /// The point: `before-commit`, `after-commit`, `before-ack`, `before-notify`.
        point: &'static str,
        /// How many times it reaches the point.
        nth: u64,
    },
}

/// A child process that runs.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    acks: mpsc::Receiver<Ack>,
    death: Death,
}

/// The end of a child process.
#[derive(Debug)]
pub struct ChildEnd {
    /// What the child acknowledged.
    pub acks: Vec<Ack>,
    /// Whether it ended as planned. A child may never reach the point at which it would abort.
    pub as_planned: bool,
}

impl ChildProcess {
    /// Starts `program`, which is `death_child`, on the store at `path`. `trouble` is passed
    /// unchanged, such as `fsync@7`. `ttl` replaces the default TTL of tasks.
    pub fn start(
        program: &Path,
        path: &Path,
        seed: u64,
        death: Death,
        trouble: Option<&str>,
        ttl: Option<Duration>,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(path)
            .arg(seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Death::At { point, nth } = death {
            command.arg(format!("die={point}@{nth}"));
        }
        if let Some(trouble) = trouble {
            command.arg(format!("trouble={trouble}"));
        }
        if let Some(ttl) = ttl {
            command.arg(format!("ttl={}", ttl.as_millis()));
        }
        let mut child = command.spawn()?;
        let (sender, acks) = mpsc::channel();
        let stdout = child.stdout.take().expect("the child's stdout is a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Some(ack) = Ack::read(&line) else {
                    continue;
                };
                if sender.send(ack).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, acks, death })
    }

    /// The resident memory of the child in bytes, if the system reports it.
    pub fn memory(&self) -> Option<u64> {
        let about = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = about.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1_024)
    }

    /// Waits for the end of the child, or kills it, and returns everything that it acknowledged.
    pub fn end(mut self) -> std::io::Result<ChildEnd> {
        let as_planned = match self.death {
            Death::After(time) => {
                std::thread::sleep(time);
                // If it has ended already, it failed.
                self.child.try_wait()?.is_none()
            }
            Death::At { .. } => self.aborts()?,
        };
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        self.child.wait()?;
        // The pipe is read to its end: everything that the child wrote counts.
        Ok(ChildEnd {
            acks: self.acks.iter().collect(),
            as_planned,
        })
    }

    fn aborts(&mut self) -> std::io::Result<bool> {
        for _ in 0..MAX_POLLS {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }
}

/// How often the parent checks, every 5 ms, whether the child has aborted, before it kills it.
const MAX_POLLS: u32 = 4_000;
