//! The sessions of a server: those in use are in memory, all of them are stored.
//!
//! A session survives a restart of the process: it is stored before its client learns its name, and restored when a
//! request names it. It lives at least as long as its tasks: at any moment half its lifetime is left, and that half is
//! as long as the longest task.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use outlast_engine::store::{Record, RecordWrite, StoreError};
use outlast_engine::{Clock, Owner, SystemClock};
use outlast_wire::Timestamp;
use parking_lot::RwLock;

use super::{Session, SessionId, record};
use crate::front::Front;

/// The sessions of a server.
pub(crate) struct Sessions {
    front: Arc<Front>,
    /// By name.
    live: RwLock<HashMap<Arc<str>, Arc<Entry>>>,
    /// How many are stored, as far as is known.
    stored: AtomicUsize,
    limits: Bounds,
}

/// How many sessions there may be, how much of each, and for how long.
pub(crate) struct Bounds {
    pub(crate) sessions: usize,
    pub(crate) streams: usize,
    /// Half a life, in milliseconds.
    pub(crate) half_life: u64,
}

/// A session at hand.
pub(crate) struct Entry {
    pub(crate) session: Arc<Session>,
    expires: AtomicU64,
    ended: AtomicBool,
    open: Arc<AtomicUsize>,
}

/// Leave to have one more request or stream open, until it is dropped.
pub(crate) struct Permit(Arc<AtomicUsize>);

impl Sessions {
    pub(crate) async fn load(front: Arc<Front>, limits: Bounds) -> Result<Self, StoreError> {
        let sessions = Self {
            front,
            live: RwLock::default(),
            stored: AtomicUsize::new(0),
            limits,
        };
        match sessions.sweep().await {
            // They are counted when the store is open.
            Ok(()) | Err(StoreError::Starting) => Ok(sessions),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn front(&self) -> &Arc<Front> {
        &self.front
    }

    /// A session of `principal`, or of its own, that is not stored yet.
    pub(crate) fn begin(&self, principal: Option<&Owner>) -> Arc<Session> {
        let id = SessionId::drawn();
        let own = || Owner::session(id.as_str());
        let owner = principal.cloned().unwrap_or_else(own);
        Session::new(self.front.clone(), id, owner)
    }

    /// Whether another session may begin. Expired ones make room.
    pub(crate) async fn have_room(&self) -> bool {
        let full = || self.stored.load(Ordering::Relaxed) >= self.limits.sessions;
        if full() && self.sweep().await.is_err() {
            return false;
        }
        !full()
    }

    /// Stores a session whose client has introduced itself: from now on it is known.
    pub(crate) async fn keep(self: &Arc<Self>, session: Arc<Session>) -> Result<(), StoreError> {
        let expires = now().plus(2 * self.limits.half_life);
        self.write(&session, expires).await?;
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.put(session, expires);
        Ok(())
    }

    /// The session of that name, if it is there and belongs to `principal`.
    pub(crate) async fn find(
        self: &Arc<Self>,
        name: &str,
        principal: Option<&Owner>,
    ) -> Result<Option<Arc<Entry>>, StoreError> {
        let now = now();
        let entry = match self.at_hand(name) {
            Some(entry) => entry,
            None => match self.revive(name, now).await? {
                Some(entry) => entry,
                None => return Ok(None),
            },
        };
        if !entry.is_of(principal) || entry.is_over(now) {
            return Ok(None);
        }
        let expires = Timestamp(entry.expires.load(Ordering::Relaxed));
        if now.plus(self.limits.half_life) > expires {
            self.clone().renew(&entry, expires);
        }
        Ok(Some(entry))
    }

    /// Ends a session for good. What is left to do for its tasks and streams goes on in the background.
    pub(crate) async fn end(&self, entry: &Entry) -> Result<(), StoreError> {
        self.remove(entry).await?;
        let session = entry.session.clone();
        tokio::spawn(async move { session.end().await });
        Ok(())
    }

    async fn remove(&self, entry: &Entry) -> Result<(), StoreError> {
        // Before the record goes: whoever renews it looks here afterwards.
        entry.ended.store(true, Ordering::SeqCst);
        let id = &entry.session.id;
        self.delete(id).await?;
        if self.live_mut(|live| live.remove(id.as_str())).is_some() {
            // A sweep may have counted meanwhile.
            let less = |count: usize| count.checked_sub(1);
            let _ = self
                .stored
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        Ok(())
    }

    /// Closes the streams of all sessions at hand.
    pub(crate) fn close_streams(&self) {
        let live = self.live.read();
        for entry in live.values() {
            entry.session.board.close();
        }
    }

    /// Forgets expired sessions and renews those that are still needed, until the handle is gone.
    pub(crate) async fn keep_sweeping(self: Arc<Self>) {
        let every = Duration::from_millis((self.limits.half_life / 4).clamp(1_000, 600_000));
        let mut pause = every;
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

    async fn sweep(&self) -> Result<(), StoreError> {
        let now = now();
        let records = self
            .front
            .engine
            .store()
            .records(record::KIND, None, now)
            .await?;
        self.stored.store(records.len(), Ordering::Relaxed);
        for record in records {
            let expires = record.expires.unwrap_or(Timestamp(u64::MAX));
            if now.plus(self.limits.half_life) > expires && self.is_needed(&record).await {
                self.prolong(record, now).await?;
            }
        }
        self.live_mut(|live| live.retain(|_, entry| !entry.is_over(now)));
        Ok(())
    }

    /// Whether somebody listens in a session, or tasks are there that no other session can reach.
    async fn is_needed(&self, record: &Record) -> bool {
        if let Some(entry) = self.at_hand(&record.key.key)
            && entry.open.load(Ordering::Relaxed) > 0
        {
            return true;
        }
        match record.owner.as_ref().filter(|owner| is_session(owner)) {
            Some(owner) => {
                let usage = self.front.engine.usage(owner).await;
                usage.is_ok_and(|usage| usage.owner_retained > 0)
            }
            None => false,
        }
    }

    async fn prolong(&self, record: Record, now: Timestamp) -> Result<(), StoreError> {
        let store = self.front.engine.store();
        let expires = now.plus(2 * self.limits.half_life);
        let name = record.key.key.clone();
        if self.at_hand(&name).is_none() {
            // It may have been ended since it was listed.
            let Some(mut record) = store.record(&record.key, now).await? else {
                return Ok(());
            };
            record.expires = Some(expires);
            store.write_records(vec![RecordWrite::Put(record)]).await?;
        }
        // One that is at hand knows best what is to be kept, also if it came while the record was written.
        match self.at_hand(&name) {
            Some(entry) => {
                entry.expires.store(expires.0, Ordering::Relaxed);
                self.rewrite(&entry).await
            }
            None => Ok(()),
        }
    }

    /// Stores a session at hand as it is now, unless it was ended meanwhile.
    async fn rewrite(&self, entry: &Entry) -> Result<(), StoreError> {
        let expires = Timestamp(entry.expires.load(Ordering::Relaxed));
        let written = self.write(&entry.session, expires).await;
        // Whoever ended it is not overruled.
        match entry.ended.load(Ordering::SeqCst) {
            true => self.delete(&entry.session.id).await,
            false => written,
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let delete = RecordWrite::Delete(record::key(id));
        let store = self.front.engine.store();
        store.write_records(vec![delete]).await
    }

    fn at_hand(&self, name: &str) -> Option<Arc<Entry>> {
        let live = self.live.read();
        live.get(name).cloned()
    }

    /// Takes up a session of an earlier life of the server.
    async fn revive(
        self: &Arc<Self>,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<Entry>>, StoreError> {
        // The store is not read for a name that was never drawn here.
        if !SessionId::could_be_drawn(name) {
            return Ok(None);
        }
        let id = SessionId::new(name);
        let key = record::key(&id);
        let Some(record) = self.front.engine.store().record(&key, now).await? else {
            return Ok(None);
        };
        let (Some((peer, wishes)), Some(owner)) = (record::read(&record), record.owner) else {
            tracing::warn!("the record of a session is not readable");
            return Ok(None);
        };
        let session = Session::new(self.front.clone(), id, owner);
        // Nobody else has this session yet.
        session.introduce(session.as_client(peer), None);
        session.remember(wishes);
        let expires = record.expires.unwrap_or(Timestamp(u64::MAX));
        let entry = self.put(session.clone(), expires);
        // Another request may have taken it up meanwhile.
        if Arc::ptr_eq(&entry.session, &session) {
            tokio::spawn(session.say_again());
        }
        Ok(Some(entry))
    }

    /// Puts a session at hand, unless it is there already.
    fn put(self: &Arc<Self>, session: Arc<Session>, expires: Timestamp) -> Arc<Entry> {
        let entry = || {
            let entry = Arc::new(Entry {
                session: session.clone(),
                expires: AtomicU64::new(expires.0),
                ended: AtomicBool::new(false),
                open: Arc::default(),
            });
            let known = (Arc::downgrade(self), Arc::downgrade(&entry));
            session.record_by(Box::new(move || {
                let known = known.0.upgrade().zip(known.1.upgrade());
                Box::pin(async move {
                    match known {
                        Some((sessions, entry)) => sessions.rewrite(&entry).await,
                        // Nobody will ask for it again.
                        None => Ok(()),
                    }
                })
            }));
            entry
        };
        self.live_mut(|live| {
            live.entry(session.id.as_str().into())
                .or_insert_with(entry)
                .clone()
        })
    }

    /// Lets a session live on, in the background and once.
    fn renew(self: Arc<Self>, entry: &Arc<Entry>, expires: Timestamp) {
        let later = now().plus(2 * self.limits.half_life);
        let only = entry.expires.compare_exchange(
            expires.0,
            later.0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if only.is_err() {
            return;
        }
        let entry = entry.clone();
        tokio::spawn(async move {
            if let Err(error) = self.rewrite(&entry).await {
                entry.expires.store(expires.0, Ordering::Relaxed);
                tracing::warn!(%error, "a session was not renewed");
            }
        });
    }

    async fn write(&self, session: &Session, expires: Timestamp) -> Result<(), StoreError> {
        let Some(peer) = session.peer() else {
            return Ok(());
        };
        let record = record::record(session, peer, expires);
        let store = self.front.engine.store();
        store.write_records(vec![RecordWrite::Put(record)]).await
    }

    fn live_mut<T>(&self, change: impl FnOnce(&mut HashMap<Arc<str>, Arc<Entry>>) -> T) -> T {
        let mut live = self.live.write();
        change(&mut live)
    }

    /// Leave for one more open request or stream of a session.
    pub(crate) fn permit(&self, entry: &Entry) -> Option<Permit> {
        let permit = Permit(entry.open.clone());
        let before = permit.0.fetch_add(1, Ordering::Relaxed);
        // Dropping the permit takes the count back.
        (before < self.limits.streams).then_some(permit)
    }
}

impl Entry {
    /// Whether the session belongs to `principal`, or to no principal (V1-SESS-7).
    fn is_of(&self, principal: Option<&Owner>) -> bool {
        let owner: &Owner = &self.session.owner;
        match principal {
            Some(principal) => owner == principal,
            None => is_session(owner),
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let idle = || self.open.load(Ordering::Relaxed) == 0;
        self.ended.load(Ordering::Relaxed)
            || now.0 >= self.expires.load(Ordering::Relaxed) && idle()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether tasks of this owner can be reached by one session only.
fn is_session(owner: &Owner) -> bool {
    matches!(owner, Owner::Session(_))
}

fn now() -> Timestamp {
    SystemClock.now()
}
