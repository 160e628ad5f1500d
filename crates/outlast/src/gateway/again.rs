//! A task of the upstream that an earlier life of this process left: what it takes to find it again, and going on with it.

use std::sync::Arc;

use outlast_engine::engine::CallContext;
use outlast_engine::task::Handle;
use outlast_engine::{Origin, Outcome};
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::runner::refused;
use super::{Upstream, result};
use crate::back::Reference;
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
        // Whatever was asked is asked again by whoever still wants to know.
        for key in cx.left_open() {
            if let Err(error) = cx.withdraw(key).await {
                tracing::info!(call = %cx.id(), %error, "a question was not taken back");
            }
        }
        let connection = match Connection::open(self, client, place.session).await {
            Ok(connection) => connection,
            Err(error) => return Some(refused(error)),
        };
        let under_way = connection.begin(cx);
        let name = Some(under_way.name());
        let execution = connection.back.resume_named(place.reference, name).ok()?;
        let ended = self.stay(&connection, &execution, call, cx, client).await;
        Some(ended.unwrap_or_else(|lost| result::unsettled(&self.name, lost)))
    }
}
