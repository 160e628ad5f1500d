//! Limits on the open tool calls of an upstream, in total and for each owner. A call that waits for
//! a permit or for an input response is open, too.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::Owner;
use outlast_wire::codes;
use outlast_wire::envelope::ErrorObject;
use parking_lot::{Mutex, MutexGuard};

use super::{Settings, Upstream};

/// The open calls.
#[derive(Clone, Default)]
pub(super) struct OpenCalls(Arc<Mutex<OpenCallCounts>>);

#[derive(Default)]
struct OpenCallCounts {
    all: usize,
    owners: HashMap<Owner, usize>,
}

/// Counts a call as open until it is dropped.
pub(super) struct CallPermit(Option<(OpenCalls, Owner)>);

impl Upstream {
    /// A permit for a call of `owner`, unless a limit is reached.
    pub(super) fn admit(&self, owner: &Owner) -> Result<CallPermit, ErrorObject> {
        if !is_limited(&self.settings) {
            return Ok(CallPermit(None));
        }
        let mut counts = self.open_calls.counts();
        self.check(&counts, owner)?;
        Ok(self.open_calls.add(&mut counts, owner))
    }

    /// A permit for a call that was admitted before, such as by a previous run of this process. It
    /// ignores the limits.
    pub(super) fn admit_again(&self, owner: &Owner) -> CallPermit {
        if is_limited(&self.settings) {
            self.open_calls.add(&mut self.open_calls.counts(), owner)
        } else {
            CallPermit(None)
        }
    }

    fn check(&self, counts: &OpenCallCounts, owner: &Owner) -> Result<(), ErrorObject> {
        let own = counts.owners.get(owner).copied().unwrap_or_default();
        let limits = [
            (counts.all, self.settings.max_open_calls, "openCalls"),
            (
                own,
                self.settings.max_open_calls_per_owner,
                "openCallsPerOwner",
            ),
        ];
        for (open, most, setting) in limits {
            if let Some(most) = most.filter(|most| open >= *most) {
                return Err(codes::internal(format!(
                    "{} has {most} calls open, which is the limit (setting `{setting}`); try again when one has ended",
                    self.name
                )));
            }
        }
        Ok(())
    }
}

impl OpenCalls {
    fn add(&self, counts: &mut OpenCallCounts, owner: &Owner) -> CallPermit {
        counts.all += 1;
        *counts.owners.entry(owner.clone()).or_default() += 1;
        CallPermit(Some((self.clone(), owner.clone())))
    }

    fn counts(&self) -> MutexGuard<'_, OpenCallCounts> {
        self.0.lock()
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some((open_calls, owner)) = &self.0 else {
            return;
        };
        let mut counts = open_calls.counts();
        counts.all -= 1;
        if let Some(open) = counts.owners.get_mut(owner) {
            *open -= 1;
            if *open == 0 {
                counts.owners.remove(owner);
            }
        }
    }
}

fn is_limited(settings: &Settings) -> bool {
    settings.max_open_calls.is_some() || settings.max_open_calls_per_owner.is_some()
}
