//! JSON-RPC on a [`Link`]: matches responses to requests in both directions. Payloads stay
//! unopened. The meaning of messages is left to the [`RpcHandler`]. A sent request is a
//! [`PendingResponse`] until its response arrives.

use outlast_engine::InputResponse;
use outlast_wire::envelope::{self, Id, MalformedKind, Message, write};
use outlast_wire::{Raw, RawRef, codes, notice, v1, version};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, watch};

use super::error::{Error, PeerError};
use super::incoming_requests::{Admission, IncomingRequests};
use super::observer::{MessageDirection, MessageObserver, ObservedMessage};
use super::pending_response::{OnDrop, PendingRequests, PendingResponse, SendOptions};
use super::request_ids::RequestIds;
use super::rpc_handler::{HandlerReply, HandlerReplyFuture, PeerRequest, RpcHandler};
use crate::transport::http_client::DirectRequests;
use crate::transport::link::{
    Incoming, Link, MessageKind, Outgoing, OutgoingMessage, TransportError, limits_without_size,
};

/// A JSON-RPC channel on one link.
pub(crate) struct RpcChannel {
    outgoing: Mutex<Option<mpsc::Sender<Outgoing>>>,
    direct: Option<Arc<DirectRequests>>,
    pub(super) pending: PendingRequests,
    /// `None` after the link has closed.
    incoming: Mutex<Option<IncomingRequests>>,
    ids: Arc<RequestIds>,
    serial: u64,
    version: OnceLock<Arc<str>>,
    /// Whether a previous connection opened the session.
    resumed: AtomicBool,
    over: watch::Sender<Option<TransportError>>,
    observer: Option<Arc<dyn MessageObserver>>,
}

impl RpcChannel {
    /// Starts a channel. Its requests take their ids from `ids`, which all channels of a client
    /// share: a new link never reuses an id (V1-BASE-2).
    pub(crate) fn start(
        link: Link,
        ids: Arc<RequestIds>,
        inbound: Arc<dyn RpcHandler>,
        observer: Option<Arc<dyn MessageObserver>>,
    ) -> Arc<Self> {
        let channel = Arc::new(Self {
            outgoing: Mutex::new(Some(link.outgoing)),
            direct: link.direct,
            pending: PendingRequests::default(),
            incoming: Mutex::new(Some(IncomingRequests::default())),
            // Every channel starts with a request, so the counts at the start differ.
            serial: ids.count(),
            ids,
            version: OnceLock::new(),
            resumed: AtomicBool::new(false),
            over: watch::channel(None).0,
            observer,
        });
        tokio::spawn(channel.clone().read_messages(link.incoming, inbound));
        channel
    }

    /// Sends a request.
    pub(crate) async fn send(
        self: &Arc<Self>,
        method: &str,
        params: Option<RawRef<'_>>,
        send_options: SendOptions,
    ) -> Result<PendingResponse, Error> {
        self.send_with_id(self.fresh_id(), method, params, send_options)
            .await
    }

    /// A new request id.
    pub(crate) fn fresh_id(&self) -> Id {
        self.ids.fresh()
    }

    /// Sends a request with an id from [`RpcChannel::fresh_id`].
    pub(crate) async fn send_with_id(
        self: &Arc<Self>,
        id: Id,
        method: &str,
        params: Option<RawRef<'_>>,
        send_options: SendOptions,
    ) -> Result<PendingResponse, Error> {
        let kind = match (send_options.stateless, method == v1::method::INITIALIZE) {
            (true, _) => MessageKind::Stateless(id.clone()),
            (false, true) => MessageKind::Opening(id.clone()),
            (false, false) => MessageKind::Request(id.clone()),
        };
        let on_drop = send_options.on_drop;
        let mut pending_response = PendingResponse::new(self.clone(), id.clone(), on_drop);
        let line = write::request(&id, method, params);
        let message = OutgoingMessage {
            line,
            kind,
            headers: send_options.headers,
        };
        self.observe(MessageDirection::ToServer, message.line.as_bytes());
        let direct = self.direct.as_ref().filter(|_| send_options.polled);
        match direct.filter(|direct| direct.can_send(&message.kind)) {
            Some(direct) => {
                // The link may have closed before this request was registered.
                self.sender()?;
                let (direct, channel) = (direct.clone(), self.clone());
                pending_response.poll_directly(Box::pin(async move {
                    let read = |line: &[u8]| {
                        let response = read_response(line, &id, &direct)?;
                        channel.observe(MessageDirection::FromServer, line);
                        Some(response)
                    };
                    let answered = direct.request(&message, &id, read).await;
                    if let Err(error) = &answered {
                        channel.observe_failure(&id, error);
                    }
                    answered
                }));
            }
            None => self.enqueue(Outgoing::Message(message)).await?,
        }
        Ok(pending_response)
    }

    /// Sends a notification.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<RawRef<'_>>,
        headers: Vec<(String, String)>,
    ) -> Result<(), Error> {
        let message = OutgoingMessage {
            line: write::notification(method, params),
            kind: MessageKind::OneWay,
            headers,
        };
        self.observe(MessageDirection::ToServer, message.line.as_bytes());
        self.enqueue(Outgoing::Message(message)).await
    }

    /// Notifies the transport that the handshake is done.
    pub(crate) async fn handshake_done(&self, version: &str) -> Result<(), Error> {
        let version: Arc<str> = version.into();
        let _ = self.version.set(version.clone());
        self.enqueue(Outgoing::Opened { version }).await
    }

    /// Marks that the channel continues a session of a previous connection.
    pub(crate) fn mark_resumed(&self) {
        self.resumed.store(true, Ordering::Release);
    }

    /// Whether a previous connection opened the session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed.load(Ordering::Acquire)
    }

    /// Switches to the modern era: no version is negotiated, and the server sends no requests
    /// (V2-BASE-3).
    pub(crate) fn set_modern(&self) {
        let _ = self.version.set(version::MODERN.into());
    }

    /// Distinguishes this channel from the others of its client.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The negotiated version, once it is known.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.get().map(|version| &**version)
    }

    /// Closes the link.
    pub(crate) fn close(&self) {
        self.outgoing().take();
    }

    /// Waits until the link has closed and returns the reason.
    pub(crate) async fn wait_closed(&self) -> TransportError {
        let mut over = self.over.subscribe();
        match over.wait_for(Option::is_some).await {
            Ok(error) => error.clone().unwrap_or(TransportError::Closed),
            Err(_) => TransportError::Closed,
        }
    }

    /// Whether the link has closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Whether the link has closed because the server no longer knows the session.
    pub(crate) fn lost_session(&self) -> bool {
        *self.over.borrow() == Some(TransportError::SessionGone)
    }

    async fn enqueue(&self, out: Outgoing) -> Result<(), Error> {
        match self.sender()?.send_timeout(out, SEND_TIMEOUT).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Closed(_)) => Err(self.closed_error()),
            Err(SendTimeoutError::Timeout(_)) => {
                let why = format!("it has not read its input for {} s", SEND_TIMEOUT.as_secs());
                Err(Error::Transport(TransportError::Unreachable(why)))
            }
        }
    }

    /// The sender of outgoing messages; fails if the link has closed.
    fn sender(&self) -> Result<mpsc::Sender<Outgoing>, Error> {
        self.outgoing().clone().ok_or_else(|| self.closed_error())
    }

    fn closed_error(&self) -> Error {
        Error::Transport(self.over.borrow().clone().unwrap_or(TransportError::Closed))
    }

    /// Reads messages until the link closes.
    async fn read_messages(
        self: Arc<Self>,
        mut incoming: mpsc::Receiver<Incoming>,
        inbound: Arc<dyn RpcHandler>,
    ) {
        let mut reason = TransportError::Closed;
        let mut refused = Vec::new();
        while let Some(item) = incoming.recv().await {
            match item {
                Incoming::Message { line, via } => {
                    self.receive(&line, via, &inbound).await;
                }
                // The link closes next. Refused requests fail only then, because a retry needs a
                // new link.
                Incoming::Failed {
                    id,
                    error: TransportError::SessionGone,
                } => refused.push(id),
                Incoming::Failed { id, error } => {
                    self.observe_failure(&id, &error);
                    self.pending.complete(&id, Err(error.into()));
                }
                Incoming::Closed(error) => {
                    reason = error;
                    break;
                }
            }
        }
        // The reason comes first: the work on the server's requests reads it when it is dropped.
        self.over.send_replace(Some(reason.clone()));
        let incoming = self.incoming.lock().take();
        drop(incoming);
        self.close();
        inbound.closed(&self);
        self.pending.fail_all(|id| match &reason {
            // BR-GEN-7: a lost session proves that a request was not executed only if this was its
            // response.
            TransportError::SessionGone if !refused.contains(id) => {
                TransportError::Broken(reason.to_string())
            }
            reason => reason.clone(),
        });
    }

    async fn receive(
        self: &Arc<Self>,
        line: &[u8],
        via: Option<Id>,
        inbound: &Arc<dyn RpcHandler>,
    ) {
        self.observe(MessageDirection::FromServer, line);
        let message = match Message::parse(line, &limits_without_size()) {
            Ok(message) => message,
            Err(malformed) if malformed.kind == MalformedKind::Response => {
                if let Some(id) = &malformed.id {
                    self.pending
                        .complete(id, Err(Error::Malformed(malformed.to_string())));
                }
                return;
            }
            Err(malformed) => {
                tracing::warn!(error = %malformed, "the server sent an invalid message");
                if let Some(id) = &malformed.id {
                    let error = malformed.to_error().to_raw();
                    self.try_reply(id, &InputResponse::Error(error));
                }
                return;
            }
        };
        match message {
            Message::Response(response) => {
                if let Some(id) = &response.id {
                    let outcome = outcome(&response.outcome, self.direct.as_deref());
                    self.pending.complete(id, outcome);
                }
            }
            Message::Notification(notification) if notification.method == notice::CANCELLED => {
                match notification.params.and_then(notice::cancelled_request) {
                    // V2-SUB-10: the server ended a subscription stream.
                    Some(id) if self.is_modern() => self.pending.complete(&id, Err(stream_ended())),
                    Some(id) => self.cancel_reply(&id),
                    None => {}
                }
            }
            Message::Notification(notification) => {
                inbound.notified(&notification.method, notification.params);
            }
            // V2-BASE-3, V2-STDIO-3: the modern era has no requests from the server, and no way to
            // respond.
            Message::Request(request) if self.is_modern() => {
                tracing::warn!(method = %request.method, "ignoring a request from a modern server");
            }
            Message::Request(request) => {
                let id = request.id;
                match self.admit(&id) {
                    Admission::New => {}
                    Admission::Duplicate => {
                        tracing::debug!(method = %request.method, "ignoring a repeated request that is already being handled");
                        return;
                    }
                    Admission::Full => {
                        let error = codes::internal("too many requests at once; try again later");
                        self.try_reply(&id, &InputResponse::Error(error.to_raw()));
                        return;
                    }
                }
                let request = PeerRequest {
                    id: id.clone(),
                    method: request.method.into_owned(),
                    params: request.params.map(RawRef::to_raw),
                    via,
                };
                let work = inbound.clone().requested(self, request);
                self.start_reply(id, work);
            }
        }
    }

    /// Sends the reply of `work` to the request `id` of the server, unless that request is already
    /// being handled.
    pub(crate) fn start_reply(self: &Arc<Self>, id: Id, work: HandlerReplyFuture) {
        let (channel, of) = (self.clone(), id.clone());
        let work = async move {
            let HandlerReply { response, then } = work.await;
            let Some(response) = response else { return };
            let delivered = channel.deliver_reply(&of, &response).await;
            if let Some(then) = then {
                then(delivered);
            }
        };
        if let Some(incoming) = self.incoming.lock().as_mut()
            && incoming.admit(&id) != Admission::Duplicate
        {
            incoming.begin(id, work);
        }
    }

    fn admit(&self, id: &Id) -> Admission {
        let mut incoming = self.incoming.lock();
        incoming
            .as_mut()
            .map_or(Admission::Duplicate, |incoming| incoming.admit(id))
    }

    fn cancel_reply(&self, id: &Id) {
        if let Some(incoming) = self.incoming.lock().as_mut() {
            incoming.cancel(id);
        }
    }

    /// Sends a reply and waits until the server has accepted it, if the transport reports that.
    async fn deliver_reply(&self, id: &Id, response: &InputResponse) -> Result<(), Error> {
        // A reply in a resumed session waits for the handshake, because only a direct request shows
        // whether the server accepts the reply. Other replies may be needed for the handshake.
        if let Some(direct) = self.direct.as_ref().filter(|_| self.is_resumed()) {
            direct.opened().await;
        }
        match self.direct.as_ref().filter(|direct| direct.is_open()) {
            Some(direct) => Ok(direct.deliver(&self.reply_message(id, response)).await?),
            None => self.queue_reply(id, response).await,
        }
    }

    /// Sends a reply through the queue of the link.
    async fn queue_reply(&self, id: &Id, response: &InputResponse) -> Result<(), Error> {
        self.enqueue(Outgoing::Message(self.reply_message(id, response)))
            .await
    }

    /// Sends a reply only if the queue has space. Waiting for a server that does not read would
    /// stop the reading of its messages, including the responses to calls.
    fn try_reply(&self, id: &Id, response: &InputResponse) {
        let Ok(sender) = self.sender() else { return };
        let response = Outgoing::Message(self.reply_message(id, response));
        if sender.try_send(response).is_err() {
            tracing::debug!(
                "the server does not read its input; dropping the response to its request"
            );
        }
    }

    /// Notifies the server that a request was dropped.
    pub(super) fn notify_dropped(&self, id: &Id, how: OnDrop) {
        let Some(sender) = self.outgoing().clone() else {
            return;
        };
        let cancelled = || {
            let params = notice::cancelling(id, None);
            write::notification(notice::CANCELLED, Some(params.borrow()))
        };
        // A full queue means an overloaded server; the notification is not worth waiting for.
        if how == OnDrop::Cancel {
            let line = cancelled();
            self.observe(MessageDirection::ToServer, line.as_bytes());
            let _ = sender.try_send(Outgoing::Message(OutgoingMessage::new(
                line,
                MessageKind::OneWay,
            )));
        }
        let _ = sender.try_send(match how {
            OnDrop::Withdraw => Outgoing::Cancel {
                id: id.clone(),
                line: cancelled(),
            },
            OnDrop::Cancel | OnDrop::Nothing => Outgoing::Abandon(id.clone()),
        });
    }

    /// The message with a reply to the request `id` of the server.
    fn reply_message(&self, id: &Id, response: &InputResponse) -> OutgoingMessage {
        let line = match response {
            InputResponse::Result(result) => write::result(id, result.borrow()),
            InputResponse::Error(error) => write::error(Some(id), error.borrow()),
        };
        self.observe(MessageDirection::ToServer, line.as_bytes());
        OutgoingMessage::new(line, MessageKind::OneWay)
    }

    fn observe(&self, direction: MessageDirection, text: &[u8]) {
        if let Some(observer) = &self.observer {
            observer.message(ObservedMessage {
                direction,
                text,
                version: self.version(),
                connection: self.serial,
            });
        }
    }

    fn observe_failure(&self, request: &Id, error: &TransportError) {
        if let Some(observer) = &self.observer {
            observer.request_failed(request, error);
        }
    }

    fn is_modern(&self) -> bool {
        self.version() == Some(version::MODERN)
    }

    fn outgoing(&self) -> MutexGuard<'_, Option<mpsc::Sender<Outgoing>>> {
        self.outgoing.lock()
    }
}

/// The response to the request `id`, if the message is one.
fn read_response(line: &[u8], id: &Id, direct: &DirectRequests) -> Option<Result<Raw, Error>> {
    match Message::parse(line, &limits_without_size()) {
        Ok(Message::Response(response)) if response.id.as_ref() == Some(id) => {
            Some(outcome(&response.outcome, Some(direct)))
        }
        _ => None,
    }
}

/// What a response brings. An error does not show the id of our session, which gives access.
fn outcome(outcome: &envelope::Outcome<'_>, direct: Option<&DirectRequests>) -> Result<Raw, Error> {
    match outcome {
        envelope::Outcome::Result(result) => Ok(result.to_raw()),
        envelope::Outcome::Error(error) => {
            let error = PeerError::of(error);
            Err(match direct {
                Some(direct) => error.cleaned(|text| direct.without_session(text)).into(),
                None => error.into(),
            })
        }
    }
}

fn stream_ended() -> Error {
    TransportError::Broken("the server ended the stream".into()).into()
}

/// How long a message waits for space in the queue to a server that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
