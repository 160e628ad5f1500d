//! What changed on a server apart from its tasks, for whoever listens.

use std::sync::Arc;

use outlast_engine::Owner;
use outlast_wire::method;
use tokio::sync::broadcast;

/// Something that a client may have remembered is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource of this address.
    Resource(Arc<str>),
}

/// Tells of changes.
#[derive(Debug)]
pub(crate) struct ChangeBroadcast(broadcast::Sender<ChangeEvent>);

/// What changed, and for whom: for everybody unless an owner is named.
pub(crate) type ChangeEvent = (Option<Owner>, ListChange);

impl ListChange {
    /// The notification that tells of it.
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
    /// Tells whoever listens.
    pub(crate) fn send(&self, owner: Option<Owner>, change: ListChange) {
        // Nobody may listen.
        let _ = self.0.send((owner, change));
    }

    /// What changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ChangeEvent> {
        self.0.subscribe()
    }
}

/// How many changes a listener may be behind.
const MAX_LAG_CHANGES: usize = 256;
