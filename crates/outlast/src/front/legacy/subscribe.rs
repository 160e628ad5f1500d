//! `resources/subscribe` and `resources/unsubscribe`: the service answers, the session remembers.

use std::sync::Arc;

use outlast_wire::{Raw, RawRef, codes, object};

use crate::front::{Client, Incoming, Reply, Session, StreamId};

impl Session {
    pub(super) async fn subscribe_to(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: Incoming,
        stream: StreamId,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let Some(uri) = address(params) else {
            return Reply::from(codes::invalid_params("`uri` must be a string"));
        };
        let adds = request.method == SUBSCRIBE;
        let reply = self.pass_on(client, request, stream).await;
        if matches!(reply, Reply::Result(_)) {
            match adds {
                true => {
                    if let Err(error) = self.subscribe(&uri) {
                        return Reply::from(error);
                    }
                }
                false => self.unsubscribe(&uri),
            }
        }
        reply
    }
}

/// The `uri` that params name.
fn address(params: Option<RawRef<'_>>) -> Option<String> {
    let uri = object::find(params?, &["uri"])?.text()?;
    Some(uri.into_owned())
}

pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";
