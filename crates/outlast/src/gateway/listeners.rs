//! The clients that receive what an upstream sends without a call, and what their sessions want: changes of resources, and
//! log messages from a level on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use outlast_wire::Raw;
use parking_lot::Mutex;

use crate::server::{ClientHandle, SessionId};

/// The clients of one connection to an upstream.
pub(super) struct Listeners(Mutex<State>);

struct State {
    clients: Vec<Weak<ClientHandle>>,
    /// The sessions that are subscribed to each resource.
    subscriptions: HashMap<String, BTreeSet<String>>,
    /// From which level on log messages are wanted, as a JSON string.
    level: Option<Raw>,
}

impl Listeners {
    pub(super) fn new(first: &Arc<ClientHandle>) -> Self {
        Self(Mutex::new(State {
            clients: vec![Arc::downgrade(first)],
            subscriptions: HashMap::new(),
            level: None,
        }))
    }

    /// Adds a client, once. Clients without a session receive nothing without a call.
    pub(super) fn add(&self, client: &Arc<ClientHandle>) {
        if !client.has_session() {
            return;
        }
        let new = Arc::downgrade(client);
        let clients = &mut self.0.lock().clients;
        if !clients.iter().any(|known| known.ptr_eq(&new)) {
            clients.retain(|client| client.strong_count() > 0);
            clients.push(new);
        }
    }

    /// The clients that are left.
    pub(super) fn clients(&self) -> Vec<Arc<ClientHandle>> {
        let state = self.0.lock();
        state.clients.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether a session is subscribed to a resource, or a client has a stream open.
    pub(super) fn is_any_listening(&self) -> bool {
        let mut state = self.0.lock();
        state.clients.retain(|client| client.strong_count() > 0);
        let mut clients = state.clients.iter().filter_map(Weak::upgrade);
        !state.subscriptions.is_empty() || clients.any(|client| client.is_listening())
    }

    /// Subscribes a session to a resource; whether it is the first.
    pub(super) fn subscribe(&self, session: &SessionId, uri: &str) -> bool {
        let mut state = self.0.lock();
        let sessions = state.subscriptions.entry(uri.to_owned()).or_default();
        sessions.insert(session.as_str().to_owned());
        sessions.len() == 1
    }

    /// Ends a subscription of a session; whether no session is subscribed to the resource any more.
    pub(super) fn unsubscribe(&self, session: &SessionId, uri: &str) -> bool {
        let mut state = self.0.lock();
        let Some(sessions) = state.subscriptions.get_mut(uri) else {
            return true;
        };
        sessions.remove(session.as_str());
        let is_last = sessions.is_empty();
        if is_last {
            state.subscriptions.remove(uri);
        }
        is_last
    }

    /// The resources to which a session is subscribed.
    pub(super) fn resources(&self) -> Vec<String> {
        self.0.lock().subscriptions.keys().cloned().collect()
    }

    /// Sets from which level on log messages are wanted.
    pub(super) fn set_level(&self, level: Option<Raw>) {
        self.0.lock().level = level;
    }

    /// From which level on log messages are wanted, as a JSON string.
    pub(super) fn level(&self) -> Option<Raw> {
        self.0.lock().level.clone()
    }
}
