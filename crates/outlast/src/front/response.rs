//! The response to one request of a session: one message, or a stream.
//!
//! A handler does not know in advance which of the two its response will be. Its messages go to a [`ResponseStream`],
//! which is opened by the first of them; a handler that returns without one is answered by a single message, and the
//! session's streams are not touched.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use outlast_wire::envelope::{Id, write};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;

use super::{Attached, Kind, Reply, Session, Stopped, StreamId};

/// The response to one request.
pub(crate) enum Response {
    /// Nothing precedes the reply.
    Immediate(Reply),
    /// Messages precede the reply. All of them travel on a stream that can be resumed.
    Stream(Attached),
}

/// One request that is being handled.
///
/// Dropping it detaches the handler from its caller: the runtime runs it to its end (V1-SSE-6).
pub(crate) struct Handling {
    id: Id,
    work: Option<Work>,
    stream: Arc<ResponseStream>,
}

/// Runs a handler to its reply. Boxed because it is large and moved several times.
pub(crate) type Work = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The stream of one response.
pub(crate) struct ResponseStream {
    session: Arc<Session>,
    state: Mutex<State>,
    /// Whether the client has cancelled the request.
    cancelled: Stopped,
}

enum State {
    Unopened,
    /// The reader of the stream is here until the response takes it.
    Open(StreamId, Option<Attached>),
    /// The caller has gone away before there was a stream: what is sent is lost.
    Abandoned,
}

impl Handling {
    pub(super) fn new(id: Id, work: Work, stream: Arc<ResponseStream>) -> Self {
        let work = Some(work);
        Self { id, work, stream }
    }

    /// Runs the handler until its response is there or its first message shows that it is a stream.
    pub(crate) async fn response(&mut self) -> Response {
        poll_fn(|cx| {
            let work = self.work.as_mut();
            let polled = work.map_or(Poll::Pending, |work| work.as_mut().poll(cx));
            let opened = self.stream.take_reader();
            match (polled, opened) {
                (Poll::Pending, None) => Poll::Pending,
                (Poll::Pending, Some(reader)) => Poll::Ready(Response::Stream(reader)),
                (Poll::Ready(reply), None) => {
                    self.work = None;
                    Poll::Ready(Response::Immediate(reply))
                }
                (Poll::Ready(reply), Some(reader)) => {
                    self.work = None;
                    self.stream.finish(&self.id, &reply);
                    Poll::Ready(Response::Stream(reader))
                }
            }
        })
        .await
    }

    /// Makes the response a stream before there is anything to send on it.
    pub(crate) fn open(&self) -> Attached {
        self.stream.open();
        let reader = self.stream.take_reader();
        reader.expect("the response took no reader before")
    }

    /// A stream that carries only the reply.
    pub(crate) fn stream_of(&self, reply: &Reply) -> Attached {
        let reader = self.open();
        self.stream.finish(&self.id, reply);
        reader
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.stream.detach();
        // Without a runtime everything ends.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            let (id, stream) = (self.id.clone(), self.stream.clone());
            runtime.spawn(async move { stream.finish(&id, &work.await) });
        }
    }
}

impl ResponseStream {
    /// The stream of a response that has none yet.
    pub(super) fn unopened(session: Arc<Session>) -> Arc<Self> {
        Arc::new(Self::new(session, State::Unopened))
    }

    /// The stream of a response that travels among others on `pipe`.
    pub(super) fn on_pipe(session: Arc<Session>, pipe: StreamId) -> Arc<Self> {
        Arc::new(Self::new(session, State::Open(pipe, None)))
    }

    /// The stream of a response that no caller waits for.
    pub(super) fn abandoned(session: Arc<Session>) -> Self {
        Self::new(session, State::Abandoned)
    }

    fn new(session: Arc<Session>, state: State) -> Self {
        Self {
            session,
            state: Mutex::new(state),
            cancelled: Stopped::default(),
        }
    }

    /// The flag that is set before a cancelled request is dropped.
    pub(super) fn cancelled(&self) -> &Stopped {
        &self.cancelled
    }

    /// Opens the stream, unless it is open; `None` if its caller has gone away.
    pub(super) fn open(&self) -> Option<StreamId> {
        let mut state = self.state();
        match &*state {
            State::Open(stream, _) => Some(*stream),
            State::Abandoned => None,
            State::Unopened => {
                let reader = self.session.board.open(Kind::Answer);
                let stream = reader.stream;
                *state = State::Open(stream, Some(reader));
                Some(stream)
            }
        }
    }

    /// Sends a message that precedes the reply.
    pub(super) fn send(&self, line: String) {
        if let Some(stream) = self.open() {
            self.session.board.send(stream, line);
        }
    }

    /// Opens the stream for a caller that may have to wait long for the first message.
    pub(super) fn prime(&self) -> Option<StreamId> {
        let stream = self.open()?;
        self.session.board.prime(stream);
        Some(stream)
    }

    /// Whether the caller can still be reached: on an open stream, or because it waits for the response.
    pub(super) fn is_live(&self) -> bool {
        match &*self.state() {
            State::Unopened => true,
            State::Open(stream, _) => self.session.board.is_live(*stream),
            State::Abandoned => false,
        }
    }

    /// Sends the reply and ends the stream. A pipe goes on.
    pub(super) fn finish(&self, id: &Id, reply: &Reply) {
        let State::Open(stream, _) = *self.state() else {
            return;
        };
        match line(id, reply) {
            Some(line) => self.session.board.finish(stream, line),
            None => self.session.board.end(stream),
        }
    }

    fn take_reader(&self) -> Option<Attached> {
        match &mut *self.state() {
            State::Open(_, reader) => reader.take(),
            State::Unopened | State::Abandoned => None,
        }
    }

    /// The caller goes away, or reads the stream by itself from now on.
    fn detach(&self) {
        let mut state = self.state();
        match &mut *state {
            State::Unopened => *state = State::Abandoned,
            State::Open(stream, Some(_)) => {
                // No client knows the stream, so no client can resume it.
                self.session.board.end(*stream);
                *state = State::Abandoned;
            }
            State::Open(..) | State::Abandoned => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The message that replies to the request `id`, if there is one.
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
    use crate::front::{About, Front, SessionId, local_owner};
    use crate::tools::Tools;

    async fn session() -> Arc<Session> {
        let engine = Engine::builder(Arc::new(MemoryStore::new()));
        let (engine, _) = engine.open().await.unwrap();
        let about = About {
            name: "t".into(),
            version: "1".into(),
            instructions: None,
        };
        let front = Front::new(engine, Arc::new(Tools::default()), about);
        Session::new(front, SessionId::drawn(), local_owner())
    }

    fn reply() -> Reply {
        Reply::Result(Raw::parse("{}".into()).unwrap())
    }

    #[tokio::test]
    async fn a_handler_that_sends_nothing_opens_no_stream() {
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let work: Work = Box::pin(async { reply() });
        let mut handling = Handling::new(Id::text("1"), work, stream.clone());
        let response = handling.response().await;
        assert!(matches!(response, Response::Immediate(sent) if sent == reply()));
        assert!(matches!(*stream.state(), State::Unopened));
    }

    #[tokio::test]
    async fn a_first_message_makes_the_response_a_stream_that_ends_with_the_reply() {
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let (sending, (go, wait)) = (stream.clone(), oneshot::channel::<()>());
        let work: Work = Box::pin(async move {
            sending.send("first".into());
            let _ = wait.await;
            reply()
        });
        let mut handling = Handling::new(Id::text("1"), work, stream);
        let Response::Stream(mut reader) = handling.response().await else {
            panic!("a message was sent");
        };
        drop(handling);
        go.send(()).unwrap();
        let first = reader.receiver.recv().await.unwrap();
        assert_eq!((first.line.as_deref(), first.last), (Some("first"), false));
        let second = reader.receiver.recv().await.unwrap();
        assert!(second.last && second.line.unwrap().contains("result"));
    }

    #[tokio::test]
    async fn a_handler_whose_caller_is_gone_runs_to_its_end() {
        // V1-SSE-6: a connection that breaks off cancels nothing.
        let session = session().await;
        let stream = ResponseStream::unopened(session.clone());
        let ((go, wait), (tell, told)) = (oneshot::channel::<()>(), oneshot::channel());
        let sending = stream.clone();
        let work: Work = Box::pin(async move {
            let _ = wait.await;
            sending.send("lost".into());
            let _ = tell.send("done");
            reply()
        });
        drop(Handling::new(Id::text("1"), work, stream.clone()));
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("done"));
        assert!(matches!(*stream.state(), State::Abandoned));
    }
}
