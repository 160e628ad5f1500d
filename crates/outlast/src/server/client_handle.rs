//! A client as a service sees it: who it is, what it can be asked, a way to tell it something, and a place for what the
//! service keeps with it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use outlast_engine::{Accepts, AskKind, Owner};
use outlast_wire::envelope::Id;
use outlast_wire::{Raw, RawRef, version};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::session::PendingClientRequest;
use super::{ClientInfo, SessionId};

/// A client.
pub struct ClientHandle {
    session: SessionId,
    owner: Owner,
    client_info: ClientInfo,
    accepts: Accepts,
    channel: Option<Weak<dyn ClientChannel>>,
    extensions: Mutex<HashMap<u64, Arc<dyn Any + Send + Sync>>>,
}

/// The right to keep something with clients: what one keeper keeps, no other sees.
#[derive(Debug)]
pub struct ExtensionKey(u64);

/// The way to a client for what answers no request.
pub(super) trait ClientChannel: Send + Sync {
    fn notify(&self, method: &str, params: Option<&Raw>);

    /// Whether somebody would hear it.
    fn is_open(&self) -> bool;

    /// ChangeBroadcast whenever somebody begins to listen.
    fn listening(&self) -> watch::Receiver<bool>;

    /// Puts a question that belongs to no call; `None` if nobody listens.
    fn send_request(&self, kind: AskKind, params: Option<&Raw>) -> Option<PendingClientRequest>;

    /// Takes such a question back, unless it is answered.
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

    /// A client that is not there: `owner`'s, who could be asked what `accepts` says when it called.
    pub fn absent(owner: Owner, accepts: Accepts) -> Self {
        let capabilities = Raw::encode(&capabilities(accepts)).expect("literal objects are JSON");
        Self {
            session: SessionId::new(""),
            owner,
            accepts,
            client_info: ClientInfo::new(version::LEGACY, capabilities),
            channel: None,
            extensions: Mutex::default(),
        }
    }

    /// Whether progress reaches it for the whole life of a task: under a token, and only in the legacy era. Any other gets
    /// it as the status message of the task (BR-PG-2).
    pub(crate) fn receives_progress(&self, has_token: bool) -> bool {
        has_token && self.version() != version::MODERN
    }

    /// A client that says who it is with every request, and is not remembered.
    pub(super) fn stateless(owner: Owner, client_info: ClientInfo) -> Self {
        // One name for all that can be served alike.
        let accepts = client_info.accepts();
        let name = format!("{owner} {}", accepts.bits());
        Self {
            session: SessionId::new(name),
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

    /// The name of its session: no other client has it.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Whose client it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The version of the protocol that was agreed.
    pub fn version(&self) -> &str {
        &self.client_info.version
    }

    /// What it can do: an object, as the client said it.
    pub fn capabilities(&self) -> RawRef<'_> {
        self.client_info.capabilities.borrow()
    }

    /// Its name and version, if it says so.
    pub fn info(&self) -> Option<RawRef<'_>> {
        self.client_info.info.as_ref().map(Raw::borrow)
    }

    /// Whether it has a session, in which it can be told things.
    pub fn has_session(&self) -> bool {
        self.channel.is_some()
    }

    /// Whether it would hear now what it is told.
    pub fn is_listening(&self) -> bool {
        let channel = self.channel.as_ref().and_then(Weak::upgrade);
        channel.is_some_and(|channel| channel.is_open())
    }

    /// The way to it for what answers no request, if there is one.
    pub(super) fn channel(&self) -> Option<&Weak<dyn ClientChannel>> {
        self.channel.as_ref()
    }

    /// What it can be asked.
    pub fn accepts(&self) -> Accepts {
        self.accepts
    }

    /// What `keeper` keeps with this client, empty at first. It is gone when nobody holds the client any more: its
    /// session, the request it came with, or a call of it that runs.
    pub fn extension<T: Default + Send + Sync + 'static>(&self, key: &ExtensionKey) -> Arc<T> {
        let mut extensions = self.extensions.lock();
        let found = extensions
            .entry(key.0)
            .or_insert_with(|| Arc::<T>::default());
        // A keeper that keeps things of two kinds has a fresh one of the second each time.
        found.clone().downcast().unwrap_or_default()
    }

    /// Tells it something, if it can be reached. What belongs to a call goes by the call's context instead.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        if let Some(channel) = self.channel.as_ref().and_then(Weak::upgrade) {
            channel.notify(method, params);
        }
    }
}

impl ExtensionKey {
    /// A keeper unlike any other of this process.
    #[expect(
        clippy::new_without_default,
        reason = "every keeper is another one, which a default should not be"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The capabilities of a client that accepts these questions.
pub(super) fn capabilities(accepts: Accepts) -> Value {
    let has = |kind| accepts.contains(kind);
    let object = |members: &[(&str, bool)]| {
        let members = members.iter().filter(|(_, has)| *has);
        let members = members.map(|(name, _)| ((*name).to_owned(), json!({})));
        Value::Object(members.collect())
    };
    let mut all = Map::new();
    let (form, url) = (has(AskKind::ElicitForm), has(AskKind::ElicitUrl));
    if form || url {
        all.insert(
            "elicitation".into(),
            object(&[("form", form), ("url", url)]),
        );
    }
    let tools = has(AskKind::SampleWithTools);
    if has(AskKind::Sample) || tools {
        all.insert("sampling".into(), object(&[("tools", tools)]));
    }
    if has(AskKind::Roots) {
        all.insert("roots".into(), json!({}));
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_client_accepts_what_it_accepted_when_it_called() {
        let some = [AskKind::ElicitUrl, AskKind::Sample, AskKind::Roots];
        for accepts in [
            Accepts::NONE,
            Accepts::all(),
            some.into_iter().collect(),
            [AskKind::ElicitForm].into_iter().collect(),
        ] {
            let client = ClientHandle::absent(Owner::Local, accepts);
            assert_eq!(client.accepts(), accepts);
        }
    }
}
