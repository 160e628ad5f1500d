//! Questions that belong to no call: put to a client on its general stream, as soon as it listens there.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use outlast_engine::{Answer, AskKind, random};
use outlast_wire::Raw;
use outlast_wire::envelope::{Id, write};
use outlast_wire::notice;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use super::streams::SessionStreams;
use crate::server::ClientHandle;
use crate::server::client_handle::ClientChannel;

/// The questions of one session that belong to no call.
#[derive(Debug, Default)]
pub(super) struct ClientRequests {
    open: Mutex<Open>,
    /// ChangeBroadcast whenever a client that has introduced itself begins to listen.
    listening: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<Id, oneshot::Sender<Answer>>,
}

/// A question that was put: its id, and where the answer arrives.
pub(in crate::server) type PendingClientRequest = (Id, oneshot::Receiver<Answer>);

impl ClientRequests {
    /// The client listens from now on.
    pub(super) fn set_listening(&self) {
        self.listening.send_replace(true);
    }

    /// ChangeBroadcast whenever the client begins to listen.
    pub(super) fn listening(&self) -> watch::Receiver<bool> {
        self.listening.subscribe()
    }

    /// Puts a question; `None` if nobody listens.
    pub(super) fn send(
        &self,
        streams: &SessionStreams,
        kind: AskKind,
        params: Option<&Raw>,
    ) -> Option<PendingClientRequest> {
        if !*self.listening.borrow() {
            return None;
        }
        let stream = streams.general()?;
        let (respond, response) = oneshot::channel();
        let id = {
            let mut open = self.open();
            // Questions of calls have ids with a dot. A relay continues the client's session after a restart of this
            // process: no id may repeat there (V1-BASE-2).
            let id = Id::text(&format!("outside-{}", random::token::<12>()));
            open.waiting.insert(id.clone(), respond);
            id
        };
        let line = write::request(&id, kind.method(), params.map(Raw::borrow));
        streams.send(stream, line);
        Some((id, response))
    }

    /// Hands over an answer; gives it back if it is to none of these questions.
    pub(super) fn complete(&self, id: &Id, answer: Answer) -> Option<Answer> {
        let found = self.open().waiting.remove(id);
        match found {
            Some(respond) => {
                let _ = respond.send(answer);
                None
            }
            None => Some(answer),
        }
    }

    /// Takes a question back, unless it is answered.
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
    /// Asks it something that belongs to no call, as soon as it listens. `None` if it does not within a moment, or ends
    /// its session before it answers. Dropping this takes the question back.
    pub async fn send_request(&self, kind: AskKind, params: Option<&Raw>) -> Option<Answer> {
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

/// A question that is taken back when nobody waits for its answer any more.
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

/// How long a client may take to begin to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
