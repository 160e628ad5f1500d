//! The response to one request: one message, or a stream.
//!
//! A handler does not know in advance which of the two it is. The messages of a session's request
//! go to a [`ResponseStream`], which the first message opens; those of a modern request go to a
//! channel. If a handler returns without a message, the response is a single message, and no stream
//! is opened.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use outlast_wire::envelope::{Id, write};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::message_stream::{MessageStream, RequestStream};
use super::{Reply, Session, StreamId, StreamKind, StreamReader};

/// The response to one request.
pub(crate) enum Response {
    /// No message precedes the reply.
    Immediate(Reply),
    /// Messages precede the reply.
    Stream(MessageStream),
}

/// A request that is being handled.
///
/// Dropping it detaches the handler of a session's request, which runs to its end (V1-SSE-6). The
/// handler of a modern request is stopped (V2-HTTP-6).
pub(crate) struct ActiveRequest {
    id: Id,
    work: Option<HandlerFuture>,
    messages: Messages,
}

/// The future of a handler. Boxed because it is large and moved several times.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Where the messages before the reply go.
enum Messages {
    /// To a stream of the session.
    Session(Arc<ResponseStream>),
    /// Through a channel; `None` if no message precedes the reply.
    Request(Option<mpsc::Receiver<Arc<str>>>),
}

/// The stream of one response.
pub(crate) struct ResponseStream {
    session: Arc<Session>,
    state: Mutex<State>,
    /// Set when the client cancels the request.
    cancelled: CancellationToken,
}

enum State {
    Unopened,
    /// Holds the reader until the response takes it.
    Open(StreamId, Option<StreamReader>),
    /// The caller disconnected before the stream was opened; messages are dropped.
    Abandoned,
}

impl ActiveRequest {
    /// Handles a session's request.
    pub(super) fn of_session(id: Id, work: HandlerFuture, stream: Arc<ResponseStream>) -> Self {
        Self {
            id,
            work: Some(work),
            messages: Messages::Session(stream),
        }
    }

    /// Handles a modern request.
    pub(super) fn of_request(
        id: Id,
        work: HandlerFuture,
        messages: Option<mpsc::Receiver<Arc<str>>>,
    ) -> Self {
        Self {
            id,
            work: Some(work),
            messages: Messages::Request(messages),
        }
    }

    /// The id of the request.
    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Runs the handler until its reply or its first message, which makes the response a stream.
    pub(crate) async fn response(&mut self) -> Response {
        poll_fn(|cx| {
            let work = self.work.as_mut();
            let polled = work.map_or(Poll::Pending, |work| work.as_mut().poll(cx));
            if polled.is_ready() {
                self.work = None;
            }
            let opened = self.poll_stream(cx);
            match (polled, opened) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                (Poll::Pending, Poll::Ready(stream)) => Poll::Ready(Response::Stream(stream)),
                (Poll::Ready(reply), Poll::Pending) => Poll::Ready(Response::Immediate(reply)),
                (Poll::Ready(reply), Poll::Ready(stream)) => {
                    Poll::Ready(Response::Stream(self.with_reply(stream, reply)))
                }
            }
        })
        .await
    }

    /// Makes the response a stream before its first message.
    pub(crate) fn open(&mut self) -> MessageStream {
        match &mut self.messages {
            Messages::Session(stream) => {
                stream.open();
                let reader = stream.take_reader();
                let reader = reader.expect("a response opens its stream once");
                MessageStream::Session(stream.session.clone(), reader)
            }
            Messages::Request(messages) => MessageStream::Request(Box::new(RequestStream {
                id: self.id.clone(),
                work: self.work.take(),
                first: None,
                messages: messages.take(),
                reply: None,
            })),
        }
    }

    /// A stream that carries only the reply.
    pub(crate) fn stream_of(&mut self, reply: Reply) -> MessageStream {
        let stream = self.open();
        self.with_reply(stream, reply)
    }

    /// The stream of the response, once it has a message.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<MessageStream> {
        match &mut self.messages {
            Messages::Session(stream) => match stream.take_reader() {
                Some(reader) => Poll::Ready(MessageStream::Session(stream.session.clone(), reader)),
                None => Poll::Pending,
            },
            Messages::Request(None) => Poll::Pending,
            Messages::Request(Some(messages)) => {
                let Poll::Ready(Some(first)) = messages.poll_recv(cx) else {
                    return Poll::Pending;
                };
                let mut stream = self.open();
                if let MessageStream::Request(stream) = &mut stream {
                    stream.first = Some(first);
                }
                Poll::Ready(stream)
            }
        }
    }

    /// Adds the reply to the end of `stream`.
    fn with_reply(&self, mut stream: MessageStream, reply: Reply) -> MessageStream {
        if let Messages::Session(response_stream) = &self.messages {
            response_stream.finish(&self.id, &reply);
        } else if let MessageStream::Request(stream) = &mut stream {
            stream.reply = Some(reply);
        }
        stream
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let Messages::Session(stream) = &self.messages else {
            return;
        };
        stream.detach();
        // Without a runtime the handler cannot continue.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            let (id, stream) = (self.id.clone(), stream.clone());
            runtime.spawn(async move { stream.finish(&id, &work.await) });
        }
    }
}

impl ResponseStream {
    /// A stream that is not opened yet.
    pub(super) fn unopened(session: Arc<Session>) -> Arc<Self> {
        Arc::new(Self::new(session, State::Unopened))
    }

    /// A response on the shared stdio stream.
    pub(super) fn on_stdio(session: Arc<Session>, stdio: StreamId) -> Arc<Self> {
        Arc::new(Self::new(session, State::Open(stdio, None)))
    }

    /// The stream of a response that is discarded.
    pub(super) fn abandoned(session: Arc<Session>) -> Self {
        Self::new(session, State::Abandoned)
    }

    fn new(session: Arc<Session>, state: State) -> Self {
        Self {
            session,
            state: Mutex::new(state),
            cancelled: CancellationToken::new(),
        }
    }

    /// Cancels the request. The token is cancelled before the handler is dropped, so that drop
    /// guards can tell a cancellation from a disconnect.
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Opens the stream, unless it is open; `None` if the caller has disconnected.
    pub(super) fn open(&self) -> Option<StreamId> {
        let mut state = self.state();
        match &*state {
            State::Open(stream, _) => Some(*stream),
            State::Abandoned => None,
            State::Unopened => {
                let reader = self.session.streams.open(StreamKind::Response);
                let stream = reader.stream;
                *state = State::Open(stream, Some(reader));
                Some(stream)
            }
        }
    }

    /// Sends a message before the reply.
    pub(super) fn send(&self, line: String) {
        if let Some(stream) = self.open() {
            self.session.streams.send(stream, line);
        }
    }

    /// Opens the stream with an empty event, for a caller that may wait long for the first message.
    pub(super) fn prime(&self) -> Option<StreamId> {
        let stream = self.open()?;
        self.session.streams.prime(stream);
        Some(stream)
    }

    /// Whether the caller is reachable: it reads the stream, or waits for the response.
    pub(super) fn is_live(&self) -> bool {
        match &*self.state() {
            State::Unopened => true,
            State::Open(stream, _) => self.session.streams.is_live(*stream),
            State::Abandoned => false,
        }
    }

    /// Sends the reply and ends the stream. The stdio stream stays open.
    pub(super) fn finish(&self, id: &Id, reply: &Reply) {
        let State::Open(stream, _) = *self.state() else {
            return;
        };
        match line(id, reply) {
            Some(line) => self.session.streams.finish(stream, line),
            None => self.session.streams.end(stream),
        }
    }

    fn take_reader(&self) -> Option<StreamReader> {
        match &mut *self.state() {
            State::Open(_, reader) => reader.take(),
            State::Unopened | State::Abandoned => None,
        }
    }

    /// Called when the caller disconnects or has taken the reader.
    fn detach(&self) {
        let mut state = self.state();
        match &mut *state {
            State::Unopened => *state = State::Abandoned,
            State::Open(stream, Some(_)) => {
                // No client knows the id of the stream, so no client can resume it.
                self.session.streams.end(*stream);
                *state = State::Abandoned;
            }
            State::Open(..) | State::Abandoned => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The message with the reply to request `id`; `None` if there is no reply.
pub(crate) fn line(id: &Id, reply: &Reply) -> Option<String> {
    match reply {
        Reply::Result(result) => Some(write::result(id, result.borrow())),
        Reply::Error(error) => Some(write::error(Some(id), error.borrow())),
        Reply::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Engine, MemoryStore};
    use outlast_wire::Raw;
    use tokio::sync::oneshot;

    use super::*;
    use crate::LocalServer;
    use crate::server::{McpServer, SessionId, local_owner};

    async fn session() -> Arc<Session> {
        let engine = Engine::builder(Arc::new(MemoryStore::new()));
        let (engine, _) = engine.open().await.unwrap();
        let backend = LocalServer::new("t".into(), "1".into());
        let server = McpServer::new(engine, Arc::new(backend), Vec::new(), None);
        Session::new(server, SessionId::random(), local_owner())
    }

    fn reply() -> Reply {
        Reply::Result(Raw::parse("{}".into()).unwrap())
    }

    #[tokio::test]
    async fn a_handler_that_sends_nothing_opens_no_stream() {
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let work: HandlerFuture = Box::pin(async { reply() });
        let mut request = ActiveRequest::of_session(Id::text("1"), work, stream.clone());
        let response = request.response().await;
        assert!(matches!(response, Response::Immediate(sent) if sent == reply()));
        assert!(matches!(*stream.state(), State::Unopened));
    }

    #[tokio::test]
    async fn the_first_message_opens_the_stream_of_the_response() {
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let (sending, (go, wait)) = (stream.clone(), oneshot::channel::<()>());
        let work: HandlerFuture = Box::pin(async move {
            sending.send("first".into());
            let _ = wait.await;
            reply()
        });
        let mut request = ActiveRequest::of_session(Id::text("1"), work, stream);
        let Response::Stream(MessageStream::Session(_, mut reader)) = request.response().await
        else {
            panic!("a message was sent");
        };
        drop(request);
        go.send(()).unwrap();
        let first = reader.receiver.recv().await.unwrap();
        assert_eq!((first.line.as_deref(), first.last), (Some("first"), false));
        let second = reader.receiver.recv().await.unwrap();
        assert!(second.last && second.line.unwrap().contains("result"));
    }

    #[tokio::test]
    async fn a_handler_runs_to_its_end_after_a_disconnect() {
        // V1-SSE-6: a disconnect is not a cancellation.
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let ((go, wait), (done, finished)) = (oneshot::channel::<()>(), oneshot::channel());
        let sending = stream.clone();
        let work: HandlerFuture = Box::pin(async move {
            let _ = wait.await;
            sending.send("lost".into());
            let _ = done.send("done");
            reply()
        });
        drop(ActiveRequest::of_session(
            Id::text("1"),
            work,
            stream.clone(),
        ));
        go.send(()).unwrap();
        assert_eq!(finished.await, Ok("done"));
        assert!(matches!(*stream.state(), State::Abandoned));
    }

    /// A modern request whose handler sends `sent` and then waits for `go`.
    fn modern_request(sent: &'static [&str]) -> (ActiveRequest, oneshot::Sender<()>) {
        let ((go, wait), (send, messages)) = (oneshot::channel::<()>(), mpsc::channel(8));
        let work: HandlerFuture = Box::pin(async move {
            for line in sent {
                let _ = send.send((*line).into()).await;
            }
            let _ = wait.await;
            reply()
        });
        (
            ActiveRequest::of_request(Id::text("1"), work, Some(messages)),
            go,
        )
    }

    async fn next(stream: &mut MessageStream) -> Option<(String, bool)> {
        let message = poll_fn(|cx| stream.poll_next(cx)).await?;
        assert!(
            message.position.is_none(),
            "V2-HTTP-7: it cannot be resumed"
        );
        Some((message.line?.to_string(), message.last))
    }

    #[tokio::test]
    async fn a_modern_reply_without_messages_is_immediate() {
        let (mut request, go) = modern_request(&[]);
        go.send(()).unwrap();
        let response = request.response().await;
        assert!(matches!(response, Response::Immediate(sent) if sent == reply()));
    }

    #[tokio::test]
    async fn a_modern_stream_carries_all_messages_and_then_the_reply() {
        let (mut request, go) = modern_request(&["first", "second"]);
        let Response::Stream(mut stream) = request.response().await else {
            panic!("a message was sent");
        };
        drop(request);
        go.send(()).unwrap();
        assert_eq!(next(&mut stream).await, Some(("first".into(), false)));
        assert_eq!(next(&mut stream).await, Some(("second".into(), false)));
        let (reply, last) = next(&mut stream).await.unwrap();
        assert!(last && reply.contains("result"), "{reply}");
        assert_eq!(next(&mut stream).await, None);
    }

    #[tokio::test]
    async fn dropping_a_modern_stream_stops_its_handler() {
        // V2-HTTP-6.
        let (mut request, go) = modern_request(&["first"]);
        let Response::Stream(stream) = request.response().await else {
            panic!("a message was sent");
        };
        drop(request);
        assert!(!go.is_closed());
        drop(stream);
        assert!(go.is_closed());
    }
}
