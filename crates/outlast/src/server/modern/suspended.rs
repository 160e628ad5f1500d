//! Calls that have asked their caller and wait for the retry that answers (V2-MRTR, BR-IN-4, BR-IN-5).
//!
//! A parked call is taken out by the retry that answers its round of questions, and by nobody else: whoever comes
//! second, or after a restart, finds nothing and is not served by a second run. One whose caller never comes back is
//! stopped after a while (V2-MRTR-6).

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Owner;
use outlast_engine::TaskId;
use outlast_engine::engine::RunningCall;
use parking_lot::{Mutex, MutexGuard};

/// The calls that wait for a retry.
pub(crate) struct SuspendedCalls {
    calls: Mutex<HashMap<TaskId, SuspendedCall>>,
    /// How long a call waits.
    timeout: Duration,
}

/// A call that waits.
pub(super) struct SuspendedCall {
    pub(super) running: RunningCall,
    pub(super) owner: Owner,
    /// How often it was parked before.
    pub(super) round: u32,
}

/// There is no room for another call that waits; that call was stopped.
pub(super) struct TooManySuspended;

impl SuspendedCalls {
    /// Nothing waits yet; what will waits for `timeout`.
    pub(crate) fn new(timeout: Duration) -> Arc<Self> {
        let calls = Mutex::default();
        Arc::new(Self { calls, timeout })
    }

    /// How long a call waits.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Lets a call wait.
    pub(super) fn add(self: &Arc<Self>, suspended: SuspendedCall) -> Result<(), TooManySuspended> {
        let (call, round) = (suspended.running.id(), suspended.round);
        {
            let mut calls = self.calls();
            let owned = calls
                .values()
                .filter(|other| other.owner == suspended.owner);
            if calls.len() >= MAX_SUSPENDED || owned.count() >= MAX_SUSPENDED_PER_OWNER {
                return Err(TooManySuspended);
            }
            calls.insert(call, suspended);
        }
        let (suspended_calls, timeout) = (Arc::downgrade(self), self.timeout);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            if let Some(suspended_calls) = Weak::upgrade(&suspended_calls)
                && suspended_calls.take(call, round).is_some()
            {
                // Dropping the call has stopped it.
                tracing::info!(%call, "a call was given up: its caller did not answer");
            }
        });
        Ok(())
    }

    /// Takes out a call that waits in this round.
    pub(super) fn take(&self, call: TaskId, round: u32) -> Option<SuspendedCall> {
        let mut calls = self.calls();
        match calls.get(&call) {
            Some(suspended) if suspended.round == round => calls.remove(&call),
            _ => None,
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<TaskId, SuspendedCall>> {
        self.calls.lock()
    }
}

/// How long a call waits for its caller, who may have to ask a person.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How many calls may wait.
const MAX_SUSPENDED: usize = 4_096;

/// How many calls of one owner may wait.
const MAX_SUSPENDED_PER_OWNER: usize = 64;
