//! `resources/subscribe` and `resources/unsubscribe`: the backend replies, the session stores the
//! subscription.

use std::sync::Arc;

use outlast_wire::{Raw, RawRef, codes, log, method, object};

use crate::server::session::PreferenceChange;
use crate::server::{ClientHandle, IncomingRequest, Reply, ResponseStream, Scopes, Session};

impl Session {
    pub(super) async fn subscribe_to(
        self: &Arc<Self>,
        client: &Arc<ClientHandle>,
        request: IncomingRequest,
        stream: &ResponseStream,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let Some(uri) = resource_uri(params) else {
            return Reply::from(codes::invalid_params("`uri` must be a string"));
        };
        let change = match request.method.as_str() {
            method::RESOURCES_SUBSCRIBE => PreferenceChange::Subscribe(uri),
            _ => PreferenceChange::Unsubscribe(uri),
        };
        let reply = self.forward(client, request, stream).await;
        self.apply_if_granted(change, reply).await
    }

    /// Stores a preference if the backend granted it; returns the reply.
    pub(super) async fn apply_if_granted(&self, change: PreferenceChange, reply: Reply) -> Reply {
        match reply {
            Reply::Result(_) => match self.change_preference(change).await {
                Ok(()) => reply,
                Err(error) => Reply::from(error),
            },
            _ => reply,
        }
    }

    /// Sends a request of the client to the backend again, after a restart.
    pub(in crate::server) async fn replay_request(self: &Arc<Self>, method: &str, params: Raw) {
        let Some(client) = self.client() else {
            return;
        };
        if method == log::SET_LEVEL && self.server.backend.runner_for(method).is_none() {
            // The backend does not handle the request. The session has the level from its record
            // and applies it itself.
            return;
        }
        let request = IncomingRequest {
            method: method.to_owned(),
            params: Some(params),
            owner: self.owner.clone(),
            scopes: Scopes::ALL,
            http: None,
        };
        // The client had its response before the restart.
        let unread = ResponseStream::abandoned(self.clone());
        if let Reply::Error(_) = self.forward(client, request, &unread).await {
            tracing::warn!(
                method,
                "could not restore a session preference after a restart"
            );
        }
    }
}

/// The `uri` member of the params.
fn resource_uri(params: Option<RawRef<'_>>) -> Option<String> {
    let uri = object::find(params?, &["uri"])?.text()?;
    Some(uri.into_owned())
}
