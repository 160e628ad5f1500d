//! GET: opens the general stream, or resumes a stream.

use hyper::header::HeaderMap;

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{Forms, Identity, LAST_EVENT_ID, Stated};
use super::refused::Refused;
use super::server::Endpoint;
use super::sse::{Open, Seen};
use crate::server::MessageStream;

impl Endpoint {
    pub(super) async fn get(
        &self,
        caller: Identity,
        headers: &HeaderMap,
        busy: Busy,
    ) -> Result<Answer, Refused> {
        if !Forms::read(headers).events {
            return Err(Refused::NotAcceptable);
        }
        Stated::check_once(headers)?;
        let entry = self.session(&caller, Stated::read(headers)).await?;
        let session = &entry.session;
        let permit = self.sessions.permit(&entry).ok_or(Refused::Streams)?;
        let last = headers.get(LAST_EVENT_ID);
        let seen = last
            .and_then(|last| last.to_str().ok())
            .and_then(|last| Seen::read(last, self.life));
        let saw = seen.map(|seen| (seen.stream, seen.place));
        let (attached, place) = session.listen(saw, last.is_some());
        let stream = MessageStream::Session(session.clone(), attached);
        let events = self.events(stream, place, Open::of_session(permit, busy));
        Ok(answer::events(events.until(self.closing())))
    }
}
