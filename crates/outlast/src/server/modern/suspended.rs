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
pub(crate) struct Parking {
    calls: Mutex<HashMap<TaskId, Parked>>,
    /// How long a call waits.
    patience: Duration,
}

/// A call that waits.
pub(super) struct Parked {
    pub(super) running: RunningCall,
    pub(super) owner: Owner,
    /// How often it was parked before.
    pub(super) round: u32,
}

/// There is no room for another call that waits; that call was stopped.
pub(super) struct Full;

impl Parking {
    /// Nothing waits yet; what will waits for `patience`.
    pub(crate) fn new(patience: Duration) -> Arc<Self> {
        let calls = Mutex::default();
        Arc::new(Self { calls, patience })
    }

    /// How long a call waits.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Lets a call wait.
    pub(super) fn put(self: &Arc<Self>, parked: Parked) -> Result<(), Full> {
        let (call, round) = (parked.running.id(), parked.round);
        {
            let mut calls = self.calls();
            let own = calls.values().filter(|other| other.owner == parked.owner);
            if calls.len() >= ALL || own.count() >= OWN {
                return Err(Full);
            }
            calls.insert(call, parked);
        }
        let (parking, patience) = (Arc::downgrade(self), self.patience);
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            if let Some(parking) = Weak::upgrade(&parking)
                && parking.take(call, round).is_some()
            {
                // Dropping the call has stopped it.
                tracing::info!(%call, "a call was given up: its caller did not answer");
            }
        });
        Ok(())
    }

    /// Takes out a call that waits in this round.
    pub(super) fn take(&self, call: TaskId, round: u32) -> Option<Parked> {
        let mut calls = self.calls();
        match calls.get(&call) {
            Some(parked) if parked.round == round => calls.remove(&call),
            _ => None,
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<TaskId, Parked>> {
        self.calls.lock()
    }
}

/// How long a call waits for its caller, who may have to ask a person.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How many calls may wait.
const ALL: usize = 4_096;

/// How many calls of one owner may wait.
const OWN: usize = 64;
