//! How many calls of tools are open at an upstream, of everybody and of each owner, where that is limited. One that waits
//! for its turn or for an answer is open, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::Owner;
use outlast_wire::codes;
use outlast_wire::envelope::ErrorObject;

use super::{Settings, Upstream};

#[derive(Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    all: usize,
    owners: HashMap<Owner, usize>,
}

/// That a call is open.
pub(super) struct Inside(Option<(Crowd, Owner)>);

impl Upstream {
    /// Refuses where one more call of `owner` would be too many.
    pub(super) fn has_room(&self, owner: &Owner) -> Result<(), ErrorObject> {
        match is_limited(&self.settings) {
            true => self.check(&self.crowd.counts(), owner),
            false => Ok(()),
        }
    }

    /// A call of `owner` is open, as long as what is returned lives.
    pub(super) fn enter(&self, owner: &Owner) -> Result<Inside, ErrorObject> {
        if !is_limited(&self.settings) {
            return Ok(Inside(None));
        }
        let mut counts = self.crowd.counts();
        self.check(&counts, owner)?;
        Ok(self.crowd.enter(&mut counts, owner))
    }

    /// The same for a call that was let in before, in an earlier life of this process: it counts, however many there are.
    pub(super) fn enter_again(&self, owner: &Owner) -> Inside {
        match is_limited(&self.settings) {
            true => self.crowd.enter(&mut self.crowd.counts(), owner),
            false => Inside(None),
        }
    }

    fn check(&self, counts: &Counts, owner: &Owner) -> Result<(), ErrorObject> {
        let own = counts.owners.get(owner).copied().unwrap_or_default();
        let limits = [
            (counts.all, self.settings.open_calls, "openCalls"),
            (own, self.settings.open_calls_per_owner, "openCallsPerOwner"),
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

impl Crowd {
    fn enter(&self, counts: &mut Counts, owner: &Owner) -> Inside {
        counts.all += 1;
        *counts.owners.entry(owner.clone()).or_default() += 1;
        Inside(Some((self.clone(), owner.clone())))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Every critical section is a few map operations that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some((crowd, owner)) = &self.0 else {
            return;
        };
        let mut counts = crowd.counts();
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
    settings.open_calls.is_some() || settings.open_calls_per_owner.is_some()
}
