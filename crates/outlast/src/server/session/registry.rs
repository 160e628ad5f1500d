//! The sessions of one endpoint: those in use are in memory, all of them are stored.
//!
//! A session survives a restart: it is stored before its client gets its id, and restored when a
//! request names it. The [`SessionTable`] limits the number of sessions and evicts idle ones.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_engine::store::StoreError;

use super::record::StoredSession;
use super::slots::LiveSession;
use super::table::{SessionReservation, SessionTable};
use super::usage::{StreamPermit, now};
use super::{Session, SessionId, record};
use crate::server::McpServer;

/// The sessions of one endpoint.
pub(crate) struct Sessions {
    server: Arc<McpServer>,
    table: Arc<SessionTable>,
}

impl Sessions {
    pub(crate) fn new(server: Arc<McpServer>, table: Arc<SessionTable>) -> Self {
        Self { server, table }
    }

    pub(crate) fn server(&self) -> &Arc<McpServer> {
        &self.server
    }

    pub(crate) fn table(&self) -> &Arc<SessionTable> {
        &self.table
    }

    /// A new session of `principal`, or of its own owner. It is not stored yet.
    pub(crate) fn create(&self, principal: Option<&Owner>) -> Arc<Session> {
        let id = SessionId::random();
        let session_owner = || Owner::session(id.as_str());
        let owner = principal.cloned().unwrap_or_else(session_owner);
        Session::new(self.server.clone(), id, owner)
    }

    /// Stores an initialized session.
    pub(crate) async fn store(
        &self,
        session: Arc<Session>,
        reservation: SessionReservation,
    ) -> Result<(), StoreError> {
        let owner = reservation.counts_for();
        self.table.write(&session, now(), owner).await?;
        if let Some(entry) = self.table.add(session, reservation) {
            self.save_on_change(&entry);
        }
        Ok(())
    }

    /// The session with this id, if it belongs to `principal`.
    pub(crate) async fn find(
        &self,
        name: &str,
        principal: Option<&Owner>,
    ) -> Result<Option<Arc<LiveSession>>, StoreError> {
        let found = match self.table.live(name, now()) {
            Ok(found) => found,
            Err(_not_live) => self.restore(name).await?,
        };
        let is_visible = |entry: &Arc<LiveSession>| {
            entry.session.belongs_to(principal) && Arc::ptr_eq(&entry.session.server, &self.server)
        };
        let Some(entry) = found.filter(is_visible) else {
            return Ok(None);
        };
        if self.table.is_use_stale(&entry) {
            self.table.save_use(&entry);
        }
        Ok(Some(entry))
    }

    /// Ends a session. The cancellation of its tasks and streams continues in the background.
    pub(crate) async fn end(&self, entry: &LiveSession) -> Result<(), StoreError> {
        self.table.remove(entry).await?;
        let session = entry.session.clone();
        tokio::spawn(async move { session.end().await });
        Ok(())
    }

    /// The session with this id as it is stored, if it belongs to `principal`. It is not added to
    /// the sessions in memory: another node has it, and this node only looks up its tasks.
    #[cfg(feature = "http")]
    pub(crate) async fn stored(
        &self,
        name: &str,
        principal: Option<&Owner>,
    ) -> Result<Option<Arc<Session>>, StoreError> {
        let found = self.read(name).await?;
        Ok(found
            .map(|(session, _)| session)
            .filter(|session| session.belongs_to(principal)))
    }

    /// Restores a stored session.
    async fn restore(&self, name: &str) -> Result<Option<Arc<LiveSession>>, StoreError> {
        let Some((session, stored)) = self.read(name).await? else {
            return Ok(None);
        };
        let Some(entry) = self.table.restore(session.clone(), stored) else {
            return Ok(None);
        };
        // Another request may have restored it meanwhile.
        if Arc::ptr_eq(&entry.session, &session) {
            self.save_on_change(&entry);
            tokio::spawn(session.replay_preferences());
        }
        Ok(Some(entry))
    }

    /// Reads a stored session.
    async fn read(&self, name: &str) -> Result<Option<(Arc<Session>, StoredSession)>, StoreError> {
        // The store is not read for an id that cannot exist.
        if !SessionId::is_well_formed(name) {
            return Ok(None);
        }
        let id = SessionId::new(name);
        let store = self.server.engine.store();
        let Some(record) = store.record(&record::key(&id), now()).await? else {
            return Ok(None);
        };
        let (Some(stored), Some(owner)) = (record::read(&record), record.owner.clone()) else {
            tracing::warn!("could not read the record of a session");
            return Ok(None);
        };
        let is_of_other_endpoint = stored.endpoint.as_ref().is_some_and(|endpoint| {
            let ours = self.server.backend.only_runner();
            ours.is_some_and(|ours| ours != *endpoint)
        });
        if is_of_other_endpoint {
            return Ok(None);
        }
        let session = Session::new(self.server.clone(), id, owner);
        // The session is not shared yet.
        session.set_client(session.client_handle(stored.client_info.clone()), None);
        session.restore_preferences(stored.preferences.clone());
        for task in &stored.created_tasks {
            session.created_tasks.add(*task);
        }
        Ok(Some((session, stored)))
    }

    /// Stores a session whenever its record changes.
    fn save_on_change(&self, live_session: &Arc<LiveSession>) {
        let (table, entry) = (Arc::downgrade(&self.table), Arc::downgrade(live_session));
        live_session.session.set_saver(Box::new(move || {
            let live = table.upgrade().zip(entry.upgrade());
            Box::pin(async move {
                match live {
                    Some((table, entry)) => table.save(&entry).await,
                    // The session was removed from memory, and no request can name it.
                    None => Ok(()),
                }
            })
        }));
    }

    /// Counts one more open request or stream of a session; `None` at the limit.
    pub(crate) fn permit(&self, entry: &LiveSession) -> Option<StreamPermit> {
        self.table.permit(entry)
    }
}

impl Session {
    /// Whether the session belongs to `principal`; without one, whether it is anonymous
    /// (V1-SESS-7).
    fn belongs_to(&self, principal: Option<&Owner>) -> bool {
        let owner: &Owner = &self.owner;
        match principal {
            Some(principal) => owner == principal,
            None => matches!(owner, Owner::Session(_)),
        }
    }
}
