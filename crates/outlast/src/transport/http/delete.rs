//! DELETE: the client ends its session.
//!
//! Tasks of a principal stay: its other sessions reach them (V1-SESS-8, A1-20). Tasks that only this session
//! could reach are cancelled (BD-22).

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::answer::{self, Answer};
use super::guard::{Caller, Stated};
use super::refused::Refused;
use super::server::Endpoint;
use super::stored::is_session;
use crate::front::Session;

impl Endpoint {
    pub(super) async fn delete(
        &self,
        caller: Caller,
        headers: &HeaderMap,
    ) -> Result<Answer, Refused> {
        let entry = self.session(&caller, Stated::read(headers)).await?;
        self.sessions
            .remove(&entry)
            .await
            .map_err(|error| Refused::Unavailable(None, error.to_string()))?;
        let session = entry.session.clone();
        // The caller may hang up; what is left to do is done.
        tokio::spawn(async move {
            if is_session(&session.owner) {
                cancel_tasks(&session).await;
            }
            // Nobody is left to hear what the rest would say.
            session.cancel_all();
            session.board.close();
        });
        Ok(answer::empty(StatusCode::NO_CONTENT))
    }
}

async fn cancel_tasks(session: &Arc<Session>) {
    let engine = &session.front.engine;
    let mut cursor = None;
    while let Ok(page) = engine.page(&session.owner, cursor.as_deref(), PAGE).await {
        for task in page.tasks.iter().filter(|task| task.ending().is_none()) {
            // One that has ended meanwhile needs nothing.
            let _ = engine.cancel_now(&session.scope(), task.id()).await;
        }
        cursor = page.next;
        if cursor.is_none() {
            return;
        }
    }
}

/// How many tasks are looked at in one go.
const PAGE: usize = 100;
