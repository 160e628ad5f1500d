//! The handler of messages that a server sends on its own, and the replies to its requests.

use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::InputResponse;
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, RawRef};

use super::error::Error;
use super::rpc::RpcChannel;

/// Handles the messages that a server sends on its own.
pub(crate) trait RpcHandler: Send + Sync + 'static {
    /// A notification arrived.
    fn notified(&self, method: &str, params: Option<RawRef<'_>>);

    /// A request arrived. The future is dropped if the server cancels the request or the connection
    /// ends.
    fn requested(
        self: Arc<Self>,
        channel: &Arc<RpcChannel>,
        request: PeerRequest,
    ) -> HandlerReplyFuture;

    /// The channel is closed.
    fn closed(&self, channel: &Arc<RpcChannel>);
}

/// The future of a reply.
pub(crate) type HandlerReplyFuture = Pin<Box<dyn Future<Output = HandlerReply> + Send>>;

/// The reply to a server's request, and a callback for its delivery.
pub(crate) struct HandlerReply {
    /// `None` if the server no longer waits for a response.
    pub(crate) response: Option<InputResponse>,
    pub(super) then: Option<OnDelivered>,
}

/// Runs when the server has accepted the reply, or has finally refused it.
pub(super) type OnDelivered = Box<dyn FnOnce(Result<(), Error>) + Send>;

impl HandlerReply {
    pub(crate) fn new(response: InputResponse) -> Self {
        Self {
            response: Some(response),
            then: None,
        }
    }

    /// A reply that sends nothing.
    pub(crate) fn none() -> Self {
        Self {
            response: None,
            then: None,
        }
    }

    pub(crate) fn result(result: Raw) -> Self {
        Self::new(InputResponse::Result(result))
    }

    pub(crate) fn error(error: &ErrorObject) -> Self {
        Self::new(InputResponse::Error(error.to_raw()))
    }

    pub(crate) fn then(mut self, then: impl FnOnce(Result<(), Error>) + Send + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }
}

/// A request of the server.
#[derive(Clone, Debug)]
pub(crate) struct PeerRequest {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Option<Raw>,
    /// The client's request on whose stream it arrived, if the transport has such streams.
    pub(crate) via: Option<Id>,
}
