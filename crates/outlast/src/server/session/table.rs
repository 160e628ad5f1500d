//! All stored sessions of a server, over all its endpoints: their limits and the eviction of idle
//! ones.
//!
//! The number of sessions is limited, in total and per owner; an anonymous session counts for the
//! address that created it. At a limit, the session that is idle for longest is evicted: of the
//! owner at its limit or, at the total limit, of the owner with most sessions. A session with an
//! open request, stream or task is never evicted. If there are only such sessions, a new session is
//! rejected.
//!
//! A sweep evicts sessions without tasks that are idle for longer than [`SessionLimits::idle_ms`].
//! The last use of a session is stored with it, so the limits hold over a restart. The stored time
//! can be older than the real one, by at most a quarter of `idle_ms`.
//!
//! [`Slots`] has the index of sessions, [`SessionUse`] the last use of each.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::store::{RecordWrite, StoreError};
use outlast_engine::{Engine, Owner, Scope};
use outlast_wire::Timestamp;
use parking_lot::RwLock;

use super::record::{self, StoredSession};
use super::slots::{IdleSession, LiveSession, NotLive, SessionLimitReached, Slots};
use super::usage::{SessionUse, StreamPermit, now};
use super::{Session, SessionId};

/// The limits of sessions.
pub(crate) struct SessionLimits {
    /// The maximum number of sessions.
    pub(crate) max_sessions: usize,
    /// The maximum number of sessions that count for one owner.
    pub(crate) max_sessions_per_owner: usize,
    /// The maximum number of open requests and streams of one session.
    pub(crate) max_streams: usize,
    /// How long a session without requests, streams and tasks is kept, in milliseconds.
    pub(crate) idle_ms: u64,
    /// Whether other nodes have sessions in the same store. Their streams are not known here.
    pub(crate) is_shared: bool,
}

/// All sessions of a server.
pub(crate) struct SessionTable {
    engine: Engine,
    limits: SessionLimits,
    slots: RwLock<Slots>,
}

/// A slot for one session, until it is filled or dropped.
pub(crate) struct SessionReservation {
    table: Arc<SessionTable>,
    counts_for: Owner,
    filled: bool,
}

/// The tasks that a session is kept for.
#[derive(PartialEq, Eq)]
enum RetainedTasks {
    None,
    /// Ended tasks that no other session can access.
    Ended,
    Open,
}

impl SessionTable {
    /// Loads the sessions from the store of `engine`.
    pub(crate) async fn load(
        engine: Engine,
        limits: SessionLimits,
    ) -> Result<Arc<Self>, StoreError> {
        let table = Self::new(engine, limits);
        match table.sweep().await {
            // Sessions are read once the store is open.
            Ok(()) | Err(StoreError::Starting) => Ok(table),
            Err(error) => Err(error),
        }
    }

    /// A table that reads the stored sessions in its first sweep. Until then they do not count for
    /// the limits.
    pub(crate) fn new(engine: Engine, limits: SessionLimits) -> Arc<Self> {
        Arc::new(Self {
            engine,
            limits,
            slots: RwLock::default(),
        })
    }

    /// Reserves a slot for a session that counts for `owner`. At a limit, the session that is idle
    /// for longest is evicted.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        owner: &Owner,
    ) -> Result<SessionReservation, SessionLimitReached> {
        loop {
            let full = match self.try_reserve(owner) {
                Ok(reservation) => return Ok(reservation),
                Err(full) => full,
            };
            let owners = match full {
                SessionLimitReached::Owner(_) => vec![owner.clone()],
                SessionLimitReached::All(_) => self.slots.read().owners_by_size(),
            };
            let mut evicted = false;
            for owner in owners {
                evicted = self.evict_oldest(&owner).await;
                if evicted {
                    break;
                }
            }
            if !evicted {
                return Err(full);
            }
        }
    }

    fn try_reserve(
        self: &Arc<Self>,
        owner: &Owner,
    ) -> Result<SessionReservation, SessionLimitReached> {
        let SessionLimits {
            max_sessions,
            max_sessions_per_owner,
            ..
        } = self.limits;
        let mut slots = self.slots.write();
        slots.reserve(owner, max_sessions, max_sessions_per_owner)?;
        Ok(SessionReservation {
            table: self.clone(),
            counts_for: owner.clone(),
            filled: false,
        })
    }

    /// Evicts the session of `owner` that is idle for longest, if there is one.
    async fn evict_oldest(&self, owner: &Owner) -> bool {
        let mut idle = self.slots.read().idle_of(owner);
        idle.retain(|session| !self.may_be_used_elsewhere(session));
        idle.sort_unstable_by_key(|session| session.last_used);
        for session in idle {
            if self.tasks_of(&session).await != RetainedTasks::Open
                && self.evict(vec![session]).await > 0
            {
                return true;
            }
        }
        false
    }

    /// Whether another node may have a stream of the session. A node stores the use of such a
    /// session every quarter of the idle time, and its sweep may be as late again.
    fn may_be_used_elsewhere(&self, session: &IdleSession) -> bool {
        let recent = now().0.saturating_sub(self.limits.idle_ms / 2);
        self.limits.is_shared && !session.is_live && session.last_used.0 >= recent
    }

    /// The session with this id, and records its use; `Err` if it is not in memory but may be
    /// stored.
    pub(super) fn live(
        &self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<LiveSession>>, NotLive> {
        // Under the lock: a session that is about to be evicted is either marked as used, or not
        // found.
        self.slots.read().find(name, now)
    }

    /// Adds a session that was stored just now. `None` if it ended meanwhile.
    pub(super) fn add(
        &self,
        session: Arc<Session>,
        mut reservation: SessionReservation,
    ) -> Option<Arc<LiveSession>> {
        let usage = SessionUse::new(session.owner.clone(), reservation.counts_for.clone());
        let mut slots = self.slots.write();
        slots.release(&reservation.counts_for);
        reservation.filled = true;
        slots.activate(session, usage)
    }

    /// Adds a restored session, unless it is in memory. `None` if it ended meanwhile.
    pub(super) fn restore(
        &self,
        session: Arc<Session>,
        stored: StoredSession,
    ) -> Option<Arc<LiveSession>> {
        let usage = SessionUse::stored(session.owner.clone(), stored);
        self.slots.write().activate(session, usage)
    }

    /// Removes a session that has ended.
    pub(super) async fn remove(&self, entry: &LiveSession) -> Result<(), StoreError> {
        // Before the record is deleted: a concurrent save reads this flag after its write.
        entry.usage.end();
        let name = entry.session.id.as_str();
        self.delete([name]).await?;
        self.slots.write().remove(name);
        Ok(())
    }

    /// Closes the streams of all sessions in memory.
    pub(crate) fn close_streams(&self) {
        for entry in self.slots.read().live() {
            entry.session.streams.close();
        }
    }

    /// Removes all sessions from memory, because other nodes may continue them.
    #[cfg(feature = "http")]
    pub(crate) fn forget_live(&self) {
        for entry in self.slots.write().take_live() {
            entry.session.streams.close();
        }
    }

    /// Removes a session from memory, because another node continues it.
    #[cfg(feature = "http")]
    pub(crate) fn forget(&self, id: &str) {
        if self.slots.read().is_live(id)
            && let Some(entry) = self.slots.write().forget(id)
        {
            entry.session.streams.close();
        }
    }

    /// Sweeps at an interval. The future never ends.
    pub(crate) async fn sweep_periodically(self: Arc<Self>) {
        let interval = Duration::from_millis((self.limits.idle_ms / 4).clamp(1_000, 600_000));
        let mut pause = Duration::from_secs(1);
        loop {
            tokio::time::sleep(pause).await;
            pause = interval;
            match self.sweep().await {
                Ok(()) => {}
                Err(StoreError::Starting) => pause = Duration::from_secs(1),
                Err(error) => tracing::warn!(%error, "could not sweep idle sessions"),
            }
        }
    }

    /// Reads the stored sessions, evicts those that are idle for too long, and stores the last use
    /// of the others.
    async fn sweep(&self) -> Result<(), StoreError> {
        let now = now();
        let store = self.engine.store();
        let records = store.records(record::KIND, None, now).await?;
        self.slots.write().sync_with_store(&records);
        if self.engine.usage(&Owner::Local).await.is_err() {
            // Until tasks are recovered it is unknown which sessions have tasks.
            return Err(StoreError::Starting);
        }
        let mut idle = Vec::new();
        let since = Timestamp(now.0.saturating_sub(self.limits.idle_ms));
        let unused = self.slots.read().idle_since(since);
        for session in unused {
            if self.tasks_of(&session).await == RetainedTasks::None {
                idle.push(session);
            }
        }
        self.evict(idle).await;
        for entry in self.in_use(now) {
            if self.is_use_stale(&entry) {
                self.save(&entry).await?;
            }
        }
        Ok(())
    }

    /// The sessions in memory. One with an open request or stream counts as used now.
    fn in_use(&self, now: Timestamp) -> Vec<Arc<LiveSession>> {
        let live: Vec<_> = self.slots.read().live().cloned().collect();
        for entry in live.iter().filter(|entry| entry.usage.is_open()) {
            entry.usage.mark_used(now);
        }
        live
    }

    /// The tasks that a session is kept for. A principal can access its ended tasks in every
    /// session.
    async fn tasks_of(&self, session: &IdleSession) -> RetainedTasks {
        let owner = session.usage.owner();
        if matches!(owner, Owner::Session(_)) {
            return match self.engine.usage(owner).await {
                Ok(usage) if usage.owner_open > 0 => RetainedTasks::Open,
                Ok(usage) if usage.owner_retained > 0 => RetainedTasks::Ended,
                Ok(_) => RetainedTasks::None,
                // Without a reply of the engine no session is evicted.
                Err(_) => RetainedTasks::Open,
            };
        }
        let scope = Scope::OwnedBy(owner.clone());
        for task in &session.created_tasks {
            match self.engine.get(&scope, *task).await {
                Ok(task) if task.ending().is_some() => {}
                Err(EngineError::NotFound | EngineError::Expired) => {}
                Ok(_) | Err(_) => return RetainedTasks::Open,
            }
        }
        RetainedTasks::None
    }

    /// Removes sessions, except those that were used meanwhile; returns how many.
    async fn evict(&self, mut idle: Vec<IdleSession>) -> usize {
        {
            // Under the lock, so that no request finds a session between the check and its end.
            let _slots = self.slots.write();
            idle.retain(|session| session.usage.end_if_unused_since(session.last_used));
        }
        let mut evicted = 0;
        for batch in idle.chunks(MAX_EVICTED_SESSIONS_PER_WRITE) {
            let names = batch.iter().map(|session| &*session.name);
            match self.delete(names.clone()).await {
                Ok(()) => {
                    let mut slots = self.slots.write();
                    names.for_each(|name| slots.remove(name));
                    evicted += batch.len();
                }
                Err(error) => {
                    tracing::warn!(%error, "could not remove idle sessions");
                    batch.iter().for_each(|session| session.usage.undo_end());
                }
            }
        }
        evicted
    }

    /// Whether the stored last use of a session is too old.
    pub(super) fn is_use_stale(&self, entry: &LiveSession) -> bool {
        entry.usage.is_stored_use_stale(self.limits.idle_ms / 4)
    }

    /// Stores the last use of a session in the background, once.
    pub(super) fn save_use(self: &Arc<Self>, entry: &Arc<LiveSession>) {
        let Some(before) = entry.usage.begin_store() else {
            return;
        };
        let (table, entry) = (self.clone(), entry.clone());
        tokio::spawn(async move {
            if let Err(error) = table.save(&entry).await {
                entry.usage.undo_store(before);
                tracing::warn!(%error, "could not store the last use of a session");
            }
        });
    }

    /// Stores a session, unless it ended meanwhile.
    pub(super) async fn save(&self, entry: &LiveSession) -> Result<(), StoreError> {
        let usage = &entry.usage;
        let used = usage.last_used();
        let written = self.write(&entry.session, used, usage.counts_for()).await;
        if usage.has_ended() {
            return self.delete([entry.session.id.as_str()]).await;
        }
        usage.mark_stored(used);
        written
    }

    /// Stores a session with its last use.
    pub(super) async fn write(
        &self,
        session: &Session,
        used: Timestamp,
        counts_for: &Owner,
    ) -> Result<(), StoreError> {
        let Some(client_info) = session.client_info() else {
            return Ok(());
        };
        let record = record::record(session, client_info, used, counts_for);
        let store = self.engine.store();
        store.write_records(vec![RecordWrite::Put(record)]).await
    }

    async fn delete<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), StoreError> {
        let keys = |name: &str| [record::key(&SessionId::new(name)), record::home_key(name)];
        let deletes = names.into_iter().flat_map(keys).map(RecordWrite::Delete);
        self.engine.store().write_records(deletes.collect()).await
    }

    /// Counts one more open request or stream of a session; `None` at the limit.
    pub(super) fn permit(&self, entry: &LiveSession) -> Option<StreamPermit> {
        entry.usage.permit(self.limits.max_streams)
    }
}

impl SessionReservation {
    /// The owner whose session count the session adds to.
    pub(super) fn counts_for(&self) -> &Owner {
        &self.counts_for
    }
}

impl Drop for SessionReservation {
    fn drop(&mut self) {
        if !self.filled {
            self.table.slots.write().release(&self.counts_for);
        }
    }
}

/// How many sessions one write removes.
const MAX_EVICTED_SESSIONS_PER_WRITE: usize = 256;
