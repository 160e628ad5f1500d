//! POST: one message from the client, answered by 202, JSON or a stream.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use outlast_wire::envelope::{self, Id, Limits, Message};
use outlast_wire::v2::method::{DISCOVER, LISTEN};
use outlast_wire::{Raw, method, tool, v1};

use super::connection::InFlightGuard;
use super::guard::{self, AcceptedTypes, McpHeaders};
use super::health::no_new_work;
use super::home::{AdmittedRequest, Routed};
use super::lazy_timeout::lazy_timeout;
use super::modern;
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
use super::sse::{EventStream, StreamGuards};
use crate::server::{
    ActiveRequest, HttpParts, Identity, LiveSession, MessageStream, Reply, Response, Scopes, check,
    check_notification, check_request, line,
};

impl Endpoint {
    pub(super) async fn post<B>(
        &self,
        request: AdmittedRequest<'_>,
        mut body: Pin<&mut B>,
    ) -> Result<HttpResponse, Rejection>
    where
        B: Body<Data = Bytes> + Send,
    {
        let head = request.head;
        let accepted = AcceptedTypes::read(&head.headers);
        if !accepted.json && !accepted.events {
            return Err(Rejection::NotAcceptable);
        }
        guard::check_json(&head.headers)?;
        let limits = Limits::default();
        let mcp_headers = McpHeaders::read(&head.headers);
        if !mcp_headers.is_modern() {
            McpHeaders::check_once(&head.headers)?;
        }
        // Check the session before the body is read. A3-7: a modern request has no session.
        let mut received = None;
        let entry = if mcp_headers.names_session() && !mcp_headers.is_modern() {
            if self.nodes.is_some() {
                // It may have to be forwarded.
                let bytes = self.read(body.as_mut(), &head.headers, limits.bytes);
                received = Some(bytes.await?);
            }
            let unread = Bytes::new();
            let bytes = received.as_ref().unwrap_or(&unread);
            match self.session_or_forward(&request, bytes).await? {
                Routed::Here(entry) => Some(entry),
                Routed::Answered(response) => {
                    let guard = request.in_flight;
                    return Ok(response.map(|payload| payload.with_guard(guard)));
                }
            }
        } else {
            None
        };
        let bytes = match received {
            Some(bytes) => bytes,
            None => self.read(body, &head.headers, limits.bytes).await?,
        };
        let message = Message::parse(&bytes, &limits).map_err(Rejection::Malformed)?;
        check_scopes(request.caller.scopes(), &message)?;
        if let Message::Request(message) = &message
            && !is_served_while_draining(&message.method)
            && let Some(why) = no_new_work(&self.sessions.server().engine)
        {
            return Err(Rejection::Unavailable(Some(message.id.clone()), why));
        }
        if let (None, Message::Request(message)) = (&entry, &message)
            && let Some(response) =
                Box::pin(self.forward_without_session(&request, message, &bytes)).await?
        {
            let guard = request.in_flight;
            if message.method == LISTEN {
                // It has no end of its own.
                let closing = self.closing();
                return Ok(response.map(|payload| payload.until(guard, closing)));
            }
            return Ok(response.map(|payload| payload.with_guard(guard)));
        }
        let AdmittedRequest {
            caller, in_flight, ..
        } = request;
        let meta = modern::request_meta(&message, mcp_headers, entry.is_some())?;
        match (entry, message) {
            (_, Message::Request(request)) if let Some(meta) = meta => {
                Box::pin(self.modern(caller, request, meta, head, accepted, in_flight)).await
            }
            (None, Message::Notification(_)) if mcp_headers.is_modern() => Ok(response::accepted()),
            (Some(entry), Message::Request(request)) => {
                let permit = self.sessions.permit(&entry).ok_or(Rejection::Streams)?;
                // Only a tool call can take long without a message; `tasks/result` opens its stream
                // at once.
                let hold = (request.method == tool::CALL).then_some(self.options.stream_after);
                let handling = entry
                    .session
                    .handle(request, caller.scopes(), Some(head.clone()));
                let open = StreamGuards::of_session(permit, in_flight);
                Ok(self
                    .respond(handling, hold, accepted, session_status, open)
                    .await)
            }
            (Some(entry), Message::Notification(notification)) => {
                entry.session.notification(&notification);
                Ok(response::accepted())
            }
            (Some(entry), Message::Response(response)) => {
                Box::pin(entry.session.handle_response(response)).await;
                Ok(response::accepted())
            }
            (None, Message::Request(request)) if request.method == v1::method::INITIALIZE => {
                Box::pin(self.initialize(&caller, request, head, &in_flight)).await
            }
            (None, _) => {
                mcp_headers.check_version()?;
                Err(Rejection::NoSession)
            }
        }
    }

    /// The session of a request.
    pub(super) async fn session(
        &self,
        caller: &Identity,
        mcp_headers: McpHeaders<'_>,
    ) -> Result<Arc<LiveSession>, Rejection> {
        let name = mcp_headers.session()?;
        mcp_headers.check_version()?;
        self.sessions
            .find(name, caller.owner())
            .await
            .map_err(|error| Rejection::Unavailable(None, error.to_string()))?
            .ok_or(Rejection::UnknownSession)
    }

    /// Opens a session: it is stored before the response is sent.
    async fn initialize(
        &self,
        caller: &Identity,
        request: envelope::Request<'_>,
        head: &Arc<HttpParts>,
        in_flight: &InFlightGuard,
    ) -> Result<HttpResponse, Rejection> {
        let id = request.id.clone();
        let visitor = in_flight.caller();
        // Without a token every session is a separate owner, so the limit counts the address.
        let counts_for = caller.owner().unwrap_or_else(|| visitor.owner());
        let room = self.sessions.table().reserve(counts_for).await;
        let room = room.map_err(|full| Rejection::Sessions(id.clone(), full))?;
        let session = self.sessions.create(caller.owner());
        let mut handling = session.handle(request, caller.scopes(), Some(head.clone()));
        let reply = match handling.response().await {
            Response::Immediate(reply) => reply,
            // Middleware can change the method; only then messages precede the reply.
            Response::Stream(_) => Reply::Nothing,
        };
        let http_response = reply_alone(&id, &reply, session_status);
        if session.client_info().is_none() {
            return Ok(http_response);
        }
        let name = HeaderValue::from_str(session.id.as_str())
            .expect("the names of sessions are letters and digits");
        self.claim_session(caller, session.id.as_str())
            .await
            .map_err(|error| Rejection::Unavailable(Some(id.clone()), error.to_string()))?;
        self.sessions
            .store(session, room)
            .await
            .map_err(|error| Rejection::Unavailable(Some(id), error.to_string()))?;
        let mut http_response = http_response;
        http_response.headers_mut().insert(guard::SESSION_ID, name);
        Ok(http_response)
    }

    /// Responds to a request: by JSON if nothing precedes the reply, else by a stream (V1-HTTP-7).
    /// A request that takes longer than `hold` gets a stream, too, which keeps the connection
    /// alive.
    pub(super) async fn respond(
        &self,
        mut handling: ActiveRequest,
        hold: Option<Duration>,
        accepted: AcceptedTypes,
        status: fn(&Raw) -> StatusCode,
        open: StreamGuards,
    ) -> HttpResponse {
        let response = match hold.filter(|_| accepted.events) {
            Some(hold) => lazy_timeout(hold, pin!(handling.response())).await,
            None => Some(handling.response().await),
        };
        let stream = match response {
            // Cancelled: there is no reply (V1-CANC-3).
            Some(Response::Immediate(Reply::Nothing)) => return response::accepted(),
            Some(Response::Immediate(reply)) if accepted.json => {
                return reply_alone(handling.id(), &reply, status);
            }
            Some(Response::Immediate(reply)) => handling.stream_of(reply),
            Some(Response::Stream(stream)) => stream,
            None => handling.open(),
        };
        drop(handling);
        if !accepted.events {
            // This client does not accept streams, so the other messages are dropped.
            let last = stream.last().await;
            return last.map_or_else(response::accepted, response::json);
        }
        response::events(self.events(stream, 0, open))
    }

    /// `stream` as server-sent events, after the last position that the client has received.
    pub(super) fn events(
        &self,
        stream: MessageStream,
        seen: u64,
        open: StreamGuards,
    ) -> EventStream {
        let events = EventStream::new(
            self.epoch,
            stream,
            seen,
            self.options.keep_alive_interval,
            open,
        );
        match self.options.max_stream_duration {
            Some(longest) => events.for_at_most(longest),
            None => events,
        }
    }

    /// The body, if it is not too large and arrives in time.
    async fn read<B: Body<Data = Bytes>>(
        &self,
        body: Pin<&mut B>,
        headers: &HeaderMap,
        limit: usize,
    ) -> Result<Bytes, Rejection> {
        let mcp_headers = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if mcp_headers.is_some_and(|length| length > limit as u64) {
            return Err(Rejection::TooLarge(limit));
        }
        match lazy_timeout(
            self.options.client_timeout,
            pin!(self.bodies.collect(body, limit)),
        )
        .await
        {
            Some(read) => read,
            None => Err(Rejection::Broken),
        }
    }
}

/// Rejects a message that needs a scope which the caller does not have.
pub(super) fn check_scopes(scopes: Scopes, message: &Message<'_>) -> Result<(), Rejection> {
    match message {
        Message::Request(request) => check_request(scopes, &request.method, request.params)
            .map_err(|missing| Rejection::Scope(Some(request.id.clone()), missing)),
        Message::Notification(notification) => check_notification(scopes, &notification.method)
            .map_err(|missing| Rejection::Scope(None, missing)),
        Message::Response(_) => {
            check(scopes, Scopes::ANSWER).map_err(|missing| Rejection::Scope(None, missing))
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
pub(super) fn reply_alone(id: &Id, reply: &Reply, status: fn(&Raw) -> StatusCode) -> HttpResponse {
    let status = match reply {
        Reply::Error(error) => status(error),
        Reply::Result(_) | Reply::Nothing => StatusCode::OK,
    };
    match line(id, reply) {
        Some(line) => response::text(status, line),
        None => response::accepted(),
    }
}

/// The status of an error in a session.
pub(super) fn session_status(_: &Raw) -> StatusCode {
    StatusCode::OK
}
