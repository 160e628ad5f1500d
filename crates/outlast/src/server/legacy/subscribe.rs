//! `resources/subscribe` and the like: the service answers, the session remembers.

use std::sync::Arc;

use outlast_wire::{Raw, RawRef, codes, log, method, object};

use crate::server::session::PreferenceChange;
use crate::server::{Client, Incoming, Reply, ResponseStream, Session};

impl Session {
    pub(super) async fn subscribe_to(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: Incoming,
        stream: &ResponseStream,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let Some(uri) = address(params) else {
            return Reply::from(codes::invalid_params("`uri` must be a string"));
        };
        let change = match request.method.as_str() {
            method::RESOURCES_SUBSCRIBE => PreferenceChange::Subscribe(uri),
            _ => PreferenceChange::Unsubscribe(uri),
        };
        let reply = self.pass_on(client, request, stream).await;
        self.granted(change, reply).await
    }

    /// The reply to a change, which is remembered if it was granted.
    pub(super) async fn granted(&self, change: PreferenceChange, reply: Reply) -> Reply {
        match reply {
            Reply::Result(_) => match self.change(change).await {
                Ok(()) => reply,
                Err(error) => Reply::from(error),
            },
            _ => reply,
        }
    }

    /// Says something to the service that the client has said before.
    pub(in crate::server) async fn say_for_client(self: &Arc<Self>, method: &str, params: Raw) {
        let Some(client) = self.client() else {
            return;
        };
        if method == log::SET_LEVEL && self.front.service.runs(method).is_none() {
            // Only the session has to know.
            return;
        }
        let request = Incoming {
            method: method.to_owned(),
            params: Some(params),
            owner: self.owner.clone(),
            http: None,
        };
        // The client had its response before the restart.
        let unread = ResponseStream::abandoned(self.clone());
        if let Reply::Error(_) = self.pass_on(client, request, &unread).await {
            tracing::warn!(
                method,
                "could not restore a session preference after a restart"
            );
        }
    }
}

/// The `uri` that params name.
fn address(params: Option<RawRef<'_>>) -> Option<String> {
    let uri = object::find(params?, &["uri"])?.text()?;
    Some(uri.into_owned())
}
