//! The settings of a workspace. They are read when they are needed, so that a change needs no
//! reconnect.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// The settings of a workspace.
#[derive(Debug)]
pub struct WorkspaceSettings {
    task_ttl_ms: AtomicU64,
    decline_fails: AtomicBool,
    pub(super) roots: Mutex<Vec<String>>,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            task_ttl_ms: AtomicU64::new(DEFAULT_TASK_TTL_MS),
            decline_fails: AtomicBool::new(false),
            roots: Mutex::default(),
        }
    }
}

impl WorkspaceSettings {
    /// The TTL of tasks that are created by calls, and of those that servers create here without a
    /// TTL of their own, in milliseconds (S1-61).
    pub fn task_ttl_ms(&self) -> u64 {
        self.task_ttl_ms.load(Ordering::Relaxed)
    }

    /// Sets [`WorkspaceSettings::task_ttl_ms`], from a second to 30 days.
    pub fn set_task_ttl_ms(&self, millis: u64) {
        let millis = millis.clamp(MIN_TASK_TTL_MS, MAX_TASK_TTL_MS);
        self.task_ttl_ms.store(millis, Ordering::Relaxed);
    }

    /// Whether the task of a declined elicitation fails, as the seeds say (S1-60). Otherwise it
    /// completes with the action `decline`.
    pub fn decline_fails(&self) -> bool {
        self.decline_fails.load(Ordering::Relaxed)
    }

    /// Sets [`WorkspaceSettings::decline_fails`].
    pub fn set_decline_fails(&self, fails: bool) {
        self.decline_fails.store(fails, Ordering::Relaxed);
    }
}

/// An hour, the default of servers of this library.
const DEFAULT_TASK_TTL_MS: u64 = 3_600_000;
const MIN_TASK_TTL_MS: u64 = 1_000;
const MAX_TASK_TTL_MS: u64 = 30 * 24 * 3_600_000;
