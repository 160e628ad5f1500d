//! JSON-RPC on a [`Link`]: requests find their answers, the server's requests find ours. Payloads stay unopened.
//!
//! What a message means is decided by the [`RpcHandler`]. A request of ours has a [`PendingResponse`] until it is answered.

use outlast_engine::Answer;
use outlast_wire::envelope::{self, Id, Message, Sort, write};
use outlast_wire::{Raw, RawRef, codes, notice, v1, version};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, watch};

use super::error::{Error, PeerError};
use super::incoming_requests::{Admission, IncomingRequests};
use super::pending_response::{OnDrop, PendingRequests, PendingResponse, SendOptions};
use super::request_ids::RequestIds;
use super::rpc_handler::{PeerRequest, Reply, ReplyFuture, RpcHandler};
use crate::transport::http_client::DirectRequests;
use crate::transport::link::{Incoming, Kind, Link, LinkError, Outgoing, Parcel, passed_on};

/// One conversation on one link.
pub(crate) struct RpcChannel {
    outgoing: Mutex<Option<mpsc::Sender<Outgoing>>>,
    direct: Option<Arc<DirectRequests>>,
    pub(super) pending: PendingRequests,
    /// `None` when the link is over.
    incoming: Mutex<Option<IncomingRequests>>,
    ids: Arc<RequestIds>,
    serial: u64,
    version: OnceLock<Arc<str>>,
    /// Whether a previous connection opened the session.
    resumed: AtomicBool,
    over: watch::Sender<Option<LinkError>>,
}

impl RpcChannel {
    /// Begins a conversation. Its requests take their ids from `ids`, which the links of a client share: a link that
    /// replaces another uses no id again (V1-BASE-2).
    pub(crate) fn begin(
        link: Link,
        ids: Arc<RequestIds>,
        inbound: Arc<dyn RpcHandler>,
    ) -> Arc<Self> {
        let channel = Arc::new(Self {
            outgoing: Mutex::new(Some(link.outgoing)),
            direct: link.direct,
            pending: PendingRequests::default(),
            incoming: Mutex::new(Some(IncomingRequests::default())),
            // Every conversation begins with a request, so no two begin at the same number.
            serial: ids.count(),
            ids,
            version: OnceLock::new(),
            resumed: AtomicBool::new(false),
            over: watch::channel(None).0,
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

    /// An id for a request.
    pub(crate) fn fresh_id(&self) -> Id {
        self.ids.fresh()
    }

    /// Sends a request under an id of [`RpcChannel::fresh_id`].
    pub(crate) async fn send_with_id(
        self: &Arc<Self>,
        id: Id,
        method: &str,
        params: Option<RawRef<'_>>,
        send_options: SendOptions,
    ) -> Result<PendingResponse, Error> {
        let kind = match (send_options.stateless, method == v1::method::INITIALIZE) {
            (true, _) => Kind::Stateless(id.clone()),
            (false, true) => Kind::Opening(id.clone()),
            (false, false) => Kind::Request(id.clone()),
        };
        let on_drop = send_options.on_drop;
        let mut pending_response = PendingResponse::new(self.clone(), id.clone(), on_drop);
        let line = write::request(&id, method, params);
        let parcel = Parcel {
            line,
            kind,
            headers: send_options.headers,
        };
        let direct = self.direct.as_ref().filter(|_| send_options.polled);
        match direct.filter(|direct| direct.takes(&parcel.kind)) {
            Some(direct) => {
                // The link may have ended before the request was pending.
                self.sender()?;
                let direct = direct.clone();
                pending_response.poll_directly(Box::pin(async move {
                    let read = |line: &[u8]| read_answer(line, &id);
                    direct.request(&parcel, &id, read).await
                }));
            }
            None => self.enqueue(Outgoing::Message(parcel)).await?,
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
        let parcel = Parcel {
            line: write::notification(method, params),
            kind: Kind::OneWay,
            headers,
        };
        self.enqueue(Outgoing::Message(parcel)).await
    }

    /// Tells the transport that the handshake is over.
    pub(crate) async fn opened(&self, version: &str) -> Result<(), Error> {
        let version: Arc<str> = version.into();
        let _ = self.version.set(version.clone());
        self.enqueue(Outgoing::Opened { version }).await
    }

    /// The conversation goes on in a session that a previous connection opened.
    pub(crate) fn mark_resumed(&self) {
        self.resumed.store(true, Ordering::Release);
    }

    /// Whether a previous connection opened the session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed.load(Ordering::Acquire)
    }

    /// Goes on in the modern era: nothing is agreed, and the server has no requests for us (V2-BASE-3).
    pub(crate) fn set_modern(&self) {
        let _ = self.version.set(version::MODERN.into());
    }

    /// Tells this conversation from the others of its client.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The version that was agreed, once it was.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.get().map(|version| &**version)
    }

    /// Closes the link in an orderly way.
    pub(crate) fn close(&self) {
        self.outgoing().take();
    }

    /// Resolves when the link is over, with the reason.
    pub(crate) async fn over(&self) -> LinkError {
        let mut over = self.over.subscribe();
        match over.wait_for(Option::is_some).await {
            Ok(error) => error.clone().unwrap_or(LinkError::Closed),
            Err(_) => LinkError::Closed,
        }
    }

    /// Whether the link is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.over.borrow().is_some()
    }

    async fn enqueue(&self, out: Outgoing) -> Result<(), Error> {
        match self.sender()?.send_timeout(out, SEND_TIMEOUT).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Closed(_)) => Err(self.closed()),
            Err(SendTimeoutError::Timeout(_)) => {
                let why = format!("it has read nothing for {} s", SEND_TIMEOUT.as_secs());
                Err(Error::Transport(LinkError::Unreachable(why)))
            }
        }
    }

    /// The way to the server, unless the link is over.
    fn sender(&self) -> Result<mpsc::Sender<Outgoing>, Error> {
        self.outgoing().clone().ok_or_else(|| self.closed())
    }

    fn closed(&self) -> Error {
        Error::Transport(self.over.borrow().clone().unwrap_or(LinkError::Closed))
    }

    /// Reads the link to its end.
    async fn read_messages(
        self: Arc<Self>,
        mut incoming: mpsc::Receiver<Incoming>,
        inbound: Arc<dyn RpcHandler>,
    ) {
        let mut reason = LinkError::Closed;
        let mut refused = Vec::new();
        while let Some(item) = incoming.recv().await {
            match item {
                Incoming::Message { line, via } => {
                    self.receive(&line, via, &inbound).await;
                }
                // The link is about to be over, and whoever was refused is told then: a repetition needs another.
                Incoming::Failed {
                    id,
                    error: LinkError::SessionGone,
                } => refused.push(id),
                Incoming::Failed { id, error } => self.pending.complete(&id, Err(error.into())),
                Incoming::Closed(error) => {
                    reason = error;
                    break;
                }
            }
        }
        // Whoever was asked something need not answer any more; whoever waits is told why it is in vain.
        let incoming = self.incoming.lock().take();
        drop(incoming);
        self.close();
        self.over.send_replace(Some(reason.clone()));
        inbound.closed(&self);
        self.pending.fail_all(|id| match &reason {
            // BR-GEN-7: that the session is gone says what became of a request only where it was the answer to it.
            LinkError::SessionGone if !refused.contains(id) => {
                LinkError::Broken(reason.to_string())
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
        let message = match Message::parse(line, &passed_on()) {
            Ok(message) => message,
            Err(malformed) if malformed.sort == Sort::Answer => {
                if let Some(id) = &malformed.id {
                    self.pending
                        .complete(id, Err(Error::Malformed(malformed.to_string())));
                }
                return;
            }
            Err(malformed) => {
                tracing::warn!(error = %malformed, "the server sent something that is no message");
                if let Some(id) = &malformed.id {
                    let error = malformed.to_error().to_raw();
                    self.try_reply(id, &Answer::Error(error));
                }
                return;
            }
        };
        match message {
            Message::Response(response) => {
                if let Some(id) = &response.id {
                    self.pending.complete(id, outcome(&response.outcome));
                }
            }
            Message::Notification(notification) if notification.method == notice::CANCELLED => {
                match notification.params.and_then(notice::cancelled_request) {
                    // V2-SUB-10: the end of something that we listen to.
                    Some(id) if self.is_modern() => self.pending.complete(&id, Err(withdrawn())),
                    Some(id) => self.cancel_reply(&id),
                    None => {}
                }
            }
            Message::Notification(notification) => {
                inbound.notified(&notification.method, notification.params);
            }
            // V2-BASE-3, V2-STDIO-3: there are none, and nothing could be answered.
            Message::Request(request) if self.is_modern() => {
                tracing::warn!(method = %request.method, "a modern server sent a request, which is ignored");
            }
            Message::Request(request) => {
                let id = request.id;
                match self.admit(&id) {
                    Admission::New => {}
                    Admission::Duplicate => {
                        tracing::debug!(method = %request.method, "the server sent a request again, which is being answered");
                        return;
                    }
                    Admission::Full => {
                        let error = codes::internal("too many requests at once; try again later");
                        self.try_reply(&id, &Answer::Error(error.to_raw()));
                        return;
                    }
                }
                let asked = PeerRequest {
                    id: id.clone(),
                    method: request.method.into_owned(),
                    params: request.params.map(RawRef::to_raw),
                    via,
                };
                let work = inbound.clone().asked(self, asked);
                self.start_reply(id, work);
            }
        }
    }

    /// Answers the request `id` of the server with what `work` brings, unless that request is being answered already.
    pub(crate) fn start_reply(self: &Arc<Self>, id: Id, work: ReplyFuture) {
        let (channel, of) = (self.clone(), id.clone());
        let work = async move {
            let Reply { answer, then } = work.await;
            let Some(answer) = answer else { return };
            let delivered = channel.deliver_reply(&of, &answer).await;
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

    /// Sends an answer and waits until the server has taken it, where the transport reports that.
    async fn deliver_reply(&self, id: &Id, answer: &Answer) -> Result<(), Error> {
        match self.direct.as_ref().filter(|direct| direct.is_open()) {
            Some(direct) => Ok(direct.deliver(&reply_message(id, answer)).await?),
            None => self.queue_reply(id, answer).await,
        }
    }

    /// Sends an answer with the other messages of the link.
    async fn queue_reply(&self, id: &Id, answer: &Answer) -> Result<(), Error> {
        self.enqueue(Outgoing::Message(reply_message(id, answer)))
            .await
    }

    /// The same without waiting for room in the queue, from which the answer is left out then: a server that does not read
    /// would keep us from reading what it sends, its answers to our calls included.
    fn try_reply(&self, id: &Id, answer: &Answer) {
        let Ok(sender) = self.sender() else { return };
        let answer = Outgoing::Message(reply_message(id, answer));
        if sender.try_send(answer).is_err() {
            tracing::debug!("the server does not read its input; a request of it is not answered");
        }
    }

    /// Tells the server that a request is given up.
    pub(super) fn notify_dropped(&self, id: &Id, how: OnDrop) {
        let Some(sender) = self.outgoing().clone() else {
            return;
        };
        let cancelled = || {
            let params = notice::cancelling(id, None);
            write::notification(notice::CANCELLED, Some(params.borrow()))
        };
        // A queue that is full is one whose other end has more to do than to hear of this.
        if how == OnDrop::Cancel {
            let _ = sender.try_send(Outgoing::Message(Parcel::new(cancelled(), Kind::OneWay)));
        }
        let _ = sender.try_send(match how {
            OnDrop::Withdraw => Outgoing::Withdraw {
                id: id.clone(),
                line: cancelled(),
            },
            OnDrop::Cancel | OnDrop::Nothing => Outgoing::Abandon(id.clone()),
        });
    }

    fn is_modern(&self) -> bool {
        self.version() == Some(version::MODERN)
    }

    fn outgoing(&self) -> MutexGuard<'_, Option<mpsc::Sender<Outgoing>>> {
        self.outgoing.lock()
    }
}

/// The message that answers the request `id` of the server.
fn reply_message(id: &Id, answer: &Answer) -> Parcel {
    let line = match answer {
        Answer::Result(result) => write::result(id, result.borrow()),
        Answer::Error(error) => write::error(Some(id), error.borrow()),
    };
    Parcel::new(line, Kind::OneWay)
}

/// The answer to the request `id`, if a message is that.
fn read_answer(line: &[u8], id: &Id) -> Option<Result<Raw, Error>> {
    match Message::parse(line, &passed_on()) {
        Ok(Message::Response(response)) if response.id.as_ref() == Some(id) => {
            Some(outcome(&response.outcome))
        }
        _ => None,
    }
}

fn outcome(outcome: &envelope::Outcome<'_>) -> Result<Raw, Error> {
    match outcome {
        envelope::Outcome::Result(result) => Ok(result.to_raw()),
        envelope::Outcome::Error(error) => Err(PeerError::of(error).into()),
    }
}

fn withdrawn() -> Error {
    LinkError::Broken("the server ended the stream".into()).into()
}

/// How long a message waits for room in the queue to a server that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
