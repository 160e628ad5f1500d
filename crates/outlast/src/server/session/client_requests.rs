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

use super::streams::Board;
use crate::server::Client;
use crate::server::client_handle::Outbox;

/// The questions of one session that belong to no call.
#[derive(Debug, Default)]
pub(super) struct ClientRequests {
    open: Mutex<Open>,
    /// Changes whenever a client that has introduced itself begins to listen.
    listens: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    waiting: HashMap<Id, oneshot::Sender<Answer>>,
}

/// A question that was put: its id, and where the answer arrives.
pub(in crate::server) type Put = (Id, oneshot::Receiver<Answer>);

impl ClientRequests {
    /// The client listens from now on.
    pub(super) fn listens(&self) {
        self.listens.send_replace(true);
    }

    /// Changes whenever the client begins to listen.
    pub(super) fn listening(&self) -> watch::Receiver<bool> {
        self.listens.subscribe()
    }

    /// Puts a question; `None` if nobody listens.
    pub(super) fn put(&self, board: &Board, kind: AskKind, params: Option<&Raw>) -> Option<Put> {
        if !*self.listens.borrow() {
            return None;
        }
        let stream = board.general()?;
        let (tell, told) = oneshot::channel();
        let id = {
            let mut open = self.open();
            // Questions of calls have ids with a dot. A relay continues the client's session after a restart of this
            // process: no id may repeat there (V1-BASE-2).
            let id = Id::text(&format!("outside-{}", random::token::<12>()));
            open.waiting.insert(id.clone(), tell);
            id
        };
        let line = write::request(&id, kind.method(), params.map(Raw::borrow));
        board.send(stream, line);
        Some((id, told))
    }

    /// Hands over an answer; gives it back if it is to none of these questions.
    pub(super) fn answer(&self, id: &Id, answer: Answer) -> Option<Answer> {
        let found = self.open().waiting.remove(id);
        match found {
            Some(tell) => {
                let _ = tell.send(answer);
                None
            }
            None => Some(answer),
        }
    }

    /// Takes a question back, unless it is answered.
    pub(super) fn take_back(&self, board: &Board, id: &Id) {
        let open = self.open().waiting.remove(id).is_some();
        if let Some(stream) = board.general().filter(|_| open) {
            let params = notice::cancelling(id, None);
            board.send(
                stream,
                write::notification(notice::CANCELLED, Some(params.borrow())),
            );
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Client {
    /// Asks it something that belongs to no call, as soon as it listens. `None` if it does not within a moment, or ends
    /// its session before it answers. Dropping this takes the question back.
    pub async fn ask(&self, kind: AskKind, params: Option<&Raw>) -> Option<Answer> {
        let outbox = self.outbox()?;
        let mut listening = outbox.upgrade()?.listening();
        let put = async {
            loop {
                if let Some(put) = outbox.upgrade()?.ask(kind, params) {
                    return Some(put);
                }
                listening.changed().await.ok()?;
            }
        };
        let (id, told) = tokio::time::timeout(BEGINS, put).await.ok()??;
        let _open = OpenQuestion { outbox, id };
        told.await.ok()
    }
}

/// A question that is taken back when nobody waits for its answer any more.
struct OpenQuestion<'a> {
    outbox: &'a Weak<dyn Outbox>,
    id: Id,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.upgrade() {
            outbox.take_back(&self.id);
        }
    }
}

/// How long a client may take to begin to listen.
const BEGINS: Duration = Duration::from_secs(10);
