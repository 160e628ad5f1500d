//! GET: opens the general stream, or resumes a stream.

use bytes::Bytes;

use super::guard::{AcceptedTypes, LAST_EVENT_ID, McpHeaders};
use super::home::{AdmittedRequest, Routed};
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
use super::sse::{EventId, StreamGuards};
use crate::server::{MessageStream, Scopes, check};

impl Endpoint {
    pub(super) async fn get(
        &self,
        request: AdmittedRequest<'_>,
    ) -> Result<HttpResponse, Rejection> {
        let headers = &request.head.headers;
        if !AcceptedTypes::read(headers).events {
            return Err(Rejection::NotAcceptable);
        }
        check(request.caller.scopes(), Scopes::READ)
            .map_err(|missing| Rejection::Scope(None, missing))?;
        McpHeaders::check_once(headers)?;
        let entry = match self.session_or_forward(&request, &Bytes::new()).await? {
            Routed::Here(entry) => entry,
            Routed::Answered(response) => {
                let (guard, closing) = (request.in_flight, self.closing());
                return Ok(response.map(|payload| payload.until(guard, closing)));
            }
        };
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
            StreamGuards::of_session(permit, request.in_flight),
        );
        Ok(response::events(events.until(self.closing())))
    }
}
