//! The connections to an upstream.
//!
//! Connections are never shared between owners. There is one for each owner and set of input kinds;
//! one for each session of a previous run of this process, shared by the resumed tasks of that
//! session; and one for each call if calls are isolated. The limits count all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::{Backoff, Owner};
use outlast_wire::codes;
use outlast_wire::envelope::ErrorObject;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::active_calls::ResumedCall;
use super::connection::{Connection, Resumption, Way};
use super::{Isolate, Settings, Upstream};
use crate::client::Era;
use crate::server::ClientHandle;
use crate::transport::http_client::SavedSession;

#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    /// Connections that the calls of an owner share.
    shared: HashMap<Key, Slot>,
    /// Connections of single calls, by number.
    apart: HashMap<u64, (Owner, Weak<Connection>)>,
    numbers: u64,
}

/// Identifies a shared connection: its owner, the input kinds of its clients (BR-NEG-5), and its
/// era.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: Owner,
    accepts: u8,
    era: Era,
    /// The session of a previous run of this process, if it resumes one.
    session: Option<Arc<str>>,
}

/// A shared connection. The lock is held while it connects, so that only one connection is opened.
#[derive(Clone, Default)]
struct Slot {
    state: Arc<tokio::sync::Mutex<State>>,
    /// Calls of a previous run of this process that wait for the connection. The upstream may send
    /// their input requests as soon as it is connected.
    resuming: Arc<Mutex<Vec<ResumedCall>>>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The last error, and until when it is returned without another attempt.
    failed: Option<(ErrorObject, Instant)>,
    backoff: Option<Backoff>,
}

/// Counts a connection that is not shared, until it is dropped.
pub(super) struct Apart {
    pool: Weak<Mutex<Places>>,
    number: u64,
}

/// The limit, and the name of its setting.
type TooMany = (usize, &'static str);

impl Pool {
    pub(super) fn len(&self) -> usize {
        let places = self.lock();
        let shared = places.shared.values();
        let apart = places.apart.values();
        shared.filter(|slot| slot.connection().is_some()).count()
            + apart.filter(|(_, made)| made.strong_count() > 0).count()
    }

    /// Whether the last attempt to connect failed.
    pub(super) fn is_failing(&self) -> bool {
        let failed = |slot: &Slot| {
            slot.state
                .try_lock()
                .is_ok_and(|state| state.failed.is_some())
        };
        self.lock().shared.values().any(failed)
    }

    /// All connections. Shared ones are removed from the pool.
    pub(super) fn take_all(&self) -> Vec<Arc<Connection>> {
        let mut places = self.lock();
        let slots = std::mem::take(&mut places.shared);
        let shared = slots.values().filter_map(Slot::connection);
        let apart = places.apart.values().filter_map(|(_, made)| made.upgrade());
        shared.chain(apart).collect()
    }

    /// The slot for `key`.
    fn slot(&self, key: &Key, settings: &Settings) -> Result<Slot, TooMany> {
        let mut places = self.lock();
        if let Some(slot) = places.shared.get(key) {
            return Ok(slot.clone());
        }
        places.make_room(&key.owner, settings)?;
        let slot = Slot::default();
        places.shared.insert(key.clone(), slot.clone());
        Ok(slot)
    }

    /// A slot for a connection of a single call.
    fn place_apart(&self, owner: &Owner, settings: &Settings) -> Result<Apart, TooMany> {
        let mut places = self.lock();
        places.make_room(owner, settings)?;
        Ok(self.seat(&mut places, owner))
    }

    /// The slot for a call that was admitted by a previous run of this process. It ignores the
    /// limits.
    fn slot_again(&self, key: &Key) -> Slot {
        let mut places = self.lock();
        places.shared.entry(key.clone()).or_default().clone()
    }

    fn seat(&self, places: &mut Places, owner: &Owner) -> Apart {
        places.numbers += 1;
        let number = places.numbers;
        places.apart.insert(number, (owner.clone(), Weak::new()));
        Apart {
            pool: Arc::downgrade(&self.0),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        lock(&self.0)
    }
}

impl Places {
    /// Checks the limits. If one is reached, shared connections that are not needed are closed
    /// first.
    fn make_room(&mut self, owner: &Owner, settings: &Settings) -> Result<(), TooMany> {
        if self.is_full(owner, settings).is_some() {
            self.shared.retain(|_, slot| slot.is_needed());
        }
        self.is_full(owner, settings).map_or(Ok(()), Err)
    }

    fn is_full(&self, owner: &Owner, settings: &Settings) -> Option<TooMany> {
        let (most, most_own) = (settings.connections, settings.connections_per_owner);
        let shared = self.shared.keys().map(|key| &key.owner);
        let owners = shared.chain(self.apart.values().map(|(owner, _)| owner));
        let own = owners.filter(|other| *other == owner).count();
        let all = self.shared.len() + self.apart.len();
        let limits = [
            (all, most, "connections"),
            (own, most_own, "connectionsPerOwner"),
        ];
        let full = limits.into_iter().find(|(open, most, _)| open >= most);
        full.map(|(_, most, setting)| (most, setting))
    }
}

impl Slot {
    /// The connection, unless it is being opened.
    fn connection(&self) -> Option<Arc<Connection>> {
        let state = self.state.try_lock().ok()?;
        state.connection.clone()
    }

    fn is_needed(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state
                .connection
                .as_ref()
                .is_some_and(|connection| connection.is_needed()),
            // It is being opened.
            Err(_) => true,
        }
    }
}

impl Apart {
    /// Sets the connection that it counts.
    pub(super) fn is_of(&self, connection: &Arc<Connection>) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        if let Some((_, made)) = lock(&pool).apart.get_mut(&self.number) {
            *made = Arc::downgrade(connection);
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            lock(&pool).apart.remove(&self.number);
        }
    }
}

impl Upstream {
    /// The connection for `client`. It is opened if necessary.
    pub(super) async fn connection(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let key = self.key(client);
        let slot = self.pool.slot(&key, &self.settings);
        let slot = slot.map_err(|too_many| self.crowded(too_many))?;
        self.open(key, slot, None, client).await
    }

    /// The connection for a call of a previous run of this process, in the session of that call.
    /// The calls of one session share it, because two clients in one session would receive each
    /// other's messages.
    pub(super) async fn connection_again(
        &self,
        client: &Arc<ClientHandle>,
        call: &ResumedCall,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let session = call.session.as_ref();
        let key = Key {
            session: session.map(|session| session.id().into()),
            era: call.era,
            ..self.key(client)
        };
        let slot = self.pool.slot_again(&key);
        slot.resuming.lock().push(call.clone());
        let opened = self.open(key, slot.clone(), session.cloned(), client).await;
        slot.resuming.lock().retain(|other| !other.is(call));
        let connection = opened?;
        connection.shared.calls.resume(call);
        Ok(connection)
    }

    /// The connection in `slot`. It is opened if necessary.
    async fn open(
        &self,
        key: Key,
        slot: Slot,
        session: Option<SavedSession>,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let mut state = slot.state.lock_owned().await;
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
        if session.is_none() {
            self.probing.done().await;
        }
        let making = Making {
            way: self.way(key.era),
            state,
            unmet: self.unmet.clone(),
            pool: self.pool.clone(),
            resuming: slot.resuming,
            session,
            key,
            idle: self.settings.idle,
        };
        // Spawned, because a caller that gives up must not stop a server that is slow to start.
        let made = tokio::spawn(making.connection(client.clone())).await;
        made.unwrap_or_else(|_| Err(codes::internal("the connection could not be opened: its task was aborted")))
    }

    /// The connection for one call of `client`: the prepared one, unless it is closed.
    pub(super) async fn connection_of(
        &self,
        prepared: Option<Arc<Connection>>,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        match prepared.filter(|prepared| !prepared.is_over()) {
            Some(connection) => Ok(connection),
            None => self.connection_for_call(client).await,
        }
    }

    /// The connection for one call of `client`.
    async fn connection_for_call(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        if self.settings.isolate == Isolate::Owner {
            return self.connection(client).await;
        }
        let place = self.pool.place_apart(client.owner(), &self.settings);
        let place = place.map_err(|too_many| self.crowded(too_many))?;
        self.probing.done().await;
        // Boxed because the future is large and rarely used.
        let way = self.way(self.settings.era_for(client));
        Box::pin(Connection::open(
            &way,
            client,
            Resumption::default(),
            Some(place),
        ))
        .await
    }

    /// The connection for `client`, if one is open.
    pub(super) fn running(&self, client: &ClientHandle) -> Option<Arc<Connection>> {
        let key = self.key(client);
        let slot = self.pool.lock().shared.get(&key).cloned()?;
        slot.connection()
    }

    fn key(&self, client: &ClientHandle) -> Key {
        Key {
            owner: client.owner().clone(),
            accepts: client.accepts().bits(),
            era: self.settings.era_for(client),
            session: None,
        }
    }

    fn crowded(&self, (most, setting): TooMany) -> ErrorObject {
        tracing::warn!(
            upstream = &*self.name,
            most,
            setting,
            "the limit of connections is reached"
        );
        codes::internal(format!(
            "{} has {most} connections in use, which is the limit (setting `{setting}`); try again later",
            self.name
        ))
    }
}

/// A shared connection that is being opened.
struct Making {
    way: Way,
    state: OwnedMutexGuard<State>,
    unmet: Arc<AtomicBool>,
    pool: Pool,
    resuming: Arc<Mutex<Vec<ResumedCall>>>,
    session: Option<SavedSession>,
    key: Key,
    idle: Duration,
}

impl Making {
    async fn connection(self, client: Arc<ClientHandle>) -> Result<Arc<Connection>, ErrorObject> {
        let mut state = self.state;
        let resumed = Resumption {
            calls: self.resuming.lock().clone(),
            session: self.session,
        };
        match Connection::open(&self.way, &client, resumed, None).await {
            Ok(connection) => {
                self.unmet.store(false, Ordering::Relaxed);
                *state = State {
                    connection: Some(connection.clone()),
                    ..State::default()
                };
                tokio::spawn(close_when_idle(
                    self.way.name,
                    Arc::downgrade(&connection),
                    Arc::downgrade(&self.pool.0),
                    self.key,
                    self.idle,
                ));
                Ok(connection)
            }
            Err(error) => {
                // Do not start a failing server for every request.
                let backoff = state.backoff.get_or_insert(RESTARTS);
                let pause = backoff.delay();
                state.failed = Some((error.clone(), Instant::now() + pause));
                Err(error)
            }
        }
    }
}

/// Closes a connection that was not needed for `idle`. Dropping the last handle closes it.
async fn close_when_idle(
    upstream: Arc<str>,
    connection: Weak<Connection>,
    pool: Weak<Mutex<Places>>,
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
        let mut places = lock(&pool);
        let is_this = places
            .shared
            .get(&key)
            .and_then(Slot::connection)
            .is_some_and(|found| Arc::ptr_eq(&found, &connection));
        if is_this {
            places.shared.remove(&key);
            let owner = &key.owner;
            tracing::info!(
                upstream = &*upstream,
                owner = owner.to_string(),
                "closed an idle connection"
            );
        }
        return;
    }
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock()
}

/// Delays between attempts to start a server.
pub(super) const RESTARTS: Backoff =
    Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
