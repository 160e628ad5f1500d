//! POST: one message from the client, answered by 202, by JSON or by a stream.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use outlast_wire::envelope::{self, Limits, Message};
use outlast_wire::v1;

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{self, Caller, Forms, Stated};
use super::modern;
use super::outliving::Outliving;
use super::refused::Refused;
use super::server::Endpoint;
use super::sessions::{Entry, Permit};
use super::sse::Events;
use super::within::within;
use crate::front::{Attached, HttpParts, Kind, Out, Session, StreamId};

impl Endpoint {
    pub(super) async fn post(
        &self,
        caller: Caller,
        head: &Arc<HttpParts>,
        body: &mut Incoming,
        busy: Busy,
    ) -> Result<Answer, Refused> {
        let forms = Forms::read(&head.headers);
        if !forms.json && !forms.events {
            return Err(Refused::NotAcceptable);
        }
        guard::check_json(&head.headers)?;
        let limits = Limits::default();
        let stated = Stated::read(&head.headers);
        // A stranger's body is not even read. A3-7: a modern request belongs to no session.
        let entry = match stated.names_session() && !stated.is_modern() {
            true => Some(self.session(&caller, stated).await?),
            false => None,
        };
        let bytes = self.read(body, &head.headers, limits.bytes).await?;
        let message = Message::parse(&bytes, &limits).map_err(Refused::Malformed)?;
        let said = modern::said(&message, stated, entry.is_some())?;
        match (entry, message) {
            (_, Message::Request(request)) if let Some(said) = said => {
                Box::pin(self.modern(caller, request, said, head, forms, busy)).await
            }
            (None, Message::Notification(_)) if stated.is_modern() => Ok(answer::accepted()),
            (Some(entry), Message::Request(request)) => {
                let permit = self.sessions.permit(&entry).ok_or(Refused::Streams)?;
                if forms.json
                    && let Some(line) = entry.session.at_once(&request).await
                {
                    return Ok(answer::text(StatusCode::OK, line));
                }
                // In a place of its own: most requests are looks, and were answered above.
                Box::pin(self.work_on(&entry, request, head, forms, (permit, busy))).await
            }
            (Some(entry), message) => {
                // No request, and so no work.
                let _ = Box::pin(entry.session.receive(message, NOWHERE, None)).await;
                Ok(answer::accepted())
            }
            (None, Message::Request(request)) if request.method == v1::method::INITIALIZE => {
                Box::pin(self.initialize(&caller, request, head)).await
            }
            (None, _) => {
                stated.check_version()?;
                Err(Refused::NoSession)
            }
        }
    }

    /// The session that a request names.
    pub(super) async fn session(
        &self,
        caller: &Caller,
        stated: Stated<'_>,
    ) -> Result<Arc<Entry>, Refused> {
        let name = stated.session()?;
        stated.check_version()?;
        self.sessions
            .find(name, caller)
            .await
            .map_err(|error| Refused::Unavailable(None, error.to_string()))?
            .ok_or(Refused::UnknownSession)
    }

    /// A request that opens a session: stored, then answered.
    async fn initialize(
        &self,
        caller: &Caller,
        request: envelope::Request<'_>,
        head: &Arc<HttpParts>,
    ) -> Result<Answer, Refused> {
        let id = request.id.clone();
        if !self.sessions.have_room().await {
            return Err(Refused::Sessions(id));
        }
        let session = self.sessions.begin(caller);
        let mut attached = session.board.open(Kind::Answer);
        let work = session
            .receive(
                Message::Request(request),
                attached.stream,
                Some(head.clone()),
            )
            .await;
        if let Some(work) = work {
            work.await;
        }
        let Some(line) = attached.receiver.recv().await.and_then(|out| out.line) else {
            return Ok(answer::accepted());
        };
        session.board.end(attached.stream);
        if session.peer().is_none() {
            return Ok(answer::json(line));
        }
        let name = HeaderValue::from_str(session.id.as_str())
            .expect("the names of sessions are letters and digits");
        self.sessions
            .keep(session)
            .await
            .map_err(|error| Refused::Unavailable(Some(id), error.to_string()))?;
        let mut answer = answer::json(line);
        answer.headers_mut().insert(guard::SESSION_ID, name);
        Ok(answer)
    }

    /// Does what takes more than a look: JSON if the first thing to say is the last, else a stream (V1-HTTP-7).
    async fn work_on(
        &self,
        entry: &Entry,
        request: envelope::Request<'_>,
        head: &Arc<HttpParts>,
        forms: Forms,
        (permit, busy): (Permit, Busy),
    ) -> Result<Answer, Refused> {
        let session = &entry.session;
        // Only a tool takes long without a word; a wait says at once that it is one.
        let may_hold = request.method == outlast_wire::tool::CALL;
        let mut open = Unnamed::new(session);
        let stream = open.attached().stream;
        let work = session
            .receive(Message::Request(request), stream, Some(head.clone()))
            .await;
        // What goes on without its caller must not end with the connection (V1-SSE-6).
        let mut work = Outliving::new(work);
        let first = work.beside(open.attached().receiver.recv());
        let first = match may_hold && forms.events {
            true => within(self.options.hold, pin!(first)).await,
            false => Some(first.await),
        };
        drop(work);
        match first {
            Some(Some(Out {
                line: Some(line),
                last: true,
                ..
            })) if forms.json => Ok(answer::json(line)),
            Some(Some(first)) if forms.events => {
                let events = self.events(session, open.named(), 0, (permit, busy));
                Ok(answer::events(events.beginning_with(first)))
            }
            Some(Some(first)) => Ok(last_of(open.attached(), first).await),
            // Cancelled: there is nothing to say (V1-CANC-3).
            Some(None) => Ok(answer::accepted()),
            None => {
                let events = self.events(session, open.named(), 0, (permit, busy));
                Ok(answer::events(events))
            }
        }
    }

    pub(super) fn events(
        &self,
        session: &Arc<Session>,
        attached: Attached,
        seen: u64,
        open: (Permit, Busy),
    ) -> Events {
        let keep_alive = self.options.keep_alive;
        let events = Events::new(self.life, session, attached, seen, keep_alive, open);
        match self.options.longest_stream {
            Some(longest) => events.for_at_most(longest),
            None => events,
        }
    }

    /// The body, if it is not too large and arrives in time.
    async fn read(
        &self,
        body: &mut Incoming,
        headers: &HeaderMap,
        limit: usize,
    ) -> Result<Bytes, Refused> {
        let stated = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if stated.is_some_and(|length| length > limit as u64) {
            return Err(Refused::TooLarge(limit));
        }
        match within(self.options.patience, pin!(collect(body, limit))).await {
            Some(read) => read,
            None => Err(Refused::Broken),
        }
    }
}

/// A stream that no client knows by name yet: nobody can come back for it.
struct Unnamed<'a> {
    session: &'a Session,
    attached: Option<Attached>,
}

impl<'a> Unnamed<'a> {
    fn new(session: &'a Session) -> Self {
        Self {
            session,
            attached: Some(session.board.open(Kind::Answer)),
        }
    }

    fn attached(&mut self) -> &mut Attached {
        self.attached.as_mut().expect("it is taken only at the end")
    }

    /// The stream, whose name a client is about to learn.
    fn named(mut self) -> Attached {
        self.attached.take().expect("it is taken only at the end")
    }
}

impl Drop for Unnamed<'_> {
    fn drop(&mut self) {
        if let Some(attached) = &self.attached {
            self.session.board.end(attached.stream);
        }
    }
}

/// The last message of a stream as JSON, for one who takes no streams: the rest is lost on it.
async fn last_of(attached: &mut Attached, mut out: Out) -> Answer {
    while !out.last {
        match attached.receiver.recv().await {
            Some(next) => out = next,
            None => return answer::accepted(),
        }
    }
    match out.line {
        Some(line) => answer::json(line),
        None => answer::accepted(),
    }
}

async fn collect(body: &mut Incoming, limit: usize) -> Result<Bytes, Refused> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let data = match frame {
            None => break,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue,
            },
            Some(Err(_)) => return Err(Refused::Broken),
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(Refused::TooLarge(limit));
        }
        // One piece is the rule and is not copied.
        match first.is_empty() && all.is_empty() {
            true => first = data,
            false => {
                if all.is_empty() {
                    all.extend_from_slice(&std::mem::take(&mut first));
                }
                all.extend_from_slice(&data);
            }
        }
    }
    Ok(match all.is_empty() {
        true => first,
        false => all.freeze(),
    })
}

/// The stream of messages that are not answered.
const NOWHERE: StreamId = StreamId(0);
