//! The parent: gives life to a child, reads what it says, and takes the life again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Ack;

/// How a child dies.
#[derive(Clone, Copy, Debug)]
pub enum Death {
    /// Killed from outside after that time.
    After(Duration),
    /// By its own hand at a named point, the n-th time it comes there.
    At {
        /// The point: `before-commit`, `after-commit`, `before-ack`, `before-notify`.
        point: &'static str,
        /// The n-th time.
        nth: u64,
    },
}

/// One child.
#[derive(Debug)]
pub struct Life {
    child: Child,
    said: mpsc::Receiver<Ack>,
    death: Death,
}

/// What a life came to.
#[derive(Debug)]
pub struct Ended {
    /// What the child said.
    pub acks: Vec<Ack>,
    /// Whether it died as planned: a child that was to die by its own hand may live too quietly.
    pub as_planned: bool,
}

impl Life {
    /// Starts the program `mortal` on the store at `path`. `trouble` is passed on as it stands, such as
    /// `fsync@7`. Tasks live for `ttl`, or for the policy's default.
    pub fn begin(
        mortal: &Path,
        path: &Path,
        seed: u64,
        death: Death,
        trouble: Option<&str>,
        ttl: Option<Duration>,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(mortal);
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
        let (tell, said) = mpsc::channel();
        let stdout = child.stdout.take().expect("the child's stdout is a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Some(ack) = Ack::read(&line) else {
                    continue;
                };
                if tell.send(ack).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, said, death })
    }

    /// How much memory the child has in use, in bytes, where the system tells.
    pub fn memory(&self) -> Option<u64> {
        let about = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = about.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1_024)
    }

    /// Waits for the death, or brings it, and returns everything that was said.
    pub fn end(mut self) -> std::io::Result<Ended> {
        let as_planned = match self.death {
            Death::After(time) => {
                std::thread::sleep(time);
                // Still running: otherwise it died for a reason of its own.
                self.child.try_wait()?.is_none()
            }
            Death::At { .. } => self.dies_by_itself()?,
        };
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        self.child.wait()?;
        // The pipe is read to its end: whatever the child wrote before it died counts.
        Ok(Ended {
            acks: self.said.iter().collect(),
            as_planned,
        })
    }

    fn dies_by_itself(&mut self) -> std::io::Result<bool> {
        for _ in 0..PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }
}

/// How many times a child is looked after, 5 ms apart, before it is killed after all.
const PATIENCE: u32 = 4_000;
