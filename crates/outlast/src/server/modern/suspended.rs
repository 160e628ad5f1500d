//! Calls that have returned input requests and wait for the retry (V2-MRTR, BR-IN-4, BR-IN-5).
//!
//! Only the retry for the current round takes a suspended call out. A second retry, or a retry
//! after a restart, finds no call and does not run it again. A call without a retry is stopped
//! after a timeout (V2-MRTR-6).

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Owner;
use outlast_engine::TaskId;
use outlast_engine::engine::RunningCall;
use parking_lot::{Mutex, MutexGuard};

/// The suspended calls.
pub(crate) struct SuspendedCalls {
    calls: Mutex<HashMap<TaskId, SuspendedCall>>,
    /// How long a call stays suspended.
    timeout: Duration,
}

/// A suspended call.
pub(super) struct SuspendedCall {
    pub(super) running: RunningCall,
    pub(super) owner: Owner,
    /// How often it was suspended before.
    pub(super) round: u32,
}

/// The limit of suspended calls is reached; the call was stopped.
pub(super) struct TooManySuspended;

impl SuspendedCalls {
    /// An empty set of calls, each of which is suspended for at most `timeout`.
    pub(crate) fn new(timeout: Duration) -> Arc<Self> {
        let calls = Mutex::default();
        Arc::new(Self { calls, timeout })
    }

    /// How long a call stays suspended.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Suspends a call.
    pub(super) fn add(self: &Arc<Self>, suspended: SuspendedCall) -> Result<(), TooManySuspended> {
        let (call, round) = (suspended.running.id(), suspended.round);
        {
            let mut calls = self.calls();
            let owned = calls
                .values()
                .filter(|other| other.owner == suspended.owner);
            if calls.len() >= MAX_SUSPENDED_CALLS || owned.count() >= MAX_SUSPENDED_CALLS_PER_OWNER
            {
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
                // Dropping the call stops it.
                tracing::info!(%call, "stopped a suspended call: no retry arrived in time");
            }
        });
        Ok(())
    }

    /// Takes out a call that is suspended in this round.
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

/// How long a call waits for the retry. The client may have to ask a person.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How many calls may be suspended.
const MAX_SUSPENDED_CALLS: usize = 4_096;

/// How many calls of one owner may be suspended.
const MAX_SUSPENDED_CALLS_PER_OWNER: usize = 64;
