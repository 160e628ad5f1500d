//! A client as a service sees it: who it is, what it can be asked, and a way to tell it something.

use std::sync::Weak;

use outlast_engine::{Accepts, AskKind, Owner};
use outlast_wire::{Raw, RawRef, version};
use serde_json::{Map, Value, json};

use super::{Peer, SessionId};

/// A client.
pub struct Client {
    session: SessionId,
    owner: Owner,
    peer: Peer,
    outbox: Option<Weak<dyn Outbox>>,
}

/// The way to a client for what answers no request.
pub(super) trait Outbox: Send + Sync {
    fn notify(&self, method: &str, params: Option<&Raw>);
}

impl Client {
    pub(super) fn new(
        session: SessionId,
        owner: Owner,
        peer: Peer,
        outbox: Weak<dyn Outbox>,
    ) -> Self {
        Self {
            session,
            owner,
            peer,
            outbox: Some(outbox),
        }
    }

    /// A client that is not there: `owner`'s, who could be asked what `accepts` says when it called.
    pub fn absent(owner: Owner, accepts: Accepts) -> Self {
        let capabilities = Raw::encode(&capabilities(accepts)).expect("literal objects are JSON");
        Self {
            session: SessionId::new(""),
            owner,
            peer: Peer::of(version::LEGACY, capabilities),
            outbox: None,
        }
    }

    /// A client that says who it is with every request, and is not remembered.
    pub(super) fn passing(owner: Owner, peer: Peer) -> Self {
        // One name for all that can be served alike.
        let name = format!("{owner} {}", peer.accepts().bits());
        Self {
            session: SessionId::new(name),
            owner,
            peer,
            outbox: None,
        }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
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
        &self.peer.version
    }

    /// What it can do: an object, as the client said it.
    pub fn capabilities(&self) -> RawRef<'_> {
        self.peer.capabilities.borrow()
    }

    /// Its name and version, if it says so.
    pub fn info(&self) -> Option<RawRef<'_>> {
        self.peer.info.as_ref().map(Raw::borrow)
    }

    /// What it can be asked.
    pub fn accepts(&self) -> Accepts {
        self.peer.accepts()
    }

    /// Whether its session goes on.
    pub fn is_there(&self) -> bool {
        self.outbox
            .as_ref()
            .is_some_and(|outbox| outbox.strong_count() > 0)
    }

    /// Tells it something, if it can be reached. What belongs to a call goes by the call's context instead.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        if let Some(outbox) = self.outbox.as_ref().and_then(Weak::upgrade) {
            outbox.notify(method, params);
        }
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
            let client = Client::absent(Owner::new("o"), accepts);
            assert_eq!(client.accepts(), accepts);
        }
    }
}
