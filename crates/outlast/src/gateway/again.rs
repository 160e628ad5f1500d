//! A task of the upstream that an earlier life of this process left: what it takes to find it again, and going on with it.

use std::sync::Arc;

use outlast_engine::engine::CallContext;
use outlast_engine::task::Handle;
use outlast_engine::{Clock, Origin, Outcome, SystemClock};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{PeerTask, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::pool::{FIRST_PAUSE, LONGEST_PAUSE};
use super::runner::refused;
use super::{Upstream, result};
use crate::back::{Reference, Unsettled};
use crate::front::Client;
use crate::transport::http_client::SavedSession;

/// What is stored with our task.
#[derive(Serialize, Deserialize)]
struct Place {
    reference: Reference,
    /// The session that the upstream's task belongs to, where it has sessions.
    session: Option<SavedSession>,
}

/// Stores what it takes to find a task of the upstream again, if that is possible.
pub(super) async fn attach(connection: &Connection, reference: &Reference, cx: &CallContext) {
    if !connection.outlives_us() {
        return;
    }
    let place = Place {
        reference: reference.clone(),
        session: connection.keep_session(),
    };
    let bytes = serde_json::to_vec(&place).expect("strings and numbers are JSON");
    if let Err(error) = cx.attach(Handle(bytes.into())).await {
        tracing::warn!(call = %cx.id(), %error, "the place of an upstream's task was not stored");
    }
}

/// Takes back what an earlier life has asked, once the upstream says that it waits for nothing.
pub(super) async fn take_back_left(connection: &Connection, task: &PeerTask, cx: &CallContext) {
    // What is stored of a task has no times: the upstream has said nothing yet.
    let is_seen = task.created.is_some() || task.updated.is_some();
    if !is_seen || task.status == Status::InputRequired {
        return;
    }
    for key in connection.shared.take_all_left(cx.id()) {
        if let Err(error) = cx.withdraw(key).await {
            // It was answered, and the answer is on its way.
            tracing::debug!(call = %cx.id(), %error, "a question was not taken back");
        }
    }
}

impl Upstream {
    /// Goes on with a task of the upstream; `None` if what was stored of it is not readable.
    pub(super) async fn go_on(
        &self,
        handle: &Handle,
        call: &Origin,
        cx: &CallContext,
        client: &Arc<Client>,
    ) -> Option<Outcome> {
        let place: Place = serde_json::from_slice(&handle.0).ok()?;
        let connection = tokio::select! {
            biased;
            connection = self.find_again(&place, cx, client) => match connection {
                Ok(connection) => connection,
                Err(error) => return Some(refused(error)),
            },
            () = cx.cancelled() => return Some(match cx.is_left() {
                true => result::unsettled(&self.name, Unsettled::Left),
                false => Outcome::Cancelled,
            }),
        };
        let under_way = connection.begin_again(cx);
        let name = Some(under_way.name());
        let execution = connection.back.resume_named(place.reference, name).ok()?;
        let ended = self.stay(&connection, &execution, call, cx, client).await;
        Some(ended.unwrap_or_else(|lost| result::unsettled(&self.name, lost)))
    }

    /// Connects to where the task is. The upstream may begin later than we do, so it is tried until the task would be
    /// forgotten there.
    async fn find_again(
        &self,
        place: &Place,
        cx: &CallContext,
        client: &Arc<Client>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match Connection::open(self, client, place.session.clone()).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            let kept = place.reference.ttl_ms.unwrap_or(FORGOTTEN);
            if SystemClock.now() > Timestamp(place.reference.created_ms).plus(kept) {
                return Err(error);
            }
            cx.status(&error.message);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// How long a task that is kept for ever is looked for, in milliseconds.
const FORGOTTEN: u64 = 24 * 3_600_000;
