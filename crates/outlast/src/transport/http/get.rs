//! GET: the client listens, in general or to the rest of a stream that broke.

use hyper::header::HeaderMap;
use outlast_wire::headers;

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{Caller, Forms, Stated};
use super::refused::Refused;
use super::server::Endpoint;
use super::sse::Seen;

impl Endpoint {
    pub(super) async fn get(
        &self,
        caller: Caller,
        headers: &HeaderMap,
        busy: Busy,
    ) -> Result<Answer, Refused> {
        if !Forms::read(headers).events {
            return Err(Refused::NotAcceptable);
        }
        let entry = self.session(&caller, Stated::read(headers)).await?;
        let session = &entry.session;
        let open = (self.sessions.permit(&entry).ok_or(Refused::Streams)?, busy);
        let last = headers.get(headers::LAST_EVENT_ID);
        let seen = last
            .and_then(|last| last.to_str().ok())
            .and_then(|last| Seen::read(last, self.life));
        let saw = seen.map(|seen| (seen.stream, seen.place));
        let (attached, place) = session.listen(saw, last.is_some());
        let events = self.events(session, attached, place, open);
        Ok(answer::events(events.until(self.closing())))
    }
}
