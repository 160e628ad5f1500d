//! The phases of an engine, from starting to closed. Every step of a call reads the phase.

use std::sync::Arc;

use tokio::sync::watch;

use crate::runtime::atomic::{AtomicU8, Ordering};

/// Whether an engine accepts work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum EnginePhase {
    /// The store is being opened, or tasks of a previous run are being recovered. No request is
    /// served.
    Starting,
    Open,
    /// No new work is accepted. Running calls may finish.
    Draining,
    Closed,
}

/// Reads the phase.
#[derive(Debug)]
pub(crate) struct PhaseWatch {
    now: Arc<AtomicU8>,
    changes: watch::Receiver<()>,
}

/// Changes the phase. Dropping it closes the engine for those that wait for that.
#[derive(Debug)]
pub(crate) struct ShutdownGuard {
    now: Arc<AtomicU8>,
    changes: watch::Sender<()>,
}

/// The phase of an engine that starts.
pub(crate) fn starting() -> (ShutdownGuard, PhaseWatch) {
    let now = Arc::new(AtomicU8::new(EnginePhase::Starting as u8));
    let (sender, changes) = watch::channel(());
    let guard = ShutdownGuard {
        now: now.clone(),
        changes: sender,
    };
    (guard, PhaseWatch { now, changes })
}

impl ShutdownGuard {
    pub(crate) fn enter(&self, phase: EnginePhase) {
        self.now.store(phase as u8, Ordering::SeqCst);
        self.changes.send_replace(());
    }
}

impl PhaseWatch {
    pub(crate) fn now(&self) -> EnginePhase {
        match self.now.load(Ordering::SeqCst) {
            STARTING => EnginePhase::Starting,
            OPEN => EnginePhase::Open,
            DRAINING => EnginePhase::Draining,
            _ => EnginePhase::Closed,
        }
    }

    /// Resolves when `phase` is reached, or when the last handle is dropped, which also closes the
    /// engine.
    pub(crate) async fn reached(&self, phase: EnginePhase) {
        let mut changes = self.changes.clone();
        loop {
            // In this order, so that no change is missed between the check and the wait.
            changes.mark_unchanged();
            if self.now() >= phase || changes.changed().await.is_err() {
                return;
            }
        }
    }
}

const STARTING: u8 = EnginePhase::Starting as u8;
const OPEN: u8 = EnginePhase::Open as u8;
const DRAINING: u8 = EnginePhase::Draining as u8;
