//! One running handler: its open requests, and its input requests.
//!
//! It exists as long as its client: while there is a session, or a running call.

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

/// One running handler.
pub(super) struct RunningHandler {
    /// Dropping this ends the handler.
    to_handler: Sender<ClientJsonRpcMessage>,
    pub(super) shared: Arc<Shared>,
    pub(super) description: BackendDescription,
    _keep_alive: watch::Sender<()>,
}

/// What a connection shares with the reader of the handler's messages.
pub(super) struct Shared {
    /// Weak, because the client owns the connection.
    pub(super) client: Weak<ClientHandle>,
    pub(super) catalogue: Catalogue,
    to_handler: WeakSender<ClientJsonRpcMessage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The id of the last request.
    last: i64,
    /// Requests without a response.
    open: HashMap<RequestId, OpenRequest>,
    /// Input requests of the handler without a response.
    input_requests: HashMap<RequestId, AbortHandle>,
    /// Whether the handler has stopped.
    stopped: bool,
}

struct OpenRequest {
    sender: oneshot::Sender<Result<Raw, ErrorObject>>,
    /// Its call, and its progress token.
    call: Option<(CallContext, Option<Id>)>,
}

impl RunningHandler {
    pub(super) fn new(
        to_handler: Sender<ClientJsonRpcMessage>,
        shared: Arc<Shared>,
        description: BackendDescription,
        keep_alive: watch::Sender<()>,
    ) -> Self {
        Self {
            to_handler,
            shared,
            description,
            _keep_alive: keep_alive,
        }
    }

    /// Sends a request to the handler and waits for its response. Dropping the future cancels the
    /// request.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        call: Option<(CallContext, Option<Id>)>,
    ) -> Result<Raw, ErrorObject> {
        self.shared.request(&self.to_handler, request, call).await
    }

    /// Lists and records all its tools.
    pub(super) async fn list_all_tools(&self, server: &Rmcp) -> Result<(), ErrorObject> {
        server.list_all_tools(&self.shared, &self.to_handler).await
    }

    /// Sends a notification to the handler, unless its queue is full.
    pub(super) fn notify(&self, notification: ClientNotification) {
        let message = JsonRpcMessage::notification(notification);
        if self.to_handler.try_send(message).is_err() {
            tracing::warn!("could not send a notification to the handler");
        }
    }

    /// Whether the handler has stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.shared.state().stopped
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
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if state.stopped {
                return Err(handler_stopped());
            }
            state.last += 1;
            let id = RequestId::Number(state.last);
            state.open.insert(id.clone(), OpenRequest { sender, call });
            id
        };
        let message = JsonRpcMessage::request(request, id.clone());
        let _guard = OpenRequestGuard { shared: self, id };
        if to_handler.send(message).await.is_err() {
            return Err(handler_stopped());
        }
        receiver.await.unwrap_or_else(|_| Err(handler_stopped()))
    }

    /// Reads the handler's messages until it stops.
    pub(super) async fn listen(self: Arc<Self>, mut from_handler: Receiver<ServerJsonRpcMessage>) {
        while let Some(message) = from_handler.recv().await {
            match message {
                JsonRpcMessage::Response(response) => {
                    let result = Raw::encode(&response.result);
                    let result = result.map_err(|error| codes::internal(error.to_string()));
                    self.complete(&response.id, result);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        self.complete(id, Err(messages::error_of_handler(&error.error)));
                    }
                }
                JsonRpcMessage::Notification(notification) => {
                    self.handle_notification(notification.notification);
                }
                JsonRpcMessage::Request(request) => {
                    self.handle_request(request.id, request.request);
                }
            }
        }
        let mut state = self.state();
        state.stopped = true;
        // Dropping the senders ends the waiting requests with an error.
        state.open.clear();
        for (_, input_request) in state.input_requests.drain() {
            input_request.abort();
        }
    }

    fn complete(&self, id: &RequestId, result: Result<Raw, ErrorObject>) {
        let open = self.state().open.remove(id);
        if let Some(open) = open {
            let _ = open.sender.send(result);
        }
    }

    /// The call of an open request; without `request`, the only call.
    pub(super) fn call(&self, request: Option<&RequestId>) -> Result<CallContext, CallLookupError> {
        let state = self.state();
        let context = |open: &OpenRequest| open.call.as_ref().map(|(call, _)| call.clone());
        if let Some(request) = request {
            return state
                .open
                .get(request)
                .and_then(context)
                .ok_or(CallLookupError::NoCall);
        }
        let mut calls = state.open.values().filter_map(context);
        match (calls.next(), calls.next()) {
            (Some(call), None) => Ok(call),
            (None, _) => Err(CallLookupError::NoCall),
            (Some(_), Some(_)) => Err(CallLookupError::SeveralCalls),
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

    /// Records an input request, unless it has a response or the handler has stopped.
    pub(super) fn add_input_request(&self, id: RequestId, input_request: AbortHandle) {
        let mut state = self.state();
        if state.stopped {
            input_request.abort();
        } else if !input_request.is_finished() {
            state.input_requests.insert(id, input_request);
        }
    }

    pub(super) fn take_input_request(&self, id: &RequestId) -> Option<AbortHandle> {
        self.state().input_requests.remove(id)
    }

    /// Sends a response to the handler.
    pub(super) async fn respond(&self, message: ClientJsonRpcMessage) {
        if let Some(to_handler) = self.to_handler.upgrade() {
            // A stopped handler needs no response.
            let _ = to_handler.send(message).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Why an input request cannot be assigned to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallLookupError {
    NoCall,
    SeveralCalls,
}

/// Guards an open request. Dropping it before the response cancels the request.
struct OpenRequestGuard<'a> {
    shared: &'a Shared,
    id: RequestId,
}

impl Drop for OpenRequestGuard<'_> {
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

fn handler_stopped() -> ErrorObject {
    codes::internal("the server of this session has stopped; open a new session")
}
