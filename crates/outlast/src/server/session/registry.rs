//! The sessions of one endpoint: those in use are in memory, all of them are stored.
//!
//! A session survives a restart of the process: it is stored before its client learns its name, and restored when a
//! request names it. How many there may be and which are forgotten is decided by the [`SessionTable`].

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_engine::store::StoreError;

use super::slots::Entry;
use super::table::{Reservation, SessionTable};
use super::usage::{Permit, now};
use super::{Session, SessionId, record};
use crate::server::Front;

/// The sessions of one endpoint.
pub(crate) struct Sessions {
    front: Arc<Front>,
    table: Arc<SessionTable>,
}

impl Sessions {
    pub(crate) fn new(front: Arc<Front>, table: Arc<SessionTable>) -> Self {
        Self { front, table }
    }

    pub(crate) fn front(&self) -> &Arc<Front> {
        &self.front
    }

    pub(crate) fn table(&self) -> &Arc<SessionTable> {
        &self.table
    }

    /// A session of `principal`, or of its own, that is not stored yet.
    pub(crate) fn begin(&self, principal: Option<&Owner>) -> Arc<Session> {
        let id = SessionId::drawn();
        let own = || Owner::session(id.as_str());
        let owner = principal.cloned().unwrap_or_else(own);
        Session::new(self.front.clone(), id, owner)
    }

    /// Stores a session whose client has introduced itself: from now on it is known.
    pub(crate) async fn keep(
        &self,
        session: Arc<Session>,
        room: Reservation,
    ) -> Result<(), StoreError> {
        let owner = room.counts_for();
        self.table.write(&session, now(), owner).await?;
        if let Some(entry) = self.table.add(session, room) {
            self.record_changes(&entry);
        }
        Ok(())
    }

    /// The session of that name, if it is there and belongs to `principal`.
    pub(crate) async fn find(
        &self,
        name: &str,
        principal: Option<&Owner>,
    ) -> Result<Option<Arc<Entry>>, StoreError> {
        let found = match self.table.live(name, now()) {
            Ok(found) => found,
            Err(_not_live) => self.revive(name).await?,
        };
        let is_ours = |entry: &Arc<Entry>| {
            entry.is_of(principal) && Arc::ptr_eq(&entry.session.front, &self.front)
        };
        let Some(entry) = found.filter(is_ours) else {
            return Ok(None);
        };
        if self.table.is_use_stale(&entry) {
            self.table.save_use(&entry);
        }
        Ok(Some(entry))
    }

    /// Ends a session for good. What is left to do for its tasks and streams goes on in the background.
    pub(crate) async fn end(&self, entry: &Entry) -> Result<(), StoreError> {
        self.table.remove(entry).await?;
        let session = entry.session.clone();
        tokio::spawn(async move { session.end().await });
        Ok(())
    }

    /// Restores a session that is stored.
    async fn revive(&self, name: &str) -> Result<Option<Arc<Entry>>, StoreError> {
        // The store is not read for a name that was never drawn here.
        if !SessionId::could_be_drawn(name) {
            return Ok(None);
        }
        let id = SessionId::new(name);
        let store = self.front.engine.store();
        let Some(record) = store.record(&record::key(&id), now()).await? else {
            return Ok(None);
        };
        let (Some(stored), Some(owner)) = (record::read(&record), record.owner.clone()) else {
            tracing::warn!("the record of a session is not readable");
            return Ok(None);
        };
        let is_of_another = stored.endpoint.as_ref().is_some_and(|endpoint| {
            let ours = self.front.service.only_runner();
            ours.is_some_and(|ours| ours != *endpoint)
        });
        if is_of_another {
            return Ok(None);
        }
        let session = Session::new(self.front.clone(), id, owner);
        // Nobody else has this session yet.
        session.introduce(session.as_client(stored.peer.clone()), None);
        session.remember(stored.wishes.clone());
        for task in &stored.made_tasks {
            session.made_tasks.add(*task);
        }
        let Some(entry) = self.table.revive(session.clone(), stored) else {
            return Ok(None);
        };
        // Another request may have restored it meanwhile.
        if Arc::ptr_eq(&entry.session, &session) {
            self.record_changes(&entry);
            tokio::spawn(session.say_again());
        }
        Ok(Some(entry))
    }

    /// Has a session stored whenever that changes which is stored with it.
    fn record_changes(&self, entry: &Arc<Entry>) {
        let (table, known) = (Arc::downgrade(&self.table), Arc::downgrade(entry));
        entry.session.record_by(Box::new(move || {
            let known = table.upgrade().zip(known.upgrade());
            Box::pin(async move {
                match known {
                    Some((table, entry)) => table.save(&entry).await,
                    // No request can name it any more.
                    None => Ok(()),
                }
            })
        }));
    }

    /// Permission for one more open request or stream of a session.
    pub(crate) fn permit(&self, entry: &Entry) -> Option<Permit> {
        self.table.permit(entry)
    }
}

impl Entry {
    /// Whether the session belongs to `principal`, or to no principal (V1-SESS-7).
    fn is_of(&self, principal: Option<&Owner>) -> bool {
        let owner: &Owner = &self.session.owner;
        match principal {
            Some(principal) => owner == principal,
            None => matches!(owner, Owner::Session(_)),
        }
    }
}
