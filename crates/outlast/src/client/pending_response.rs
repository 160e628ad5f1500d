//! A request that was sent to a server, until its response is there.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::envelope::Id;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::error::Error;
use super::rpc::RpcChannel;
use crate::transport::link::LinkError;

/// The response to a request that was sent. Dropping it gives the request up.
pub(crate) struct PendingResponse {
    id: Id,
    answer: oneshot::Receiver<Result<Raw, Error>>,
    /// The request itself, if the task that waits for the answer polls it.
    direct: Option<DirectResponse>,
    channel: Arc<RpcChannel>,
    on_drop: OnDrop,
    open: bool,
}

/// A request that the task waiting for its answer polls. `None` if the answer comes on the link.
pub(super) type DirectResponse =
    Pin<Box<dyn Future<Output = Result<Option<Result<Raw, Error>>, LinkError>> + Send>>;

/// The requests on one link that have no response yet.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<HashMap<Id, oneshot::Sender<Result<Raw, Error>>>>);

/// What is sent to the server when a request is dropped before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// That the request is cancelled.
    Cancel,
    /// The same as the modern era says it: by closing the request's stream, or by a message where it has none
    /// (V2-CANC-1).
    Withdraw,
    /// Nothing: the request makes a task (V1-CANC-2), opens the session (V1-INIT-8) or asks for the era.
    Nothing,
}

/// How a request travels.
#[derive(Clone, Debug)]
pub(crate) struct SendOptions {
    pub(crate) on_drop: OnDrop,
    /// Whether it stands alone, as requests of the modern era do.
    pub(crate) stateless: bool,
    /// Headers where the transport has any.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the holder of its [`PendingResponse`] polls it until the answer is there, so that no task is
    /// spawned for it.
    pub(crate) polled: bool,
}

impl SendOptions {
    /// A request of the legacy era.
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
        let (sender, answer) = oneshot::channel();
        self.0.lock().insert(id, sender);
        answer
    }

    /// Passes an answer to its request. One that no request waits for is late or invented, and ignored (V1-CANC-5).
    pub(super) fn complete(&self, id: &Id, answer: Result<Raw, Error>) {
        let found = self.0.lock().remove(id);
        if let Some(sender) = found {
            let _ = sender.send(answer);
        }
    }

    /// Ends all requests, each with the error that `why` returns for it.
    pub(super) fn fail_all(&self, why: impl Fn(&Id) -> LinkError) {
        let pending = std::mem::take(&mut *self.0.lock());
        for (id, sender) in pending {
            let _ = sender.send(Err(why(&id).into()));
        }
    }

    /// Forgets a request; whether it had no answer.
    fn remove(&self, id: &Id) -> bool {
        self.0.lock().remove(id).is_some()
    }
}

impl PendingResponse {
    /// The response to a request that is about to be sent: it can come from now on.
    pub(super) fn new(channel: Arc<RpcChannel>, id: Id, on_drop: OnDrop) -> Self {
        Self {
            answer: channel.pending.add(id.clone()),
            id,
            direct: None,
            channel,
            on_drop,
            open: true,
        }
    }

    /// Has the task that waits for the answer poll the request.
    pub(super) fn poll_directly(&mut self, direct: DirectResponse) {
        self.direct = Some(direct);
    }

    /// The request.
    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Whether its answer has not come.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Gives the request up, and still hears an answer that is on its way.
    pub(crate) fn withdraw(&mut self) {
        self.channel.notify_dropped(&self.id, self.on_drop);
        self.on_drop = OnDrop::Nothing;
        // Closing its connection is all that such a server is told (V2-CANC-1).
        self.direct = None;
    }

    /// Waits for the answer.
    pub(crate) async fn answer(mut self) -> Result<Raw, Error> {
        self.wait().await
    }

    /// Waits for the answer and keeps the request.
    pub(crate) async fn wait(&mut self) -> Result<Raw, Error> {
        let answer = self.next().await;
        self.open = false;
        answer
    }

    async fn next(&mut self) -> Result<Raw, Error> {
        if let Some(direct) = &mut self.direct {
            let done = tokio::select! {
                biased;
                done = direct => done,
                answer = &mut self.answer => return answer.unwrap_or_else(|_| Err(LinkError::Closed.into())),
            };
            self.direct = None;
            let answer = match done {
                Ok(Some(answer)) => Some(answer),
                Ok(None) => None,
                Err(error) => Some(Err(error.into())),
            };
            if let Some(answer) = answer {
                self.channel.pending.remove(&self.id);
                return answer;
            }
        }
        let answer = (&mut self.answer).await;
        answer.unwrap_or_else(|_| Err(LinkError::Closed.into()))
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if self.open && self.channel.pending.remove(&self.id) {
            self.channel.notify_dropped(&self.id, self.on_drop);
        }
    }
}
