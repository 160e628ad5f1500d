//! One handler that runs: what was asked of it, and what it asks.
//!
//! It lives as long as its client: while there is a session, or a call that runs.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ::rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use outlast_engine::engine::CallContext;
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, codes};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::{Receiver, Sender, WeakSender};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::catalogue::Catalogue;
use super::{Rmcp, messages};
use crate::server::{BackendDescription, ClientHandle};

/// One handler that runs.
pub(super) struct Connection {
    /// Dropping this ends the handler.
    to_handler: Sender<ClientJsonRpcMessage>,
    pub(super) shared: Arc<Shared>,
    pub(super) about: BackendDescription,
    _needed: watch::Sender<()>,
}

/// What a connection shares with whoever reads what the handler says.
pub(super) struct Shared {
    /// The client keeps the connection, not the other way round.
    pub(super) client: Weak<ClientHandle>,
    pub(super) catalogue: Catalogue,
    to_handler: WeakSender<ClientJsonRpcMessage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The id of the last request.
    last: i64,
    /// Requests that the handler has not answered.
    open: HashMap<RequestId, Open>,
    /// Questions of the handler that are not answered.
    asks: HashMap<RequestId, AbortHandle>,
    /// Whether the handler is gone.
    over: bool,
}

struct Open {
    tell: oneshot::Sender<Result<Raw, ErrorObject>>,
    /// The call it belongs to, and the token for its progress.
    call: Option<(CallContext, Option<Id>)>,
}

impl Connection {
    pub(super) fn new(
        to_handler: Sender<ClientJsonRpcMessage>,
        shared: Arc<Shared>,
        about: BackendDescription,
        needed: watch::Sender<()>,
    ) -> Self {
        Self {
            to_handler,
            shared,
            about,
            _needed: needed,
        }
    }

    /// Asks the handler and waits for its answer. Dropping this tells the handler to stop.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        call: Option<(CallContext, Option<Id>)>,
    ) -> Result<Raw, ErrorObject> {
        self.shared.request(&self.to_handler, request, call).await
    }

    /// Takes note of all its tools.
    pub(super) async fn learn(&self, server: &Rmcp) -> Result<(), ErrorObject> {
        server.learn(&self.shared, &self.to_handler).await
    }

    /// Tells the handler something, unless it is too far behind to hear it.
    pub(super) fn notify(&self, notification: ClientNotification) {
        let message = JsonRpcMessage::notification(notification);
        if self.to_handler.try_send(message).is_err() {
            tracing::warn!("a notification did not reach the handler");
        }
    }

    /// Whether the handler is gone.
    pub(super) fn is_over(&self) -> bool {
        self.shared.state().over
    }
}

impl Shared {
    pub(super) fn new(
        client: &Arc<ClientHandle>,
        to_handler: &Sender<ClientJsonRpcMessage>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::downgrade(client),
            catalogue: Catalogue::default(),
            to_handler: to_handler.downgrade(),
            state: Mutex::default(),
        })
    }

    pub(super) async fn request(
        &self,
        to_handler: &Sender<ClientJsonRpcMessage>,
        request: ClientRequest,
        call: Option<(CallContext, Option<Id>)>,
    ) -> Result<Raw, ErrorObject> {
        let (tell, told) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if state.over {
                return Err(gone());
            }
            state.last += 1;
            let id = RequestId::Number(state.last);
            state.open.insert(id.clone(), Open { tell, call });
            id
        };
        let message = JsonRpcMessage::request(request, id.clone());
        let _waits = Waits { shared: self, id };
        if to_handler.send(message).await.is_err() {
            return Err(gone());
        }
        told.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Reads what the handler says, until it is gone.
    pub(super) async fn listen(self: Arc<Self>, mut from_handler: Receiver<ServerJsonRpcMessage>) {
        while let Some(message) = from_handler.recv().await {
            match message {
                JsonRpcMessage::Response(response) => {
                    let result = Raw::encode(&response.result);
                    let result = result.map_err(|error| codes::internal(error.to_string()));
                    self.settle(&response.id, result);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        self.settle(id, Err(messages::failure(&error.error)));
                    }
                }
                JsonRpcMessage::Notification(notification) => {
                    self.notified(notification.notification);
                }
                JsonRpcMessage::Request(request) => self.asked(request.id, request.request),
            }
        }
        let mut state = self.state();
        state.over = true;
        // Whoever waits is told by the end of its channel.
        state.open.clear();
        for (_, ask) in state.asks.drain() {
            ask.abort();
        }
    }

    fn settle(&self, id: &RequestId, result: Result<Raw, ErrorObject>) {
        let open = self.state().open.remove(id);
        if let Some(open) = open {
            let _ = open.tell.send(result);
        }
    }

    /// The call of an open request; without one, the only call there is.
    pub(super) fn call(&self, request: Option<&RequestId>) -> Result<CallContext, Unclear> {
        let state = self.state();
        let context = |open: &Open| open.call.as_ref().map(|(call, _)| call.clone());
        if let Some(request) = request {
            return state
                .open
                .get(request)
                .and_then(context)
                .ok_or(Unclear::None);
        }
        let mut calls = state.open.values().filter_map(context);
        match (calls.next(), calls.next()) {
            (Some(call), None) => Ok(call),
            (None, _) => Err(Unclear::None),
            (Some(_), Some(_)) => Err(Unclear::Several),
        }
    }

    /// The call whose progress has this token.
    pub(super) fn call_with(&self, token: &Id) -> Option<CallContext> {
        let state = self.state();
        state.open.values().find_map(|open| match &open.call {
            Some((call, Some(its))) if its == token => Some(call.clone()),
            _ => None,
        })
    }

    /// Takes note of a question on its way, unless it has been answered or the handler is gone.
    pub(super) fn note_ask(&self, id: RequestId, ask: AbortHandle) {
        let mut state = self.state();
        if state.over {
            ask.abort();
        } else if !ask.is_finished() {
            state.asks.insert(id, ask);
        }
    }

    pub(super) fn take_ask(&self, id: &RequestId) -> Option<AbortHandle> {
        self.state().asks.remove(id)
    }

    /// Answers a question of the handler.
    pub(super) async fn answer(&self, message: ClientJsonRpcMessage) {
        if let Some(to_handler) = self.to_handler.upgrade() {
            // One that is gone needs no answer.
            let _ = to_handler.send(message).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Why a question belongs to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    None,
    Several,
}

/// That somebody waits for an answer of the handler. One who leaves before it lets the handler know.
struct Waits<'a> {
    shared: &'a Shared,
    id: RequestId,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.shared.state().open.remove(&self.id).is_none() {
            return;
        }
        let to_handler = self.shared.to_handler.upgrade();
        let (Some(to_handler), Some(cancelled)) = (to_handler, messages::cancelled(&self.id))
        else {
            return;
        };
        if let Err(full) = to_handler.try_send(JsonRpcMessage::notification(cancelled))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let _ = to_handler.send(full.into_inner()).await;
            });
        }
    }
}

fn gone() -> ErrorObject {
    codes::internal("the server behind this session has stopped; begin a new session")
}
