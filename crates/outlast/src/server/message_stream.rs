//! The messages of a response that is a stream; the reply is the last one.
//!
//! A stream of a session can be resumed, and its handler runs separately. The stream of a modern
//! request cannot be resumed (V2-HTTP-7): it contains its handler, and dropping the stream stops
//! the handler (V2-HTTP-6).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use outlast_wire::envelope::Id;
use tokio::sync::mpsc;

use super::response::{HandlerFuture, line};
use super::{Reply, Session, StreamId, StreamReader};

/// A stream of messages.
pub(crate) enum MessageStream {
    /// A stream of a session. Holds the session while it is read.
    Session(Arc<Session>, StreamReader),
    /// The stream of one modern request.
    Request(Box<RequestStream>),
}

/// The next message of a stream.
pub(crate) struct StreamMessage {
    /// The stream and the position on it, if the stream can be resumed.
    pub(crate) position: Option<(StreamId, u64)>,
    /// The message on one line; `None` if the event only opens the stream.
    pub(crate) line: Option<Arc<str>>,
    /// Whether no message follows.
    pub(crate) last: bool,
}

/// The stream of one modern request, with its handler.
pub(crate) struct RequestStream {
    pub(super) id: Id,
    /// The handler, until it returns.
    pub(super) work: Option<HandlerFuture>,
    /// The first message, if it was received before the stream existed.
    pub(super) first: Option<Arc<str>>,
    /// What the handler sends before its reply.
    pub(super) messages: Option<mpsc::Receiver<Arc<str>>>,
    /// The reply, from the return of the handler until it is sent.
    pub(super) reply: Option<Reply>,
}

impl MessageStream {
    /// The next message; `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamMessage>> {
        match self {
            Self::Session(_, reader) => reader.receiver.poll_recv(cx).map(|event| {
                event.map(|event| StreamMessage {
                    position: Some(event.position),
                    line: event.line,
                    last: event.last,
                })
            }),
            Self::Request(stream) => stream.poll_next(cx),
        }
    }

    /// The reply, for a caller that takes no other message; `None` if the request was cancelled.
    pub(crate) async fn last(mut self) -> Option<Arc<str>> {
        let last = loop {
            match poll_fn(|cx| self.poll_next(cx)).await {
                Some(message) if message.last => break message.line,
                Some(_) => {}
                None => break None,
            }
        };
        if let Self::Session(session, reader) = &self {
            session.streams.end(reader.stream);
        }
        last
    }
}

impl RequestStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamMessage>> {
        loop {
            if let Poll::Ready(Some(line)) = self.poll_message(cx) {
                return Poll::Ready(Some(StreamMessage::new(line, false)));
            }
            if let Some(reply) = self.reply.take() {
                let line = line(&self.id, &reply);
                return Poll::Ready(line.map(|line| StreamMessage::new(line.into(), true)));
            }
            let Some(work) = &mut self.work else {
                return Poll::Ready(None);
            };
            match work.as_mut().poll(cx) {
                // Messages of the handler precede its reply.
                Poll::Ready(reply) => (self.reply, self.work) = (Some(reply), None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<str>>> {
        match (self.first.take(), &mut self.messages) {
            (Some(first), _) => Poll::Ready(Some(first)),
            (None, Some(messages)) => messages.poll_recv(cx),
            (None, None) => Poll::Ready(None),
        }
    }
}

impl StreamMessage {
    fn new(line: Arc<str>, last: bool) -> Self {
        Self {
            position: None,
            line: Some(line),
            last,
        }
    }
}
