//! `resources/subscribe` and the like: the service answers, the session remembers.

use std::sync::Arc;

use outlast_wire::{Raw, RawRef, codes, log, object};

use crate::front::wishes::{SUBSCRIBE, Wish};
use crate::front::{Client, Incoming, Kind, Reply, Session, StreamId};

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
        let wish = match request.method.as_str() {
            SUBSCRIBE => Wish::Hear(uri),
            _ => Wish::HearNoMore(uri),
        };
        let reply = self.pass_on(client, request, stream).await;
        self.granted(wish, reply).await
    }

    /// The reply to a wish, which is remembered if it was granted.
    pub(super) async fn granted(&self, wish: Wish, reply: Reply) -> Reply {
        match reply {
            Reply::Result(_) => match self.wish(wish).await {
                Ok(()) => reply,
                Err(error) => Reply::from(error),
            },
            _ => reply,
        }
    }

    /// Says something to the service that the client has said before.
    pub(in crate::front) async fn say_for_client(self: &Arc<Self>, method: &str, params: Raw) {
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
        // Nobody reads it: the client has had its answer.
        let answer = self.board.open(Kind::Answer);
        if let Reply::Error(_) = self.pass_on(client, request, answer.stream).await {
            tracing::warn!(method, "what a client said before a restart holds no more");
        }
        self.board.end(answer.stream);
    }
}

/// The `uri` that params name.
fn address(params: Option<RawRef<'_>>) -> Option<String> {
    let uri = object::find(params?, &["uri"])?.text()?;
    Some(uri.into_owned())
}
