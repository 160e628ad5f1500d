//! Telling clients that something changed: those of sessions at once, those that listen on their streams.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_wire::{Raw, RawRef, object};
use serde_json::json;

use super::client_handle::Outbox;
use super::{Change, Front, Session};

impl Front {
    /// Tells every client that can hear of it and was promised to that something changed which it may have
    /// remembered.
    pub fn announce(&self, change: Change) {
        for session in self.sessions() {
            session.hear_change(&change);
        }
        self.modern.changes.tell(None, change);
    }

    /// The same, of something that concerns one owner only.
    pub fn announce_to(&self, owner: &Owner, change: Change) {
        let theirs = |session: &Arc<Session>| session.owner == *owner;
        for session in self.sessions().into_iter().filter(theirs) {
            session.hear_change(&change);
        }
        self.modern.changes.tell(Some(owner.clone()), change);
    }
}

impl Session {
    fn hear_change(&self, change: &Change) {
        let (promise, params) = match change {
            Change::Tools => (["tools", "listChanged"], None),
            Change::Prompts => (["prompts", "listChanged"], None),
            Change::Resources => (["resources", "listChanged"], None),
            Change::Resource(uri) if self.preferences.has_subscribed(uri) => {
                let params = Raw::encode(&json!({ "uri": &**uri })).expect("a text is JSON");
                (["resources", "subscribe"], Some(params))
            }
            Change::Resource(_) => return,
        };
        if self.promised(&promise) {
            self.notify(change.method(), params.as_ref());
        }
    }

    /// Whether the server said of itself that it does this.
    fn promised(&self, path: &[&str]) -> bool {
        self.said().is_some_and(|about| {
            object::find(about.capabilities.borrow(), path).and_then(RawRef::truth) == Some(true)
        })
    }
}
