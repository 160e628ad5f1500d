//! A client as backends see it: its identity, capabilities, notifications and requests to it, and
//! extension data.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use outlast_engine::{InputKind, InputKinds, Owner};
use outlast_wire::envelope::Id;
use outlast_wire::{Raw, RawRef, version};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::session::PendingClientRequest;
use super::{ClientInfo, SessionId};
use crate::input_capabilities::input_capabilities;

/// A client of the server.
pub struct ClientHandle {
    session: SessionId,
    owner: Owner,
    client_info: ClientInfo,
    accepts: InputKinds,
    channel: Option<Weak<dyn ClientChannel>>,
    extensions: Mutex<HashMap<u64, Arc<dyn Any + Send + Sync>>>,
}

/// A key for extension data of clients. The data of one key is invisible to every other key.
#[derive(Debug)]
pub struct ExtensionKey(u64);

/// Sends messages to a client outside of any response.
pub(super) trait ClientChannel: Send + Sync {
    fn notify(&self, method: &str, params: Option<&Raw>);

    /// Whether the client can be reached now.
    fn is_open(&self) -> bool;

    /// Changes to `true` when the client begins to listen.
    fn listening(&self) -> watch::Receiver<bool>;

    /// Sends a request that belongs to no call; `None` if the client does not listen.
    fn send_request(&self, kind: InputKind, params: Option<&Raw>) -> Option<PendingClientRequest>;

    /// Cancels such a request, unless it has a response.
    fn cancel_request(&self, id: &Id);
}

impl ClientHandle {
    pub(super) fn new(
        session: SessionId,
        owner: Owner,
        client_info: ClientInfo,
        channel: Weak<dyn ClientChannel>,
    ) -> Self {
        Self {
            session,
            owner,
            accepts: client_info.accepts(),
            client_info,
            channel: Some(channel),
            extensions: Mutex::default(),
        }
    }

    /// A client that is not connected. `accepts` are the input requests that it accepted when it
    /// called.
    pub fn absent(owner: Owner, accepts: InputKinds) -> Self {
        let capabilities = Raw::from(&input_capabilities(accepts));
        Self {
            session: SessionId::new(""),
            owner,
            accepts,
            client_info: ClientInfo::new(version::LEGACY, capabilities),
            channel: None,
            extensions: Mutex::default(),
        }
    }

    /// Whether the client receives progress for the whole lifecycle of a task: only with a token,
    /// and only in the legacy era. Otherwise progress becomes the status message of the task
    /// (BR-PG-2).
    pub(crate) fn receives_progress(&self, has_token: bool) -> bool {
        has_token && self.version() != version::MODERN
    }

    /// A client without a session, which describes itself in every request.
    pub(crate) fn stateless(owner: Owner, client_info: ClientInfo) -> Self {
        // One session id for all requests that can be served alike.
        let accepts = client_info.accepts();
        let session = format!("{owner} {}", accepts.bits());
        Self {
            session: SessionId::new(session),
            owner,
            accepts,
            client_info,
            channel: None,
            extensions: Mutex::default(),
        }
    }

    pub(crate) fn client_info(&self) -> &ClientInfo {
        &self.client_info
    }

    /// The id of its session, which no other client has.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The owner of its tasks.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The negotiated protocol version.
    pub fn version(&self) -> &str {
        &self.client_info.version
    }

    /// The capabilities as the client declared them: an object.
    pub fn capabilities(&self) -> RawRef<'_> {
        self.client_info.capabilities.borrow()
    }

    /// Its name and version, if the client sends them.
    pub fn info(&self) -> Option<RawRef<'_>> {
        self.client_info.info.as_ref().map(Raw::borrow)
    }

    /// Whether it has a session, on which it can receive messages outside of a response.
    pub fn has_session(&self) -> bool {
        self.channel.is_some()
    }

    /// Whether it can receive messages outside of a response now.
    pub fn is_listening(&self) -> bool {
        let channel = self.channel.as_ref().and_then(Weak::upgrade);
        channel.is_some_and(|channel| channel.is_open())
    }

    /// The channel for messages outside of a response, if the client has a session.
    pub(super) fn channel(&self) -> Option<&Weak<dyn ClientChannel>> {
        self.channel.as_ref()
    }

    /// The input requests that it accepts.
    pub fn accepts(&self) -> InputKinds {
        self.accepts
    }

    /// The extension data under `key`, created with its default at first. The data lives as long as
    /// the client's session, its request, or a running call of it.
    pub fn extension<T: Default + Send + Sync + 'static>(&self, key: &ExtensionKey) -> Arc<T> {
        let mut extensions = self.extensions.lock();
        let found = extensions
            .entry(key.0)
            .or_insert_with(|| Arc::<T>::default());
        // A key that is used with two types gets a new value of the second type each time.
        found.clone().downcast().unwrap_or_default()
    }

    /// Sends a notification, if the client can be reached. A notification of a call goes through
    /// the call's context instead.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        if let Some(channel) = self.channel.as_ref().and_then(Weak::upgrade) {
            channel.notify(method, params);
        }
    }
}

impl ExtensionKey {
    /// Creates a key that is unique in this process.
    #[expect(
        clippy::new_without_default,
        reason = "every key is unique, and `default` would not say so"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_client_accepts_the_same_input_requests() {
        let some = [InputKind::ElicitUrl, InputKind::Sample, InputKind::Roots];
        for accepts in [
            InputKinds::NONE,
            InputKinds::all(),
            some.into_iter().collect(),
            [InputKind::ElicitForm].into_iter().collect(),
        ] {
            let client = ClientHandle::absent(Owner::Local, accepts);
            assert_eq!(client.accepts(), accepts);
        }
    }
}
