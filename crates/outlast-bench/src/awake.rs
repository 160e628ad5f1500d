//! Keeps the processors awake while one client at a time is served.
//!
//! Between two requests of a lone client an idle machine puts its processors to sleep, and waking one up, on a virtual
//! machine above all, takes longer than any answer: what is measured then is the machine. On every processor something
//! goes round that gives way to everything else at once, and takes nothing of the servers' own time.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::Done;

/// Processors do not sleep as long as this lives.
pub(crate) struct Awake(Vec<Child>);

impl Awake {
    pub(crate) fn keep() -> Done<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut all = Self(Vec::new());
        for _ in 0..processors {
            let mut command = Command::new("chrt");
            command
                .args(["--idle", "0"])
                .arg(std::env::current_exe()?)
                .arg("awake");
            let started = command.stdin(Stdio::piped()).spawn();
            let started = started.map_err(|error| {
                format!("chrt (of util-linux) is needed to keep the processors awake: {error}")
            })?;
            all.0.push(started);
        }
        Ok(all)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already keeps nothing awake.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Goes round until nobody holds the other end of standard input.
pub(crate) fn run() -> ! {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut rounds = 0_u64;
    loop {
        // Not with the hint for loops that wait: virtual machines take it for leave to sleep.
        rounds = std::hint::black_box(rounds.wrapping_add(1));
    }
}
