//! All stored sessions of a server, over all its endpoints: whom they count for, when each was used last, which are live.
//!
//! The number of sessions is limited, in all and for each owner; sessions without authentication count for the address
//! that opened them. At a limit the session that has been idle for longest is forgotten: of the owner at its limit, or,
//! if all sessions together are at theirs, of the owner that has most. A session with an open request, stream or task is
//! never forgotten; if there are only such, no other session can be opened.
//!
//! A sweep forgets sessions that are idle for longer than [`Bounds::idle`] and have no tasks. The last use of a session
//! is stored with it, at most a quarter of `idle` late, so all of this holds over a restart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::store::{Record, RecordWrite, StoreError};
use outlast_engine::{Clock, Engine, Owner, Scope, SystemClock, TaskId};
use outlast_wire::Timestamp;
use parking_lot::RwLock;

use super::record::{self, StoredSession};
use super::{Session, SessionId};

/// How many sessions there may be, how much of each, and for how long.
pub(crate) struct Bounds {
    /// The most sessions in all.
    pub(crate) sessions: usize,
    /// The most sessions that count for one owner.
    pub(crate) sessions_per_owner: usize,
    /// The most open requests and streams of one session.
    pub(crate) streams: usize,
    /// How long a session without requests, streams and tasks is kept, in milliseconds.
    pub(crate) idle: u64,
}

/// All sessions of a server.
pub(crate) struct SessionTable {
    engine: Engine,
    pub(super) bounds: Bounds,
    slots: RwLock<Slots>,
}

/// A session that is in memory.
pub(crate) struct Entry {
    pub(crate) session: Arc<Session>,
    pub(super) usage: Arc<SessionUse>,
}

/// What decides how long a session is kept.
pub(super) struct SessionUse {
    /// Whose tasks the session reaches.
    owner: Owner,
    /// Whose number of sessions it adds to: a principal or an address.
    counts_for: Owner,
    last_used: AtomicU64,
    /// The last use that is stored.
    stored_use: AtomicU64,
    /// Open requests and streams.
    pub(super) open: Arc<AtomicUsize>,
    /// Whether it was ended or forgotten.
    pub(super) ended: AtomicBool,
    /// The tasks that were made in it when it was stored last. A live session knows better.
    made_tasks: Vec<TaskId>,
}

/// Room for one session, until it is filled or dropped.
pub(crate) struct Reservation {
    table: Arc<SessionTable>,
    counts_for: Owner,
    filled: bool,
}

/// Why no session can be opened: as many as there may be are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The owner has so many sessions.
    Owner(usize),
    /// All owners together have so many.
    All(usize),
}

#[derive(Default)]
struct Slots {
    by_name: HashMap<Arc<str>, Slot>,
    by_owner: HashMap<Owner, Account>,
    reserved: usize,
}

/// The sessions that count for one owner.
#[derive(Default)]
struct Account {
    names: HashSet<Arc<str>>,
    reserved: usize,
}

struct Slot {
    usage: Arc<SessionUse>,
    /// Absent if no request has named the session since the process started.
    live: Option<Arc<Entry>>,
}

/// A session that may be forgotten, as it was when it was looked at.
struct Candidate {
    name: Arc<str>,
    usage: Arc<SessionUse>,
    made_tasks: Vec<TaskId>,
    last_used: u64,
}

/// The tasks that a session is kept for.
#[derive(PartialEq, Eq)]
enum Tasks {
    None,
    /// Ended ones that no other session reaches.
    Ended,
    Open,
}

impl SessionTable {
    pub(crate) async fn load(engine: Engine, bounds: Bounds) -> Result<Arc<Self>, StoreError> {
        let table = Self {
            engine,
            bounds,
            slots: RwLock::default(),
        };
        match table.sweep().await {
            // They are read when the store is open.
            Ok(()) | Err(StoreError::Starting) => Ok(Arc::new(table)),
            Err(error) => Err(error),
        }
    }

    /// Room for another session that counts for `owner`. At a limit the session that is idle for longest makes room.
    pub(crate) async fn reserve(self: &Arc<Self>, owner: &Owner) -> Result<Reservation, NoRoom> {
        loop {
            let full = match self.try_reserve(owner) {
                Ok(reservation) => return Ok(reservation),
                Err(full) => full,
            };
            let crowded = match full {
                NoRoom::Owner(_) => vec![owner.clone()],
                NoRoom::All(_) => self.owners_by_size(),
            };
            let mut forgotten = false;
            for owner in crowded {
                forgotten = self.forget_oldest(&owner).await;
                if forgotten {
                    break;
                }
            }
            if !forgotten {
                return Err(full);
            }
        }
    }

    fn try_reserve(self: &Arc<Self>, owner: &Owner) -> Result<Reservation, NoRoom> {
        let mut slots = self.slots.write();
        let has = slots.by_owner.get(owner).map_or(0, Account::size);
        if has >= self.bounds.sessions_per_owner {
            return Err(NoRoom::Owner(self.bounds.sessions_per_owner));
        }
        if slots.by_name.len() + slots.reserved >= self.bounds.sessions {
            return Err(NoRoom::All(self.bounds.sessions));
        }
        slots.reserve(owner);
        Ok(Reservation {
            table: self.clone(),
            counts_for: owner.clone(),
            filled: false,
        })
    }

    /// The owners of sessions, the one with most first.
    fn owners_by_size(&self) -> Vec<Owner> {
        let slots = self.slots.read();
        let mut owners: Vec<_> = slots.by_owner.iter().collect();
        owners.sort_by_key(|(_, account)| std::cmp::Reverse(account.size()));
        owners.into_iter().map(|(owner, _)| owner.clone()).collect()
    }

    /// Forgets the session of `owner` that is idle for longest, if one may be forgotten.
    async fn forget_oldest(&self, owner: &Owner) -> bool {
        let mut idle = self.candidates_of(owner);
        idle.sort_unstable_by_key(|candidate| candidate.last_used);
        for candidate in idle {
            if self.tasks_of(&candidate).await != Tasks::Open
                && self.forget(vec![candidate]).await > 0
            {
                return true;
            }
        }
        false
    }

    /// The live session of that name, which is used now; `Err` if the session is not live but may be stored.
    pub(super) fn live(&self, name: &str, now: Timestamp) -> Result<Option<Arc<Entry>>, NotLive> {
        // Under the lock: a session that is about to be forgotten is either seen as used, or not found.
        let slots = self.slots.read();
        let Some(slot) = slots.by_name.get(name) else {
            return Err(NotLive);
        };
        if slot.usage.ended.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let entry = slot.live.clone().ok_or(NotLive)?;
        entry.usage.last_used.fetch_max(now.0, Ordering::Relaxed);
        Ok(Some(entry))
    }

    /// Makes a session live that was stored just now.
    pub(super) fn add(&self, session: Arc<Session>, mut room: Reservation) -> Arc<Entry> {
        let now = now().0;
        let usage = Arc::new(SessionUse::new(
            session.owner.clone(),
            room.counts_for.clone(),
            now,
            Vec::new(),
        ));
        let mut slots = self.slots.write();
        slots.release(&room.counts_for);
        room.filled = true;
        let name: Arc<str> = session.id.as_str().into();
        let slot = slots.slot(name, usage);
        slot.enter(session)
    }

    /// Makes a stored session live, unless it is. `None` if it was ended meanwhile.
    pub(super) fn revive(
        &self,
        session: Arc<Session>,
        stored: StoredSession,
    ) -> Option<Arc<Entry>> {
        let usage = Arc::new(SessionUse::stored(session.owner.clone(), stored));
        let mut slots = self.slots.write();
        let slot = slots.slot(session.id.as_str().into(), usage);
        if slot.usage.ended.load(Ordering::SeqCst) {
            return None;
        }
        slot.usage.last_used.fetch_max(now().0, Ordering::Relaxed);
        Some(slot.enter(session))
    }

    /// Removes a session that has ended.
    pub(super) async fn remove(&self, entry: &Entry) -> Result<(), StoreError> {
        // Before the record is deleted: a save that runs meanwhile reads this after its write.
        entry.usage.ended.store(true, Ordering::SeqCst);
        let name = entry.session.id.as_str();
        self.delete([name]).await?;
        self.slots.write().remove(name);
        Ok(())
    }

    /// Closes the streams of all live sessions.
    pub(crate) fn close_streams(&self) {
        let slots = self.slots.read();
        for entry in slots.by_name.values().filter_map(|slot| slot.live.as_ref()) {
            entry.session.board.close();
        }
    }

    /// Sweeps from time to time, until the handle is gone.
    pub(crate) async fn keep_sweeping(self: Arc<Self>) {
        let every = Duration::from_millis((self.bounds.idle / 4).clamp(1_000, 600_000));
        let mut pause = Duration::from_secs(1);
        loop {
            tokio::time::sleep(pause).await;
            pause = every;
            match self.sweep().await {
                Ok(()) => {}
                Err(StoreError::Starting) => pause = Duration::from_secs(1),
                Err(error) => tracing::warn!(%error, "sessions were not swept"),
            }
        }
    }

    /// Reads which sessions are stored, forgets those that are idle for too long, and stores the use of the others.
    async fn sweep(&self) -> Result<(), StoreError> {
        let now = now();
        let store = self.engine.store();
        let records = store.records(record::KIND, None, now).await?;
        self.take_over(&records);
        if self.engine.usage(&Owner::Local).await.is_err() {
            // Until tasks are recovered it is not known which sessions have some.
            return Err(StoreError::Starting);
        }
        let mut idle = Vec::new();
        for candidate in self.idle_since(now.0.saturating_sub(self.bounds.idle)) {
            if self.tasks_of(&candidate).await == Tasks::None {
                idle.push(candidate);
            }
        }
        self.forget(idle).await;
        for entry in self.in_use(now) {
            if self.is_use_stale(&entry) {
                self.save(&entry).await?;
            }
        }
        Ok(())
    }

    /// Takes over which sessions are stored: other processes on the same store add and remove some.
    fn take_over(&self, records: &[Record]) {
        let stored: HashSet<&str> = records.iter().map(|record| &*record.key.key).collect();
        let mut slots = self.slots.write();
        let gone = |(name, slot): (&Arc<str>, &Slot)| {
            let is_gone = slot.live.is_none() && !stored.contains(&**name);
            is_gone.then(|| name.clone())
        };
        let gone: Vec<_> = slots.by_name.iter().filter_map(gone).collect();
        for name in gone {
            slots.remove(&name);
        }
        for record in records {
            let (Some(stored), Some(owner)) = (record::read(record), record.owner.clone()) else {
                continue;
            };
            let used = stored.used.map_or(0, |used| used.0);
            let usage = Arc::new(SessionUse::stored(owner, stored));
            let slot = slots.slot((*record.key.key).into(), usage);
            // Another process may have served the session.
            slot.usage.last_used.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// Sessions without open requests and streams that were used at `since` or before.
    fn idle_since(&self, since: u64) -> Vec<Candidate> {
        let slots = self.slots.read();
        let candidates = slots.by_name.iter();
        candidates
            .filter_map(|(name, slot)| slot.candidate(name))
            .filter(|candidate| candidate.last_used <= since)
            .collect()
    }

    /// Sessions of `owner` without open requests and streams.
    fn candidates_of(&self, owner: &Owner) -> Vec<Candidate> {
        let slots = self.slots.read();
        let Some(account) = slots.by_owner.get(owner) else {
            return Vec::new();
        };
        let names = account.names.iter();
        names
            .filter_map(|name| slots.by_name.get(name)?.candidate(name))
            .collect()
    }

    /// The live sessions. One with an open request or stream is used now.
    fn in_use(&self, now: Timestamp) -> Vec<Arc<Entry>> {
        let slots = self.slots.read();
        let live: Vec<_> = slots
            .by_name
            .values()
            .filter_map(|slot| slot.live.clone())
            .collect();
        for entry in &live {
            if entry.usage.open.load(Ordering::Relaxed) > 0 {
                entry.usage.last_used.fetch_max(now.0, Ordering::Relaxed);
            }
        }
        live
    }

    /// The tasks that a session is kept for. A principal reaches its ended tasks in every session.
    async fn tasks_of(&self, candidate: &Candidate) -> Tasks {
        let owner = &candidate.usage.owner;
        if matches!(owner, Owner::Session(_)) {
            return match self.engine.usage(owner).await {
                Ok(usage) if usage.owner_open > 0 => Tasks::Open,
                Ok(usage) if usage.owner_retained > 0 => Tasks::Ended,
                Ok(_) => Tasks::None,
                // Without an answer no session is forgotten.
                Err(_) => Tasks::Open,
            };
        }
        let scope = Scope::Of(owner.clone());
        for task in &candidate.made_tasks {
            match self.engine.get(&scope, *task).await {
                Ok(task) if task.ending().is_some() => {}
                Err(EngineError::NotFound | EngineError::Expired) => {}
                Ok(_) | Err(_) => return Tasks::Open,
            }
        }
        Tasks::None
    }

    /// Removes sessions, except those that were used meanwhile, and returns how many.
    async fn forget(&self, candidates: Vec<Candidate>) -> usize {
        let mut forgotten = 0;
        let closed: Vec<_> = {
            let _slots = self.slots.write();
            let mut candidates = candidates;
            candidates.retain(Candidate::close);
            candidates
        };
        for batch in closed.chunks(FORGOTTEN_AT_ONCE) {
            let names = batch.iter().map(|candidate| &*candidate.name);
            match self.delete(names.clone()).await {
                Ok(()) => {
                    let mut slots = self.slots.write();
                    names.for_each(|name| slots.remove(name));
                    forgotten += batch.len();
                }
                Err(error) => {
                    tracing::warn!(%error, "idle sessions were not removed");
                    for candidate in batch {
                        candidate.usage.ended.store(false, Ordering::SeqCst);
                    }
                }
            }
        }
        forgotten
    }

    /// Whether the stored use of a session is too far behind its last.
    pub(super) fn is_use_stale(&self, entry: &Entry) -> bool {
        let usage = &entry.usage;
        let stored = usage.stored_use.load(Ordering::Relaxed);
        usage.last_used() > stored.saturating_add(self.bounds.idle / 4)
    }

    /// Stores the use of a session in the background, once.
    pub(super) fn save_use(self: &Arc<Self>, entry: &Arc<Entry>) {
        let (usage, table, entry) = (&entry.usage, self.clone(), entry.clone());
        let stored = usage.stored_use.load(Ordering::Relaxed);
        let used = usage.last_used();
        let relaxed = Ordering::Relaxed;
        let only = usage
            .stored_use
            .compare_exchange(stored, used, relaxed, relaxed);
        if only.is_err() {
            return;
        }
        tokio::spawn(async move {
            if let Err(error) = table.save(&entry).await {
                entry.usage.stored_use.store(stored, Ordering::Relaxed);
                tracing::warn!(%error, "the use of a session was not stored");
            }
        });
    }

    /// Stores a session as it is now, unless it was ended meanwhile.
    pub(super) async fn save(&self, entry: &Entry) -> Result<(), StoreError> {
        let usage = &entry.usage;
        let used = Timestamp(usage.last_used());
        let written = self.write(&entry.session, used, &usage.counts_for).await;
        if usage.ended.load(Ordering::SeqCst) {
            return self.delete([entry.session.id.as_str()]).await;
        }
        usage.stored_use.fetch_max(used.0, Ordering::Relaxed);
        written
    }

    /// Stores a session that was used at `used`.
    pub(super) async fn write(
        &self,
        session: &Session,
        used: Timestamp,
        counts_for: &Owner,
    ) -> Result<(), StoreError> {
        let Some(peer) = session.peer() else {
            return Ok(());
        };
        let record = record::record(session, peer, used, counts_for);
        let store = self.engine.store();
        store.write_records(vec![RecordWrite::Put(record)]).await
    }

    async fn delete<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), StoreError> {
        let key = |name| RecordWrite::Delete(record::key(&SessionId::new(name)));
        let deletes = names.into_iter().map(key).collect();
        self.engine.store().write_records(deletes).await
    }

    fn release(&self, owner: &Owner) {
        self.slots.write().release(owner);
    }
}

/// The session is not live; the store may have it.
pub(super) struct NotLive;

impl Slots {
    /// The slot of that name; a new one counts for the owner that `usage` names.
    fn slot(&mut self, name: Arc<str>, usage: Arc<SessionUse>) -> &mut Slot {
        let Self {
            by_name, by_owner, ..
        } = self;
        by_name.entry(name).or_insert_with_key(|name| {
            let account = by_owner.entry(usage.counts_for.clone()).or_default();
            account.names.insert(name.clone());
            Slot { usage, live: None }
        })
    }

    fn remove(&mut self, name: &str) {
        if let Some(slot) = self.by_name.remove(name) {
            self.change(&slot.usage.counts_for, |account| {
                account.names.remove(name);
            });
        }
    }

    fn reserve(&mut self, owner: &Owner) {
        self.reserved += 1;
        self.by_owner.entry(owner.clone()).or_default().reserved += 1;
    }

    fn release(&mut self, owner: &Owner) {
        self.reserved -= 1;
        self.change(owner, |account| account.reserved -= 1);
    }

    /// Changes the account of `owner`; an empty one is dropped.
    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.by_owner.get_mut(owner) {
            change(account);
            if account.size() == 0 {
                self.by_owner.remove(owner);
            }
        }
    }
}

impl Account {
    fn size(&self) -> usize {
        self.names.len() + self.reserved
    }
}

impl Slot {
    /// The live session of this slot, which is `session` if there is none yet.
    fn enter(&mut self, session: Arc<Session>) -> Arc<Entry> {
        let usage = self.usage.clone();
        let entry = || Arc::new(Entry { session, usage });
        self.live.get_or_insert_with(entry).clone()
    }

    fn candidate(&self, name: &Arc<str>) -> Option<Candidate> {
        let usage = &self.usage;
        let is_idle = usage.open.load(Ordering::Relaxed) == 0;
        (is_idle && !usage.ended.load(Ordering::SeqCst)).then(|| Candidate {
            name: name.clone(),
            usage: usage.clone(),
            made_tasks: match &self.live {
                Some(entry) => entry.session.made_tasks.all(),
                None => usage.made_tasks.clone(),
            },
            last_used: usage.last_used(),
        })
    }
}

impl Candidate {
    /// Marks the session as ended, unless it is in use or was used meanwhile. The caller holds the lock of all slots.
    fn close(&self) -> bool {
        let usage = &self.usage;
        let is_idle =
            usage.open.load(Ordering::Relaxed) == 0 && usage.last_used() == self.last_used;
        is_idle && !usage.ended.swap(true, Ordering::SeqCst)
    }
}

impl SessionUse {
    fn new(owner: Owner, counts_for: Owner, used: u64, made_tasks: Vec<TaskId>) -> Self {
        Self {
            owner,
            counts_for,
            last_used: AtomicU64::new(used),
            stored_use: AtomicU64::new(used),
            open: Arc::default(),
            ended: AtomicBool::new(false),
            made_tasks,
        }
    }

    /// The use of a session of `owner` that was read from the store. Without a stored use it counts from now.
    fn stored(owner: Owner, stored: StoredSession) -> Self {
        let counts_for = stored.counts_for.unwrap_or_else(|| owner.clone());
        let used = stored.used.unwrap_or_else(now).0;
        Self::new(owner, counts_for, used, stored.made_tasks)
    }

    fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }
}

impl Reservation {
    /// Whose number of sessions the session adds to.
    pub(super) fn counts_for(&self) -> &Owner {
        &self.counts_for
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.filled {
            self.table.release(&self.counts_for);
        }
    }
}

pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// The most sessions that one write removes.
const FORGOTTEN_AT_ONCE: usize = 256;
