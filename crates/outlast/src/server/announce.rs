//! Notifications of list and resource changes, to the clients of sessions and to modern listeners.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_wire::{Raw, RawRef, object};
use serde_json::json;

use super::client_handle::ClientChannel;
use super::{ListChange, McpServer, Session};

impl McpServer {
    /// Sends a change to every client that can be reached and to which the capability was declared.
    pub fn announce(&self, change: ListChange) {
        for session in self.sessions() {
            session.send_change(&change);
        }
        self.modern.changes.send(None, change);
    }

    /// Sends a change to the clients of one owner.
    pub fn announce_to(&self, owner: &Owner, change: ListChange) {
        let has_owner = |session: &Arc<Session>| session.owner == *owner;
        for session in self.sessions().into_iter().filter(has_owner) {
            session.send_change(&change);
        }
        self.modern.changes.send(Some(owner.clone()), change);
    }
}

impl Session {
    fn send_change(&self, change: &ListChange) {
        let (capability, params) = match change {
            ListChange::Tools => (["tools", "listChanged"], None),
            ListChange::Prompts => (["prompts", "listChanged"], None),
            ListChange::Resources => (["resources", "listChanged"], None),
            ListChange::Resource(uri) if self.preferences.has_subscribed(uri) => {
                let params = Raw::encode(&json!({ "uri": &**uri })).expect("strings are JSON");
                (["resources", "subscribe"], Some(params))
            }
            ListChange::Resource(_) => return,
        };
        if self.has_declared(&capability) {
            self.notify(change.method(), params.as_ref());
        }
    }

    /// Whether the server has declared this capability to the client.
    fn has_declared(&self, path: &[&str]) -> bool {
        self.known_description().is_some_and(|description| {
            object::find(description.capabilities.borrow(), path).and_then(RawRef::boolean)
                == Some(true)
        })
    }
}
