//! Ctrl-C and SIGTERM, also when no code waits for them at that moment.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::say;

/// Hears every Ctrl-C from its beginning on.
pub(crate) struct Interrupts(Option<Signal>);

impl Interrupts {
    pub(crate) fn listen() -> Self {
        // Where it cannot be heard, it ends the program as ever.
        Self(signal(SignalKind::interrupt()).ok())
    }

    /// Resolves at the next one, or at once if there was one since the last.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Ctrl-C and SIGTERM for a command that stops in order.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// From now on neither ends the process by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves at the next signal, or at once if one came since the last.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Runs an orderly stop. Another signal ends the process at once.
    pub(crate) async fn during<T>(&mut self, stopping: impl Future<Output = T>) -> T {
        tokio::select! {
            stopped = stopping => stopped,
            () = self.next() => {
                say!("outlast: stopped at once; the next start recovers the tasks that were running");
                std::process::exit(STOPPED_AT_ONCE)
            }
        }
    }
}

/// What a command prints when it begins to stop in order.
pub(crate) const STOPPING: &str = "stopping: running calls have 10 s, the next start recovers the rest; \
                                   Ctrl-C or SIGTERM again stops at once";

/// The exit code after a second signal: failed, for a printed reason.
const STOPPED_AT_ONCE: i32 = 1;
