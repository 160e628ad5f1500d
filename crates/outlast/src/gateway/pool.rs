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
use super::connection::{ConnectSpec, Resumption, UpstreamConnection};
use super::{Isolate, Settings, Upstream};
use crate::client::Era;
use crate::log_limit::LogLimit;
use crate::server::ClientHandle;
use crate::transport::http_client::SavedSession;

static LIMIT_REACHED: LogLimit = LogLimit::new();

#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Slots>>);

#[derive(Default)]
struct Slots {
    /// Connections that the calls of an owner share.
    shared: HashMap<ConnectionKey, SharedSlot>,
    /// Connections of single calls, by number.
    dedicated: HashMap<u64, (Owner, Weak<UpstreamConnection>)>,
    last_number: u64,
}

/// Identifies a shared connection: its owner, the input kinds of its clients (BR-NEG-5), and its
/// era.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ConnectionKey {
    owner: Owner,
    accepts: u8,
    era: Era,
    /// The session of a previous run of this process, if it resumes one.
    session: Option<Arc<str>>,
}

/// A shared connection. The lock is held while it connects, so that only one connection is opened.
#[derive(Clone, Default)]
struct SharedSlot {
    state: Arc<tokio::sync::Mutex<SlotState>>,
    /// Calls of a previous run of this process that wait for the connection. The upstream may send
    /// their input requests as soon as it is connected.
    resuming: Arc<Mutex<Vec<ResumedCall>>>,
}

#[derive(Default)]
struct SlotState {
    connection: Option<Arc<UpstreamConnection>>,
    /// The last error, and until when it is returned without another attempt.
    failed: Option<(ErrorObject, Instant)>,
    backoff: Option<Backoff>,
}

/// Counts a connection that is not shared, until it is dropped.
pub(super) struct DedicatedSlot {
    pool: Weak<Mutex<Slots>>,
    number: u64,
}

/// The limit, and the name of its setting.
type ConnectionLimit = (usize, &'static str);

impl Pool {
    pub(super) fn len(&self) -> usize {
        let slots = self.lock();
        let shared = slots.shared.values();
        let dedicated = slots.dedicated.values();
        shared.filter(|slot| slot.connection().is_some()).count()
            + dedicated
                .filter(|(_, opened)| opened.strong_count() > 0)
                .count()
    }

    /// Whether the last attempt to connect failed.
    pub(super) fn is_failing(&self) -> bool {
        let failed = |slot: &SharedSlot| {
            slot.state
                .try_lock()
                .is_ok_and(|state| state.failed.is_some())
        };
        self.lock().shared.values().any(failed)
    }

    /// All connections. Shared ones are removed from the pool.
    pub(super) fn take_all(&self) -> Vec<Arc<UpstreamConnection>> {
        let mut slots = self.lock();
        let taken = std::mem::take(&mut slots.shared);
        let shared = taken.values().filter_map(SharedSlot::connection);
        let dedicated = slots
            .dedicated
            .values()
            .filter_map(|(_, opened)| opened.upgrade());
        shared.chain(dedicated).collect()
    }

    /// The slot for `key`.
    fn slot(
        &self,
        key: &ConnectionKey,
        settings: &Settings,
    ) -> Result<SharedSlot, ConnectionLimit> {
        let mut slots = self.lock();
        if let Some(slot) = slots.shared.get(key) {
            return Ok(slot.clone());
        }
        slots.ensure_capacity(&key.owner, settings)?;
        let slot = SharedSlot::default();
        slots.shared.insert(key.clone(), slot.clone());
        Ok(slot)
    }

    /// A slot for a connection of a single call.
    fn dedicated_slot(
        &self,
        owner: &Owner,
        settings: &Settings,
    ) -> Result<DedicatedSlot, ConnectionLimit> {
        let mut slots = self.lock();
        slots.ensure_capacity(owner, settings)?;
        Ok(self.add_dedicated(&mut slots, owner))
    }

    /// The slot for a call that was admitted by a previous run of this process. It ignores the
    /// limits.
    fn slot_for_resumed(&self, key: &ConnectionKey) -> SharedSlot {
        let mut slots = self.lock();
        slots.shared.entry(key.clone()).or_default().clone()
    }

    fn add_dedicated(&self, slots: &mut Slots, owner: &Owner) -> DedicatedSlot {
        slots.last_number += 1;
        let number = slots.last_number;
        slots.dedicated.insert(number, (owner.clone(), Weak::new()));
        DedicatedSlot {
            pool: Arc::downgrade(&self.0),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        lock(&self.0)
    }
}

impl Slots {
    /// Checks the limits. If one is reached, shared connections that are not needed are closed
    /// first.
    fn ensure_capacity(
        &mut self,
        owner: &Owner,
        settings: &Settings,
    ) -> Result<(), ConnectionLimit> {
        if self.reached_limit(owner, settings).is_some() {
            self.shared.retain(|_, slot| slot.is_needed());
        }
        self.reached_limit(owner, settings).map_or(Ok(()), Err)
    }

    fn reached_limit(&self, owner: &Owner, settings: &Settings) -> Option<ConnectionLimit> {
        let (most, most_own) = (settings.max_connections, settings.max_connections_per_owner);
        let shared = self.shared.keys().map(|key| &key.owner);
        let owners = shared.chain(self.dedicated.values().map(|(owner, _)| owner));
        let own = owners.filter(|other| *other == owner).count();
        let all = self.shared.len() + self.dedicated.len();
        let limits = [
            (all, most, "connections"),
            (own, most_own, "connectionsPerOwner"),
        ];
        let full = limits.into_iter().find(|(open, most, _)| open >= most);
        full.map(|(_, most, setting)| (most, setting))
    }
}

impl SharedSlot {
    /// The connection, unless it is being opened.
    fn connection(&self) -> Option<Arc<UpstreamConnection>> {
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

impl DedicatedSlot {
    /// Sets the connection that it counts.
    pub(super) fn set_connection(&self, connection: &Arc<UpstreamConnection>) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        if let Some((_, opened)) = lock(&pool).dedicated.get_mut(&self.number) {
            *opened = Arc::downgrade(connection);
        }
    }
}

impl Drop for DedicatedSlot {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            lock(&pool).dedicated.remove(&self.number);
        }
    }
}

impl Upstream {
    /// The connection for `client`. It is opened if necessary.
    pub(super) async fn connection(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        let key = self.key(client);
        let slot = self.pool.slot(&key, &self.settings);
        let slot = slot.map_err(|limit| self.limit_reached(limit))?;
        self.open(key, slot, None, client).await
    }

    /// The connection for a call of a previous run of this process, in the session of that call.
    /// The calls of one session share it, because two clients in one session would receive each
    /// other's messages.
    pub(super) async fn resumed_connection(
        &self,
        client: &Arc<ClientHandle>,
        call: &ResumedCall,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        let session = call.session.as_ref();
        let key = ConnectionKey {
            session: session.map(|session| session.id().into()),
            era: call.era,
            ..self.key(client)
        };
        let slot = self.pool.slot_for_resumed(&key);
        slot.resuming.lock().push(call.clone());
        let opened = self.open(key, slot.clone(), session.cloned(), client).await;
        slot.resuming
            .lock()
            .retain(|other| !other.is_same_call(call));
        let connection = opened?;
        connection.shared.calls.resume(call);
        Ok(connection)
    }

    /// The connection in `slot`. It is opened if necessary.
    async fn open(
        &self,
        key: ConnectionKey,
        slot: SharedSlot,
        session: Option<SavedSession>,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        let mut state = slot.state.lock_owned().await;
        if let Some(found) = state.connection.as_ref().filter(|found| !found.is_closed()) {
            found.mark_used_by(client);
            return Ok(found.clone());
        }
        state.connection = None;
        if let Some((error, until)) = &state.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        if session.is_none() {
            self.probes.wait_until_done().await;
        }
        let pending = PendingConnection {
            spec: self.connect_spec(key.era, &key.owner),
            state,
            probe_failed: self.probe_failed.clone(),
            pool: self.pool.clone(),
            resuming: slot.resuming,
            session,
            key,
            idle: self.settings.idle_timeout,
        };
        // Spawned, because a caller that gives up must not stop a server that is slow to start.
        let opened = tokio::spawn(pending.connection(client.clone())).await;
        opened.unwrap_or_else(|_| {
            Err(codes::internal(
                "the connection could not be opened: its task was aborted",
            ))
        })
    }

    /// The connection for one call of `client`: the prepared one, unless it is closed.
    pub(super) async fn call_connection(
        &self,
        prepared: Option<Arc<UpstreamConnection>>,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        match prepared.filter(|prepared| !prepared.is_closed()) {
            Some(connection) => Ok(connection),
            None => self.connection_for_call(client).await,
        }
    }

    /// The connection for one call of `client`.
    async fn connection_for_call(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        if self.settings.isolate == Isolate::Owner {
            return self.connection(client).await;
        }
        let dedicated = self.pool.dedicated_slot(client.owner(), &self.settings);
        let dedicated = dedicated.map_err(|limit| self.limit_reached(limit))?;
        self.probes.wait_until_done().await;
        // Boxed because the future is large and rarely used.
        let spec = self.connect_spec(self.settings.era_for(client), client.owner());
        Box::pin(UpstreamConnection::open(
            &spec,
            client,
            Resumption::default(),
            Some(dedicated),
        ))
        .await
    }

    /// The connection for `client`, if one is open.
    pub(super) fn open_connection(&self, client: &ClientHandle) -> Option<Arc<UpstreamConnection>> {
        let key = self.key(client);
        let slot = self.pool.lock().shared.get(&key).cloned()?;
        slot.connection()
    }

    fn key(&self, client: &ClientHandle) -> ConnectionKey {
        ConnectionKey {
            owner: client.owner().clone(),
            accepts: client.accepts().bits(),
            era: self.settings.era_for(client),
            session: None,
        }
    }

    fn limit_reached(&self, (most, setting): ConnectionLimit) -> ErrorObject {
        LIMIT_REACHED.log(|left_out| {
            tracing::warn!(
                upstream = &*self.name,
                most,
                setting,
                left_out,
                "the limit of connections is reached"
            );
        });
        codes::internal(format!(
            "{} has {most} connections in use, which is the limit (setting `{setting}`); try again later",
            self.name
        ))
    }
}

/// A shared connection that is being opened.
struct PendingConnection {
    spec: ConnectSpec,
    state: OwnedMutexGuard<SlotState>,
    probe_failed: Arc<AtomicBool>,
    pool: Pool,
    resuming: Arc<Mutex<Vec<ResumedCall>>>,
    session: Option<SavedSession>,
    key: ConnectionKey,
    idle: Duration,
}

impl PendingConnection {
    async fn connection(
        self,
        client: Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        let mut state = self.state;
        let resumed = Resumption {
            calls: self.resuming.lock().clone(),
            session: self.session,
        };
        match UpstreamConnection::open(&self.spec, &client, resumed, None).await {
            Ok(connection) => {
                self.probe_failed.store(false, Ordering::Relaxed);
                *state = SlotState {
                    connection: Some(connection.clone()),
                    ..SlotState::default()
                };
                tokio::spawn(close_when_idle(
                    self.spec.name,
                    Arc::downgrade(&connection),
                    Arc::downgrade(&self.pool.0),
                    self.key,
                    self.idle,
                ));
                Ok(connection)
            }
            Err(error) => {
                // Do not start a failing server for every request.
                let backoff = state.backoff.get_or_insert(RECONNECT_BACKOFF);
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
    connection: Weak<UpstreamConnection>,
    pool: Weak<Mutex<Slots>>,
    key: ConnectionKey,
    idle: Duration,
) {
    loop {
        tokio::time::sleep(idle / 2).await;
        let (Some(connection), Some(pool)) = (connection.upgrade(), pool.upgrade()) else {
            return;
        };
        if connection.is_needed() || connection.idle_time() < idle {
            continue;
        }
        let mut slots = lock(&pool);
        let is_this = slots
            .shared
            .get(&key)
            .and_then(SharedSlot::connection)
            .is_some_and(|found| Arc::ptr_eq(&found, &connection));
        if is_this {
            slots.shared.remove(&key);
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

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    slots.lock()
}

/// Delays between attempts to start a server.
pub(super) const RECONNECT_BACKOFF: Backoff =
    Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
