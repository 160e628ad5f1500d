//! The index of sessions: the owner that each counts for, and which are in memory. The
//! [`SessionTable`](super::SessionTable) holds it under its lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use outlast_engine::store::Record;
use outlast_engine::{Owner, TaskId};
use outlast_wire::Timestamp;

use super::usage::{SessionUse, now};
use super::{Session, record};

/// A session in memory.
pub(crate) struct LiveSession {
    pub(crate) session: Arc<Session>,
    pub(super) usage: Arc<SessionUse>,
}

/// The indexed sessions, and the reserved slots.
#[derive(Default)]
pub(super) struct Slots {
    by_name: HashMap<Arc<str>, Slot>,
    by_owner: HashMap<Owner, OwnerSessions>,
    reserved: usize,
}

/// The sessions that count for one owner.
#[derive(Default)]
struct OwnerSessions {
    names: HashSet<Arc<str>>,
    reserved: usize,
}

struct Slot {
    usage: Arc<SessionUse>,
    /// `None` if no request has named the session since the process started.
    live: Option<Arc<LiveSession>>,
}

/// A copy of the state of a session without open requests and streams.
pub(super) struct IdleSession {
    pub(super) name: Arc<str>,
    pub(super) usage: Arc<SessionUse>,
    pub(super) created_tasks: Vec<TaskId>,
    pub(super) last_used: Timestamp,
    /// Whether it is in the memory of this process.
    pub(super) is_live: bool,
}

/// The session is not in memory; it may be stored.
pub(super) struct NotLive;

/// The limit that rejects a new session: all sessions are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionLimitReached {
    /// The limit of one owner.
    Owner(usize),
    /// The limit of all sessions.
    All(usize),
}

impl Slots {
    /// Reserves a slot for a session that counts for `owner`, within the limit of all sessions and
    /// the limit per owner.
    pub(super) fn reserve(
        &mut self,
        owner: &Owner,
        max: usize,
        max_per_owner: usize,
    ) -> Result<(), SessionLimitReached> {
        if self.by_owner.get(owner).map_or(0, OwnerSessions::size) >= max_per_owner {
            return Err(SessionLimitReached::Owner(max_per_owner));
        }
        if self.by_name.len() + self.reserved >= max {
            return Err(SessionLimitReached::All(max));
        }
        self.reserved += 1;
        self.by_owner.entry(owner.clone()).or_default().reserved += 1;
        Ok(())
    }

    /// Releases a reserved slot.
    pub(super) fn release(&mut self, owner: &Owner) {
        self.reserved -= 1;
        self.change(owner, |account| account.reserved -= 1);
    }

    /// The owners of sessions, the one with most sessions first.
    pub(super) fn owners_by_size(&self) -> Vec<Owner> {
        let mut owners: Vec<_> = self.by_owner.iter().collect();
        owners.sort_by_key(|(_, account)| std::cmp::Reverse(account.size()));
        owners.into_iter().map(|(owner, _)| owner.clone()).collect()
    }

    /// Finds the session with this id and records its use; `None` if it has ended.
    pub(super) fn find(
        &self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<LiveSession>>, NotLive> {
        let slot = self.by_name.get(name).ok_or(NotLive)?;
        if slot.usage.has_ended() {
            return Ok(None);
        }
        let entry = slot.live.clone().ok_or(NotLive)?;
        entry.usage.mark_used(now);
        Ok(Some(entry))
    }

    /// Adds a session, unless it is in memory, and records its use. `None` if it has ended.
    pub(super) fn activate(
        &mut self,
        session: Arc<Session>,
        usage: SessionUse,
    ) -> Option<Arc<LiveSession>> {
        let slot = self.slot(session.id.as_str().into(), usage);
        if slot.usage.has_ended() {
            return None;
        }
        slot.usage.mark_used(now());
        Some(slot.activate(session))
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(slot) = self.by_name.remove(name) {
            self.change(slot.usage.counts_for(), |account| {
                account.names.remove(name);
            });
        }
    }

    /// Updates the index from the store: other processes on the same store add and remove sessions.
    pub(super) fn sync_with_store(&mut self, records: &[Record]) {
        let stored: HashSet<&str> = records.iter().map(|record| &*record.key.key).collect();
        let gone = |(name, slot): (&Arc<str>, &Slot)| {
            let is_gone = slot.live.is_none() && !stored.contains(&**name);
            is_gone.then(|| name.clone())
        };
        let gone: Vec<_> = self.by_name.iter().filter_map(gone).collect();
        for name in gone {
            self.remove(&name);
        }
        for record in records {
            let (Some(stored), Some(owner)) = (record::read(record), record.owner.clone()) else {
                continue;
            };
            let used = stored.used.unwrap_or_default();
            let slot = self.slot((*record.key.key).into(), SessionUse::stored(owner, stored));
            // Another process may have served the session.
            slot.usage.mark_used(used);
        }
    }

    /// The sessions in memory.
    pub(super) fn live(&self) -> impl Iterator<Item = &Arc<LiveSession>> {
        self.by_name.values().filter_map(|slot| slot.live.as_ref())
    }

    /// Removes the sessions from memory. They stay in the index.
    pub(super) fn take_live(&mut self) -> Vec<Arc<LiveSession>> {
        let slots = self.by_name.values_mut();
        slots.filter_map(|slot| slot.live.take()).collect()
    }

    /// Removes a session from memory. It stays in the index.
    pub(super) fn forget(&mut self, name: &str) -> Option<Arc<LiveSession>> {
        self.by_name.get_mut(name)?.live.take()
    }

    /// Whether a session is in memory.
    pub(super) fn is_live(&self, name: &str) -> bool {
        self.by_name
            .get(name)
            .is_some_and(|slot| slot.live.is_some())
    }

    /// Sessions without open requests and streams whose last use is not after `since`.
    pub(super) fn idle_since(&self, since: Timestamp) -> Vec<IdleSession> {
        let idle = self.by_name.iter();
        idle.filter_map(|(name, slot)| slot.idle(name))
            .filter(|idle| idle.last_used <= since)
            .collect()
    }

    /// Sessions of `owner` without open requests and streams.
    pub(super) fn idle_of(&self, owner: &Owner) -> Vec<IdleSession> {
        let Some(account) = self.by_owner.get(owner) else {
            return Vec::new();
        };
        let names = account.names.iter();
        names
            .filter_map(|name| self.by_name.get(name)?.idle(name))
            .collect()
    }

    /// The slot with this id. A new slot counts for the owner in `usage`.
    fn slot(&mut self, name: Arc<str>, usage: SessionUse) -> &mut Slot {
        let Self {
            by_name, by_owner, ..
        } = self;
        by_name.entry(name).or_insert_with_key(|name| {
            let account = by_owner.entry(usage.counts_for().clone()).or_default();
            account.names.insert(name.clone());
            Slot {
                usage: Arc::new(usage),
                live: None,
            }
        })
    }

    /// Changes the sessions of `owner`; removes an empty entry.
    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut OwnerSessions)) {
        if let Some(account) = self.by_owner.get_mut(owner) {
            change(account);
            if account.size() == 0 {
                self.by_owner.remove(owner);
            }
        }
    }
}

impl OwnerSessions {
    fn size(&self) -> usize {
        self.names.len() + self.reserved
    }
}

impl Slot {
    /// The session of this slot in memory, or `session` if the slot is empty.
    fn activate(&mut self, session: Arc<Session>) -> Arc<LiveSession> {
        let usage = self.usage.clone();
        let live = || Arc::new(LiveSession { session, usage });
        self.live.get_or_insert_with(live).clone()
    }

    fn idle(&self, name: &Arc<str>) -> Option<IdleSession> {
        let usage = &self.usage;
        (!usage.is_open() && !usage.has_ended()).then(|| IdleSession {
            name: name.clone(),
            usage: usage.clone(),
            created_tasks: match &self.live {
                Some(entry) => entry.session.created_tasks.all(),
                None => usage.stored_tasks().to_vec(),
            },
            last_used: usage.last_used(),
            is_live: self.live.is_some(),
        })
    }
}
