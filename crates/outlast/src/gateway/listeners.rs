//! The clients that receive messages of an upstream that belong to no call, and the preferences of
//! their sessions: resource subscriptions and the log level.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use outlast_wire::Raw;
use parking_lot::Mutex;

use crate::server::{ClientHandle, SessionId};

/// The clients of one connection to an upstream.
pub(super) struct Listeners(Mutex<State>);

struct State {
    clients: Vec<Weak<ClientHandle>>,
    /// The subscribed sessions of each resource.
    subscriptions: HashMap<String, BTreeSet<String>>,
    /// The minimum level of log messages, as a JSON string.
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

    /// The connected clients.
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

    /// Subscribes a session to a resource. Returns whether it is the first.
    pub(super) fn subscribe(&self, session: &SessionId, uri: &str) -> bool {
        let mut state = self.0.lock();
        let sessions = state.subscriptions.entry(uri.to_owned()).or_default();
        sessions.insert(session.as_str().to_owned());
        sessions.len() == 1
    }

    /// Ends a subscription of a session. Returns whether it was the last.
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

    /// The resources with a subscription.
    pub(super) fn resources(&self) -> Vec<String> {
        self.0.lock().subscriptions.keys().cloned().collect()
    }

    /// Sets the minimum level of log messages.
    pub(super) fn set_level(&self, level: Option<Raw>) {
        self.0.lock().level = level;
    }

    /// The minimum level of log messages, as a JSON string.
    pub(super) fn level(&self) -> Option<Raw> {
        self.0.lock().level.clone()
    }
}
