//! Changes of lists and resources, and their broadcast to modern listeners.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_wire::method;
use tokio::sync::broadcast;

/// Data of the server that clients may have cached has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(Arc<str>),
}

/// Broadcasts changes to modern listeners.
#[derive(Debug)]
pub(crate) struct ChangeBroadcast(broadcast::Sender<ChangeEvent>);

/// A change, and the owner whose clients receive it; `None` for all clients.
pub(crate) type ChangeEvent = (Option<Owner>, ListChange);

impl ListChange {
    /// The notification for this change.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_CHANGED,
            Self::Prompts => method::PROMPTS_CHANGED,
            Self::Resources => method::RESOURCES_CHANGED,
            Self::Resource(_) => method::RESOURCE_UPDATED,
        }
    }
}

impl Default for ChangeBroadcast {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_LAG_CHANGES))
    }
}

impl ChangeBroadcast {
    /// Sends a change to all listeners.
    pub(crate) fn send(&self, owner: Option<Owner>, change: ListChange) {
        // There may be no listener.
        let _ = self.0.send((owner, change));
    }

    /// Receives the changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ChangeEvent> {
        self.0.subscribe()
    }
}

/// How many changes a slow listener may be behind.
const MAX_LAG_CHANGES: usize = 256;
