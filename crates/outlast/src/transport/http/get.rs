//! GET: the client listens, in general or to the rest of a stream that broke.

use std::sync::Arc;

use hyper::header::HeaderMap;
use outlast_wire::envelope::write;
use outlast_wire::{headers, v1};

use super::answer::{self, Answer};
use super::connection::Busy;
use super::guard::{Caller, Forms, Stated};
use super::refused::Refused;
use super::server::Endpoint;
use super::sse::Seen;
use crate::front::{Kind, Session, StreamId};

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
        let resumed = seen.and_then(|seen| {
            let attached = session.board.resume(seen.stream, seen.place)?;
            Some((attached, seen.place))
        });
        let lost = last.is_some() && resumed.is_none();
        let (attached, place) = resumed.unwrap_or_else(|| (session.board.open(Kind::General), 0));
        let stream = attached.stream;
        let events = self.events(session, attached, place, open);
        let session = session.clone();
        tokio::spawn(async move {
            // What was on the stream that is gone nobody knows: the client learns how things stand.
            if lost {
                show_open_tasks(&session, stream).await;
            }
            session.listens().await;
        });
        Ok(answer::events(events.until(self.closing())))
    }
}

/// Tells the status of every task of the session's owner that has not ended.
async fn show_open_tasks(session: &Arc<Session>, stream: StreamId) {
    if !session.peer().is_some_and(|peer| peer.has_tasks()) {
        return;
    }
    let mut cursor = None;
    loop {
        let engine = &session.front.engine;
        let page = engine.page(&session.owner, cursor.as_deref(), PAGE).await;
        let Ok(page) = page else { return };
        for task in page.tasks.iter().filter(|task| task.ending().is_none()) {
            let text = task.id().text();
            let params = v1::task(&task.view(&text));
            let line = write::notification(v1::method::STATUS, Some(params.borrow()));
            session.board.send(stream, line);
        }
        cursor = page.next;
        if cursor.is_none() {
            return;
        }
    }
}

/// How many tasks are looked at in one go.
const PAGE: usize = 100;
