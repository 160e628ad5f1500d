//! POST: one message from the client, answered by 202, by JSON or by a stream.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use outlast_wire::envelope::{self, Id, Limits, Message};
use outlast_wire::v1;
use outlast_wire::v2::method::DISCOVER;

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{self, Caller, Forms, Stated};
use super::health::no_new_work;
use super::modern;
use super::refused::Refused;
use super::server::Endpoint;
use super::sse::Events;
use super::within::within;
use crate::front::{Attached, Entry, HttpParts, Permit, Reply, Response, Session, line};

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
        if let Message::Request(request) = &message
            && !is_served_while_draining(&request.method)
            && let Some(why) = no_new_work(&self.sessions.front().engine)
        {
            return Err(Refused::Unavailable(Some(request.id.clone()), why));
        }
        let said = modern::said(&message, stated, entry.is_some())?;
        match (entry, message) {
            (_, Message::Request(request)) if let Some(said) = said => {
                Box::pin(self.modern(caller, request, said, head, forms, busy)).await
            }
            (None, Message::Notification(_)) if stated.is_modern() => Ok(answer::accepted()),
            (Some(entry), Message::Request(request)) => {
                let permit = self.sessions.permit(&entry).ok_or(Refused::Streams)?;
                self.respond(&entry, request, head, forms, (permit, busy))
                    .await
            }
            (Some(entry), Message::Notification(notification)) => {
                entry.session.notification(&notification);
                Ok(answer::accepted())
            }
            (Some(entry), Message::Response(response)) => {
                Box::pin(entry.session.answer(response)).await;
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
            .find(name, caller.0.as_ref())
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
        let session = self.sessions.begin(caller.0.as_ref());
        let mut handling = session.handle(request, Some(head.clone()));
        let reply = match handling.response().await {
            Response::Immediate(reply) => reply,
            // Only another method, put there by a filter, has anything to send first.
            Response::Stream(_) => Reply::Nothing,
        };
        let answer = reply_alone(&id, &reply);
        if session.peer().is_none() {
            return Ok(answer);
        }
        let name = HeaderValue::from_str(session.id.as_str())
            .expect("the names of sessions are letters and digits");
        self.sessions
            .keep(session)
            .await
            .map_err(|error| Refused::Unavailable(Some(id), error.to_string()))?;
        let mut answer = answer;
        answer.headers_mut().insert(guard::SESSION_ID, name);
        Ok(answer)
    }

    /// Answers a request of a session: JSON if nothing precedes the reply, else a stream (V1-HTTP-7).
    async fn respond(
        &self,
        entry: &Entry,
        request: envelope::Request<'_>,
        head: &Arc<HttpParts>,
        forms: Forms,
        open: (Permit, Busy),
    ) -> Result<Answer, Refused> {
        let session = &entry.session;
        let id = request.id.clone();
        // Only a tool takes long without a message; `tasks/result` opens its stream at once.
        let may_hold = request.method == outlast_wire::tool::CALL;
        let mut handling = session.handle(request, Some(head.clone()));
        let response = match may_hold && forms.events {
            true => within(self.options.hold, pin!(handling.response())).await,
            false => Some(handling.response().await),
        };
        let mut reader = match response {
            // Cancelled: there is no reply (V1-CANC-3).
            Some(Response::Immediate(Reply::Nothing)) => return Ok(answer::accepted()),
            Some(Response::Immediate(reply)) if forms.json => return Ok(reply_alone(&id, &reply)),
            Some(Response::Immediate(reply)) => handling.stream_of(&reply),
            Some(Response::Stream(reader)) => reader,
            // It takes long: the open stream shows that the connection lives.
            None => handling.open(),
        };
        drop(handling);
        if !forms.events {
            return Ok(last_of(session, &mut reader).await);
        }
        let first = reader.receiver.try_recv().ok();
        let events = self.events(session, reader, 0, open);
        Ok(answer::events(match first {
            Some(first) => events.beginning_with(first),
            None => events,
        }))
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

/// Whether a request is about a task that exists, or leads to one and needs no work itself: it is served to the end.
fn is_served_while_draining(method: &str) -> bool {
    method.starts_with("tasks/") || [v1::method::INITIALIZE, DISCOVER, "ping"].contains(&method)
}

/// The last message of a stream as JSON, for a client that takes no streams: it never sees the other messages.
async fn last_of(session: &Session, reader: &mut Attached) -> Answer {
    let mut last = None;
    while let Some(out) = reader.receiver.recv().await {
        if out.last {
            last = out.line;
            break;
        }
    }
    session.board.end(reader.stream);
    last.map_or_else(answer::accepted, answer::json)
}

/// A reply as one JSON text.
fn reply_alone(id: &Id, reply: &Reply) -> Answer {
    match line(id, reply) {
        Some(line) => answer::text(StatusCode::OK, line),
        None => answer::accepted(),
    }
}

pub(super) async fn collect(body: &mut Incoming, limit: usize) -> Result<Bytes, Refused> {
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
