//! The connections to an upstream: one for each owner and what its clients can be asked, never shared between owners.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outlast_engine::Owner;
use outlast_wire::codes;
use outlast_wire::envelope::ErrorObject;
use tokio::time::Instant;

use super::connection::Connection;
use super::{Isolate, Settings, Upstream};
use crate::front::Client;

#[derive(Default)]
pub(super) struct Pool(Arc<Mutex<HashMap<Key, Arc<Slot>>>>);

/// Whose connection it is, and what it may ask (BR-NEG-5).
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: Owner,
    accepts: u8,
}

/// The place of a connection. The lock is held while one is made, so that it is made once.
#[derive(Default)]
struct Slot(tokio::sync::Mutex<State>);

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// What went wrong last, and until when it is not tried again.
    failed: Option<(ErrorObject, Instant)>,
    pause: Duration,
}

impl Pool {
    pub(super) fn len(&self) -> usize {
        self.lock()
            .values()
            .filter(|slot| slot.connection().is_some())
            .count()
    }

    /// Whether a connection was not made when that was tried last.
    pub(super) fn is_failing(&self) -> bool {
        let failed = |slot: &Arc<Slot>| slot.0.try_lock().is_ok_and(|state| state.failed.is_some());
        self.lock().values().any(failed)
    }

    /// Takes every connection out.
    pub(super) fn take_all(&self) -> Vec<Arc<Connection>> {
        let slots = std::mem::take(&mut *self.lock());
        slots
            .values()
            .filter_map(|slot| slot.connection())
            .collect()
    }

    /// The place for `key`. Where there is no room, connections that nobody needs make some.
    fn slot(&self, key: &Key, settings: &Settings) -> Result<Arc<Slot>, (usize, &'static str)> {
        let (most, own) = (settings.connections, settings.connections_per_owner);
        let mut slots = self.lock();
        if let Some(slot) = slots.get(key) {
            return Ok(slot.clone());
        }
        let of_owner = |slots: &HashMap<Key, _>| {
            let own = slots.keys().filter(|other| other.owner == key.owner);
            own.count()
        };
        if slots.len() >= most || of_owner(&slots) >= own {
            slots.retain(|_, slot| slot.is_needed());
        }
        if slots.len() >= most {
            return Err((most, "connections"));
        }
        if of_owner(&slots) >= own {
            return Err((own, "connectionsPerOwner"));
        }
        let slot = Arc::<Slot>::default();
        slots.insert(key.clone(), slot.clone());
        Ok(slot)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
        lock(&self.0)
    }
}

impl Slot {
    /// The connection, unless one is being made.
    fn connection(&self) -> Option<Arc<Connection>> {
        let state = self.0.try_lock().ok()?;
        state.connection.clone()
    }

    fn is_needed(&self) -> bool {
        match self.0.try_lock() {
            Ok(state) => state
                .connection
                .as_ref()
                .is_some_and(|connection| connection.is_needed()),
            // One is being made.
            Err(_) => true,
        }
    }
}

impl Upstream {
    /// The connection for `client`, made if need be.
    pub(super) async fn connection(
        &self,
        client: &Arc<Client>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let key = Key {
            owner: client.owner().clone(),
            accepts: client.accepts().bits(),
        };
        let slot = self.pool.slot(&key, &self.settings);
        let slot = slot.map_err(|(most, setting)| {
            tracing::warn!(upstream = &*self.name, most, setting, "too many connections");
            codes::internal(format!(
                "{} has {most} connections in use, which is the limit (setting `{setting}`); try again later",
                self.name
            ))
        })?;
        let mut state = slot.0.lock().await;
        if let Some(found) = state.connection.as_ref().filter(|found| !found.is_over()) {
            found.used_by(client);
            return Ok(found.clone());
        }
        state.connection = None;
        if let Some((error, until)) = &state.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        // Rare, and large: whoever finds one has no room for it.
        match Box::pin(Connection::open(self, client, None)).await {
            Ok(connection) => {
                self.unmet.store(false, Ordering::Relaxed);
                *state = State {
                    connection: Some(connection.clone()),
                    ..State::default()
                };
                tokio::spawn(close_when_idle(
                    self.name.clone(),
                    Arc::downgrade(&connection),
                    Arc::downgrade(&self.pool.0),
                    key,
                    self.settings.idle,
                ));
                Ok(connection)
            }
            Err(error) => {
                // A server that does not begin is not begun for every request.
                state.pause = (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                state.failed = Some((error.clone(), Instant::now() + state.pause));
                Err(error)
            }
        }
    }

    /// The connection for one call of `client`.
    pub(super) async fn connection_for_call(
        &self,
        client: &Arc<Client>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        match self.settings.isolate {
            Isolate::Owner => self.connection(client).await,
            Isolate::Call => Box::pin(Connection::open(self, client, None)).await,
        }
    }

    /// The connection for `client`, if there is one.
    pub(super) fn running(&self, client: &Client) -> Option<Arc<Connection>> {
        let key = Key {
            owner: client.owner().clone(),
            accepts: client.accepts().bits(),
        };
        let slot = self.pool.lock().get(&key).cloned()?;
        slot.connection()
    }
}

/// Closes a connection when nobody has needed it for a while. Dropping the last handle closes it.
async fn close_when_idle(
    upstream: Arc<str>,
    connection: Weak<Connection>,
    pool: Weak<Mutex<HashMap<Key, Arc<Slot>>>>,
    key: Key,
    idle: Duration,
) {
    loop {
        tokio::time::sleep(idle / 2).await;
        let (Some(connection), Some(pool)) = (connection.upgrade(), pool.upgrade()) else {
            return;
        };
        if connection.is_needed() || connection.idle() < idle {
            continue;
        }
        let mut slots = lock(&pool);
        let is_this = slots
            .get(&key)
            .and_then(|slot| slot.connection())
            .is_some_and(|found| Arc::ptr_eq(&found, &connection));
        if is_this {
            slots.remove(&key);
            let owner = &*key.owner.shown();
            tracing::info!(upstream = &*upstream, owner, "closed: nobody needed it");
        }
        return;
    }
}

fn lock(slots: &Mutex<HashMap<Key, Arc<Slot>>>) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
    // Every critical section is a few map operations that do not panic.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a server that did not begin is left alone at first, and at most.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
