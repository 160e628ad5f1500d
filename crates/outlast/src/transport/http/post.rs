//! POST: one message from the client, answered by 202, JSON or a stream.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use outlast_wire::envelope::{self, Id, Limits, Message};
use outlast_wire::v2::method::DISCOVER;
use outlast_wire::{Raw, method, tool, v1};

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{self, Forms, Identity, Stated};
use super::health::no_new_work;
use super::modern;
use super::refused::Refused;
use super::server::Endpoint;
use super::sse::{Events, Open};
use super::within::within;
use crate::server::{ActiveRequest, HttpParts, LiveSession, MessageStream, Reply, Response, line};

impl Endpoint {
    pub(super) async fn post(
        &self,
        caller: Identity,
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
        if !stated.is_modern() {
            Stated::check_once(&head.headers)?;
        }
        // Check the session before the body is read. A3-7: a modern request has no session.
        let entry = if stated.names_session() && !stated.is_modern() {
            Some(self.session(&caller, stated).await?)
        } else {
            None
        };
        let bytes = self.read(body, &head.headers, limits.bytes).await?;
        let message = Message::parse(&bytes, &limits).map_err(Refused::Malformed)?;
        if let Message::Request(request) = &message
            && !is_served_while_draining(&request.method)
            && let Some(why) = no_new_work(&self.sessions.server().engine)
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
                // Only a tool call can take long without a message; `tasks/result` opens its stream
                // at once.
                let hold = (request.method == tool::CALL).then_some(self.options.hold);
                let handling = entry.session.handle(request, Some(head.clone()));
                let open = Open::of_session(permit, busy);
                Ok(self
                    .respond(handling, hold, forms, session_status, open)
                    .await)
            }
            (Some(entry), Message::Notification(notification)) => {
                entry.session.notification(&notification);
                Ok(answer::accepted())
            }
            (Some(entry), Message::Response(response)) => {
                Box::pin(entry.session.handle_response(response)).await;
                Ok(answer::accepted())
            }
            (None, Message::Request(request)) if request.method == v1::method::INITIALIZE => {
                Box::pin(self.initialize(&caller, request, head, &busy)).await
            }
            (None, _) => {
                stated.check_version()?;
                Err(Refused::NoSession)
            }
        }
    }

    /// The session of a request.
    pub(super) async fn session(
        &self,
        caller: &Identity,
        stated: Stated<'_>,
    ) -> Result<Arc<LiveSession>, Refused> {
        let name = stated.session()?;
        stated.check_version()?;
        self.sessions
            .find(name, caller.0.as_ref())
            .await
            .map_err(|error| Refused::Unavailable(None, error.to_string()))?
            .ok_or(Refused::UnknownSession)
    }

    /// Opens a session: it is stored before the response is sent.
    async fn initialize(
        &self,
        caller: &Identity,
        request: envelope::Request<'_>,
        head: &Arc<HttpParts>,
        busy: &Busy,
    ) -> Result<Answer, Refused> {
        let id = request.id.clone();
        let visitor = busy.caller();
        // Without a token every session is a separate owner, so the limit counts the address.
        let counts_for = caller.0.as_ref().unwrap_or_else(|| visitor.owner());
        let room = self.sessions.table().reserve(counts_for).await;
        let room = room.map_err(|full| Refused::Sessions(id.clone(), full))?;
        let session = self.sessions.create(caller.0.as_ref());
        let mut handling = session.handle(request, Some(head.clone()));
        let reply = match handling.response().await {
            Response::Immediate(reply) => reply,
            // Middleware can change the method; only then messages precede the reply.
            Response::Stream(_) => Reply::Nothing,
        };
        let answer = reply_alone(&id, &reply, session_status);
        if session.client_info().is_none() {
            return Ok(answer);
        }
        let name = HeaderValue::from_str(session.id.as_str())
            .expect("the names of sessions are letters and digits");
        self.sessions
            .store(session, room)
            .await
            .map_err(|error| Refused::Unavailable(Some(id), error.to_string()))?;
        let mut answer = answer;
        answer.headers_mut().insert(guard::SESSION_ID, name);
        Ok(answer)
    }

    /// Responds to a request: by JSON if nothing precedes the reply, else by a stream (V1-HTTP-7).
    /// A request that takes longer than `hold` gets a stream, too, which keeps the connection
    /// alive.
    pub(super) async fn respond(
        &self,
        mut handling: ActiveRequest,
        hold: Option<Duration>,
        forms: Forms,
        status: fn(&Raw) -> StatusCode,
        open: Open,
    ) -> Answer {
        let response = match hold.filter(|_| forms.events) {
            Some(hold) => within(hold, pin!(handling.response())).await,
            None => Some(handling.response().await),
        };
        let stream = match response {
            // Cancelled: there is no reply (V1-CANC-3).
            Some(Response::Immediate(Reply::Nothing)) => return answer::accepted(),
            Some(Response::Immediate(reply)) if forms.json => {
                return reply_alone(handling.id(), &reply, status);
            }
            Some(Response::Immediate(reply)) => handling.stream_of(reply),
            Some(Response::Stream(stream)) => stream,
            None => handling.open(),
        };
        drop(handling);
        if !forms.events {
            // This client does not accept streams, so the other messages are dropped.
            let last = stream.last().await;
            return last.map_or_else(answer::accepted, answer::json);
        }
        answer::events(self.events(stream, 0, open))
    }

    /// `stream` as server-sent events, after the last position that the client has received.
    pub(super) fn events(&self, stream: MessageStream, seen: u64, open: Open) -> Events {
        let events = Events::new(self.life, stream, seen, self.options.keep_alive, open);
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
        match within(
            self.options.patience,
            pin!(self.bodies.collect(body, limit)),
        )
        .await
        {
            Some(read) => read,
            None => Err(Refused::Broken),
        }
    }
}

/// Whether a request concerns existing tasks, or is needed for such a request: it is served until
/// the end of the shutdown.
fn is_served_while_draining(method: &str) -> bool {
    method.starts_with("tasks/")
        || [v1::method::INITIALIZE, DISCOVER, method::PING].contains(&method)
}

/// A reply as one JSON text. `status` is the status of an error.
fn reply_alone(id: &Id, reply: &Reply, status: fn(&Raw) -> StatusCode) -> Answer {
    let status = match reply {
        Reply::Error(error) => status(error),
        Reply::Result(_) | Reply::Nothing => StatusCode::OK,
    };
    match line(id, reply) {
        Some(line) => answer::text(status, line),
        None => answer::accepted(),
    }
}

/// The status of an error in a session.
fn session_status(_: &Raw) -> StatusCode {
    StatusCode::OK
}
