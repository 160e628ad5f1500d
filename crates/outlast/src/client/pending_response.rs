//! A sent request until its response arrives.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::envelope::Id;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::error::Error;
use super::rpc::RpcChannel;
use crate::transport::link::TransportError;

/// A request that waits for its response. Dropping it abandons the request.
pub(crate) struct PendingResponse {
    id: Id,
    receiver: oneshot::Receiver<Result<Raw, Error>>,
    /// The request itself, if the waiting task polls it.
    direct: Option<DirectResponse>,
    channel: Arc<RpcChannel>,
    on_drop: OnDrop,
    open: bool,
}

/// A request that the waiting task polls. `None` if the response arrives on the link.
pub(super) type DirectResponse =
    Pin<Box<dyn Future<Output = Result<Option<Result<Raw, Error>>, TransportError>> + Send>>;

/// The requests on one link that have no response yet.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<HashMap<Id, oneshot::Sender<Result<Raw, Error>>>>);

/// What is sent to the server when a request is dropped before its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// A cancellation notification.
    Cancel,
    /// The cancellation of the modern era: the request's stream is closed, or a message is sent if
    /// there is no such stream (V2-CANC-1).
    Withdraw,
    /// Nothing, because the request creates a task (V1-CANC-2), opens the session (V1-INIT-8) or
    /// probes the era.
    Nothing,
}

/// How a request is sent.
#[derive(Clone, Debug)]
pub(crate) struct SendOptions {
    pub(crate) on_drop: OnDrop,
    /// Whether the request is stateless, as in the modern era.
    pub(crate) stateless: bool,
    /// Headers, where the transport has headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the holder of the [`PendingResponse`] polls it until the response is there, so that
    /// no task needs to be spawned.
    pub(crate) polled: bool,
}

impl SendOptions {
    /// The options of a legacy request.
    pub(crate) fn legacy(on_drop: OnDrop) -> Self {
        Self {
            on_drop,
            stateless: false,
            headers: Vec::new(),
            polled: false,
        }
    }
}

impl PendingRequests {
    fn add(&self, id: Id) -> oneshot::Receiver<Result<Raw, Error>> {
        let (sender, response) = oneshot::channel();
        self.0.lock().insert(id, sender);
        response
    }

    /// Completes a pending request. A response without a request is ignored (V1-CANC-5).
    pub(super) fn complete(&self, id: &Id, response: Result<Raw, Error>) {
        let found = self.0.lock().remove(id);
        if let Some(sender) = found {
            let _ = sender.send(response);
        }
    }

    /// Fails all requests, each with the error that `why` returns for it.
    pub(super) fn fail_all(&self, why: impl Fn(&Id) -> TransportError) {
        let pending = std::mem::take(&mut *self.0.lock());
        for (id, sender) in pending {
            let _ = sender.send(Err(why(&id).into()));
        }
    }

    /// Removes a request; returns whether it was pending.
    fn remove(&self, id: &Id) -> bool {
        self.0.lock().remove(id).is_some()
    }
}

impl PendingResponse {
    /// Registers a request before it is sent, so that its response can arrive at any time.
    pub(super) fn new(channel: Arc<RpcChannel>, id: Id, on_drop: OnDrop) -> Self {
        Self {
            receiver: channel.pending.add(id.clone()),
            id,
            direct: None,
            channel,
            on_drop,
            open: true,
        }
    }

    /// Lets the waiting task poll the request.
    pub(super) fn poll_directly(&mut self, direct: DirectResponse) {
        self.direct = Some(direct);
    }

    /// The id of the request.
    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Whether the response is still missing.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Withdraws the request, and still accepts a response that is on its way.
    pub(crate) fn withdraw(&mut self) {
        self.channel.notify_dropped(&self.id, self.on_drop);
        self.on_drop = OnDrop::Nothing;
        // V2-CANC-1: closing the request's connection is the cancellation.
        self.direct = None;
    }

    /// Waits for the response.
    pub(crate) async fn response(mut self) -> Result<Raw, Error> {
        self.wait().await
    }

    /// Waits for the response and keeps the handle.
    pub(crate) async fn wait(&mut self) -> Result<Raw, Error> {
        let response = self.receive().await;
        self.open = false;
        response
    }

    async fn receive(&mut self) -> Result<Raw, Error> {
        if let Some(direct) = &mut self.direct {
            let done = tokio::select! {
                biased;
                done = direct => done,
                response = &mut self.receiver => return response.unwrap_or_else(|_| Err(TransportError::Closed.into())),
            };
            self.direct = None;
            let response = match done {
                Ok(Some(response)) => Some(response),
                Ok(None) => None,
                Err(error) => Some(Err(error.into())),
            };
            if let Some(response) = response {
                self.channel.pending.remove(&self.id);
                return response;
            }
        }
        let response = (&mut self.receiver).await;
        response.unwrap_or_else(|_| Err(TransportError::Closed.into()))
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if self.open && self.channel.pending.remove(&self.id) {
            self.channel.notify_dropped(&self.id, self.on_drop);
        }
    }
}
