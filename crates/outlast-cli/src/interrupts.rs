//! Ctrl-C, also where nobody waits for it at that moment.

use tokio::signal::unix::{Signal, SignalKind, signal};

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
