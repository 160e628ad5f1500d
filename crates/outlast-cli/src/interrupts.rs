//! Ctrl-C and SIGTERM, including those that arrive while no code awaits them.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::say;

/// Receives every Ctrl-C after its creation.
pub(crate) struct Interrupts(Option<Signal>);

impl Interrupts {
    pub(crate) fn listen() -> Self {
        // If the handler cannot be installed, Ctrl-C ends the program as usual.
        Self(signal(SignalKind::interrupt()).ok())
    }

    /// Resolves at the next Ctrl-C, or immediately if one arrived since the last call.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Ctrl-C and SIGTERM, for a command with an orderly shutdown.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Installs the handlers. From now on neither signal ends the process by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves at the next signal, or immediately if one arrived since the last call.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Runs an orderly shutdown. Another signal ends the process immediately.
    pub(crate) async fn during<T>(&mut self, stopping: impl Future<Output = T>) -> T {
        tokio::select! {
            stopped = stopping => stopped,
            () = self.next() => {
                say!("outlast: stopped at once; the next start recovers the tasks that were running");
                std::process::exit(SECOND_SIGNAL_EXIT_CODE)
            }
        }
    }
}

/// The message at the start of an orderly shutdown.
pub(crate) const STOPPING_MESSAGE: &str = "stopping: running calls have 10 s, the next start recovers the rest; \
                                   Ctrl-C or SIGTERM again stops at once";

/// The exit code after a second signal: a failure whose reason was printed.
const SECOND_SIGNAL_EXIT_CODE: i32 = 1;
