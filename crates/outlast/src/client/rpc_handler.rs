//! What a server sends on its own, and our replies to its requests.

use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::Answer;
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, RawRef};

use super::error::Error;
use super::rpc::RpcChannel;

/// Receives what a server sends on its own.
pub(crate) trait RpcHandler: Send + Sync + 'static {
    /// A notification.
    fn notified(&self, method: &str, params: Option<RawRef<'_>>);

    /// A request. The future is dropped if the server takes it back or the connection ends.
    fn asked(self: Arc<Self>, channel: &Arc<RpcChannel>, request: PeerRequest) -> ReplyFuture;

    /// The conversation is over.
    fn closed(&self, channel: &Arc<RpcChannel>);
}

/// An answer in the making.
pub(crate) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// An answer, and what is done when it is delivered or refused.
pub(crate) struct Reply {
    /// None if the server waits for no answer any more.
    pub(crate) answer: Option<Answer>,
    pub(super) then: Option<OnDelivered>,
}

/// What is done when the server has taken an answer, or has refused it for good.
pub(super) type OnDelivered = Box<dyn FnOnce(Result<(), Error>) + Send>;

impl Reply {
    pub(crate) fn new(answer: Answer) -> Self {
        Self {
            answer: Some(answer),
            then: None,
        }
    }

    /// No answer.
    pub(crate) fn none() -> Self {
        Self {
            answer: None,
            then: None,
        }
    }

    pub(crate) fn result(result: Raw) -> Self {
        Self::new(Answer::Result(result))
    }

    pub(crate) fn error(error: &ErrorObject) -> Self {
        Self::new(Answer::Error(error.to_raw()))
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
    /// The request of ours on whose own stream it came, where the transport has such streams.
    pub(crate) via: Option<Id>,
}
