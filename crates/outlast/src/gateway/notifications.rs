//! Notifications of an upstream. List changes go to the servers of this process, log messages to
//! their call, others to the sessions of the connection.

use std::sync::{Arc, Weak};

use outlast_wire::log::{self, Log};
use outlast_wire::{RawRef, method, object};

use super::connection::Shared;
use crate::client::NotificationHandler;
use crate::server::ListChange;

impl Shared {
    /// The handler for notifications of the upstream.
    pub(super) fn notification_handler(self: Arc<Self>) -> NotificationHandler {
        let shared: Weak<Self> = Arc::downgrade(&self);
        Arc::new(move |method, params| {
            if let Some(shared) = shared.upgrade() {
                shared.handle_notification(method, params);
            }
        })
    }

    fn handle_notification(&self, method: &str, params: Option<RawRef<'_>>) {
        let change = match method {
            method::TOOLS_CHANGED => ListChange::Tools,
            method::PROMPTS_CHANGED => ListChange::Prompts,
            method::RESOURCES_CHANGED => ListChange::Resources,
            method::RESOURCE_UPDATED => {
                let uri = params.and_then(|params| object::find(params, &["uri"]));
                match uri.and_then(RawRef::text) {
                    Some(uri) => ListChange::Resource(uri.into()),
                    None => return,
                }
            }
            log::MESSAGE => {
                // The message does not name its call.
                let call = self
                    .calls
                    .find(None, None)
                    .ok()
                    .and_then(|slot| slot.context());
                match (params.and_then(Log::read), call) {
                    (Some(log), Some(call)) => call.log(log),
                    _ => self.forward(method, params),
                }
                return;
            }
            _ => return self.forward(method, params),
        };
        // BR-LIST-9.
        self.broadcaster.announce_to(&self.owner, &change);
    }

    fn forward(&self, method: &str, params: Option<RawRef<'_>>) {
        let params = params.map(RawRef::to_raw);
        for client in self.listeners.clients() {
            client.notify(method, params.as_ref());
        }
    }
}
