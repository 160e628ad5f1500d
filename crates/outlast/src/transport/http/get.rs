//! GET: opens the general stream, or resumes a stream.

use hyper::header::HeaderMap;

use super::connection::InFlightGuard;
use super::guard::{AcceptedTypes, LAST_EVENT_ID, McpHeaders};
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
use super::sse::{EventId, StreamGuards};
use crate::server::{Identity, MessageStream, Scopes, check};

impl Endpoint {
    pub(super) async fn get(
        &self,
        caller: Identity,
        headers: &HeaderMap,
        in_flight: InFlightGuard,
    ) -> Result<HttpResponse, Rejection> {
        if !AcceptedTypes::read(headers).events {
            return Err(Rejection::NotAcceptable);
        }
        check(caller.scopes(), Scopes::READ).map_err(|missing| Rejection::Scope(None, missing))?;
        McpHeaders::check_once(headers)?;
        let entry = self.session(&caller, McpHeaders::read(headers)).await?;
        let session = &entry.session;
        let permit = self.sessions.permit(&entry).ok_or(Rejection::Streams)?;
        let last = headers.get(LAST_EVENT_ID);
        let seen = last
            .and_then(|last| last.to_str().ok())
            .and_then(|last| EventId::read(last, self.epoch));
        let last_position = seen.map(|seen| (seen.stream, seen.position));
        let (attached, position) = session.listen(last_position, last.is_some());
        let stream = MessageStream::Session(session.clone(), attached);
        let events = self.events(
            stream,
            position,
            StreamGuards::of_session(permit, in_flight),
        );
        Ok(response::events(events.until(self.closing())))
    }
}
