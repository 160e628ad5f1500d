//! The handlers of a server: one for each session, and one for each call whose session is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_wire::envelope::ErrorObject;
use tokio::sync::OnceCell;

use super::Rmcp;
use super::connection::Connection;
use crate::front::{Client, SessionId};

/// The handlers of sessions, by the session.
#[derive(Default)]
pub(super) struct Connections(Mutex<HashMap<SessionId, Slot>>);

type Slot = Arc<OnceCell<Arc<Connection>>>;

impl Connections {
    /// The place for a session's handler; a new one if the handler that was there is gone.
    fn slot(&self, session: &SessionId) -> Slot {
        let mut slots = self.lock();
        let slot = slots.entry(session.clone()).or_default();
        if slot.get().is_some_and(|connection| connection.is_over()) {
            *slot = Slot::default();
        }
        slot.clone()
    }

    /// The handler of a session, if there is one.
    pub(super) fn get(&self, session: &SessionId) -> Option<Arc<Connection>> {
        self.lock().get(session)?.get().cloned()
    }

    /// The session needs its handler no more. Calls that run hold it themselves.
    pub(super) fn remove(&self, session: &SessionId) {
        let removed = self.lock().remove(session);
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Slot>> {
        // Every critical section is a few map operations that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rmcp {
    /// The handler for `client`, started if need be.
    pub(super) async fn connection(
        &self,
        client: &Arc<Client>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        if !client.is_there() {
            return self.start(client).await;
        }
        let session = client.session();
        let slot = self.connections.slot(session);
        let started = slot.get_or_try_init(|| self.start(client)).await.cloned();
        // The session may have ended meanwhile, and nobody would come to take its handler away.
        if started.is_err() || !client.is_there() {
            self.connections.remove(session);
        }
        started
    }
}
