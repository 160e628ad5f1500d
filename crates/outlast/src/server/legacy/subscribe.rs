//! `resources/subscribe` and `resources/unsubscribe`: the backend replies, the session stores the
//! subscription.

use std::sync::Arc;

use outlast_wire::{Raw, RawRef, codes, method, object};

use super::LegacyRequest;
use crate::server::session::PreferenceChange;
use crate::server::{ClientHandle, IncomingRequest, Reply};

impl LegacyRequest<'_> {
    pub(super) async fn subscribe_to(
        self,
        client: &Arc<ClientHandle>,
        request: IncomingRequest,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let Some(uri) = resource_uri(params) else {
            return Reply::from(codes::invalid_params("`uri` must be a string"));
        };
        let change = match request.method.as_str() {
            method::RESOURCES_SUBSCRIBE => PreferenceChange::Subscribe(uri),
            _ => PreferenceChange::Unsubscribe(uri),
        };
        let reply = self.forward(client, request).await;
        self.apply_if_granted(change, reply).await
    }

    /// Stores a preference if the backend granted it; returns the reply.
    pub(super) async fn apply_if_granted(self, change: PreferenceChange, reply: Reply) -> Reply {
        match reply {
            Reply::Result(_) => match self.session.change_preference(change).await {
                Ok(()) => reply,
                Err(error) => Reply::from(error),
            },
            _ => reply,
        }
    }
}

/// The `uri` member of the params.
fn resource_uri(params: Option<RawRef<'_>>) -> Option<String> {
    let uri = object::find(params?, &["uri"])?.text()?;
    Some(uri.into_owned())
}
