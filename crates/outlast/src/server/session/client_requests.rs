//! Requests to the client that belong to no call. They are sent on a general stream, once the
//! client listens on one.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use outlast_engine::{InputKind, InputResponse, random};
use outlast_wire::Raw;
use outlast_wire::envelope::{Id, write};
use outlast_wire::notice;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use super::streams::SessionStreams;
use crate::server::ClientHandle;
use crate::server::client_handle::ClientChannel;

/// The open requests of one session that belong to no call.
#[derive(Debug, Default)]
pub(super) struct ClientRequests {
    open: Mutex<Open>,
    /// Becomes `true` when an initialized client begins to listen.
    listening: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<Id, oneshot::Sender<InputResponse>>,
}

/// A sent request: its id, and the receiver of its response.
pub(in crate::server) type PendingClientRequest = (Id, oneshot::Receiver<InputResponse>);

impl ClientRequests {
    /// Records that the client listens.
    pub(super) fn set_listening(&self) {
        self.listening.send_replace(true);
    }

    /// Becomes `true` when the client begins to listen.
    pub(super) fn listening(&self) -> watch::Receiver<bool> {
        self.listening.subscribe()
    }

    /// Sends a request; `None` if the client does not listen.
    pub(super) fn send(
        &self,
        streams: &SessionStreams,
        kind: InputKind,
        params: Option<&Raw>,
    ) -> Option<PendingClientRequest> {
        if !*self.listening.borrow() {
            return None;
        }
        let stream = streams.general()?;
        let (respond, response) = oneshot::channel();
        let id = {
            let mut open = self.open();
            // Ids of input requests contain a dot, these do not. A relay continues the client's
            // session after a restart of this process, so no id may repeat (V1-BASE-2).
            let id = Id::text(&format!("outside-{}", random::token::<12>()));
            open.waiting.insert(id.clone(), respond);
            id
        };
        let line = write::request(&id, kind.method(), params.map(Raw::borrow));
        streams.send(stream, line);
        Some((id, response))
    }

    /// Routes a response to its request; returns it if no request has that id.
    pub(super) fn complete(&self, id: &Id, answer: InputResponse) -> Option<InputResponse> {
        let found = self.open().waiting.remove(id);
        match found {
            Some(respond) => {
                let _ = respond.send(answer);
                None
            }
            None => Some(answer),
        }
    }

    /// Cancels a request, unless it has a response.
    pub(super) fn cancel(&self, streams: &SessionStreams, id: &Id) {
        let open = self.open().waiting.remove(id).is_some();
        if let Some(stream) = streams.general().filter(|_| open) {
            let params = notice::cancelling(id, None);
            streams.send(
                stream,
                write::notification(notice::CANCELLED, Some(params.borrow())),
            );
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl ClientHandle {
    /// Sends a request that belongs to no call, once the client listens. `None` if it does not
    /// listen within a time limit, or ends its session before the response. Dropping the future
    /// cancels the request.
    pub async fn send_request(
        &self,
        kind: InputKind,
        params: Option<&Raw>,
    ) -> Option<InputResponse> {
        let channel = self.channel()?;
        let mut listening = channel.upgrade()?.listening();
        let send = async {
            loop {
                if let Some(sent) = channel.upgrade()?.send_request(kind, params) {
                    return Some(sent);
                }
                listening.changed().await.ok()?;
            }
        };
        let (id, response) = tokio::time::timeout(LISTEN_TIMEOUT, send).await.ok()??;
        let _open = CancelOnDrop { channel, id };
        response.await.ok()
    }
}

/// Cancels a request when its caller stops waiting.
struct CancelOnDrop<'a> {
    channel: &'a Weak<dyn ClientChannel>,
    id: Id,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.upgrade() {
            channel.cancel_request(&self.id);
        }
    }
}

/// How long to wait for a client to begin to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
