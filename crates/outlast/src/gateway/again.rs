//! A task of the upstream that an earlier life of this process left, or questions that it was to answer first: what it takes to
//! find them again, and going on.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EngineError};
use outlast_engine::task::Handle;
use outlast_engine::{Clock, ErrorCode, Origin, Outcome, Retry, SystemClock};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v2::{Ask, InputRequired};
use outlast_wire::{PeerTask, Raw, Status, Timestamp, codes};
use serde::{Deserialize, Serialize};

use super::connection::{Connection, Left};
use super::follow::ATTEMPTS;
use super::pool::RESTARTS;
use super::prepared::Prepared;
use super::runner::refused;
use super::{Upstream, result};
use crate::back::{Call, Fault, Reference, RoundKeeper, Unsettled};
use crate::front::Client;
use crate::transport::http_client::SavedSession;

/// What is stored with our task. With neither a reference nor a round, nobody knows how far the call came.
#[derive(Default, Serialize, Deserialize)]
struct Place {
    /// The upstream's task.
    reference: Option<Reference>,
    /// The session that the upstream's task belongs to, where it has sessions.
    session: Option<SavedSession>,
    /// What the upstream wants to know before it begins.
    #[serde(default)]
    round: Option<Asked>,
}

/// A round of questions of a modern upstream.
#[derive(Serialize, Deserialize)]
struct Asked {
    /// Each by its name: the method and the params.
    asks: Vec<(String, String, Option<Raw>)>,
    state: Option<String>,
}

/// In which round of questions a call is made.
pub(super) enum Round<'a> {
    /// There are none.
    None,
    First(&'a CallContext),
    /// The one in which an earlier life left it.
    Left(&'a CallContext, InputRequired),
}

impl Round<'_> {
    /// A call whose rounds are stored.
    pub(super) fn told_of(self, call: Call) -> Call {
        match self {
            Self::None => call,
            Self::First(cx) => call.keeping(Arc::new(Rounds(cx.clone()))),
            Self::Left(cx, round) => call.keeping(Arc::new(Rounds(cx.clone()))).in_round(round),
        }
    }
}

/// Stores rounds of questions, so that the next life finds them.
struct Rounds(CallContext);

impl Debug for Rounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Rounds({})", self.0.id())
    }
}

#[async_trait]
impl RoundKeeper for Rounds {
    async fn asked(&self, round: &InputRequired) {
        let asks = round.asks.iter().cloned();
        let asks = asks.map(|ask| (ask.key, ask.method, ask.params));
        let place = Place {
            round: Some(Asked {
                asks: asks.collect(),
                state: round.state.clone(),
            }),
            ..Place::default()
        };
        if let Err(error) = place.store(&self.0).await {
            tracing::warn!(call = %self.0.id(), %error, "a round of questions was not stored");
        }
    }

    async fn answered(&self) -> Result<(), Fault> {
        // Whatever is stored must not be sent a second time.
        let stored = Place::default().store(&self.0).await;
        stored.map_err(|error| Fault::Unrecorded(error.to_string()))
    }
}

impl Place {
    async fn store(&self, cx: &CallContext) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(self).expect("strings and numbers are JSON");
        cx.attach(Handle(bytes.into())).await
    }

    /// Until when the upstream is looked for.
    fn kept_until(&self) -> Timestamp {
        let (begun, ttl) = match &self.reference {
            Some(reference) => (Timestamp(reference.created_ms), reference.ttl_ms),
            None => (SystemClock.now(), None),
        };
        begun.plus(ttl.unwrap_or(FORGOTTEN))
    }
}

/// Stores what it takes to find a task of the upstream again, if that is possible.
pub(super) async fn attach(connection: &Connection, reference: &Reference, cx: &CallContext) {
    if !connection.outlives_us() {
        return;
    }
    let place = Place {
        reference: Some(reference.clone()),
        session: connection.keep_session(),
        round: None,
    };
    if let Err(error) = place.store(cx).await {
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
    /// Goes on with a task of the upstream, or with its questions; `None` if nobody knows how far it came.
    pub(super) async fn go_on(
        &self,
        handle: &Handle,
        call: &Origin,
        cx: &CallContext,
        prepared: Prepared,
    ) -> Option<Outcome> {
        let client = &prepared.client;
        let place: Place = serde_json::from_slice(&handle.0).ok()?;
        if place.reference.is_none() && place.round.is_none() {
            let again = call.retry == Retry::Rerun && cx.attempt().0 <= ATTEMPTS;
            return match again {
                true => Some(self.call(call, cx, prepared).await),
                false => None,
            };
        }
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
        let under_way = connection.begin(cx);
        let in_round = place.reference.is_none();
        let mut owner = self.owner(&connection, call, cx, client);
        let ended = match (place.reference, place.round) {
            (Some(reference), _) => {
                let name = under_way.name();
                connection
                    .back
                    .drive_task(reference, name, &mut owner)
                    .await
            }
            (None, Some(asked)) => {
                let round = Round::Left(cx, asked.into());
                let made = self.make(&connection, &under_way, call, None, client, round);
                match made.check().await {
                    Ok(made) => made.drive(&mut owner).await,
                    Err(refusal) => {
                        return Some(result::internal(format!("{}: {refusal}", self.name)));
                    }
                }
            }
            (None, None) => return None,
        };
        match owner.ended(ended, client) {
            // It is another process, which does not know what the one before it has asked.
            Ok(Outcome::Error(_, ErrorCode(codes::INVALID_PARAMS), why)) if in_round => {
                tracing::info!(upstream = &*self.name, call = %cx.id(), ?why, "the upstream has forgotten what it asked");
                match call.retry {
                    Retry::Rerun => Some(self.call(call, cx, prepared).await),
                    Retry::Never => None,
                }
            }
            Ok(outcome) => Some(outcome),
            Err(lost) => Some(result::unsettled(&self.name, lost)),
        }
    }

    /// Connects to where the task is. The upstream may begin later than we do, so it is tried until the task would be
    /// forgotten there.
    async fn find_again(
        &self,
        place: &Place,
        cx: &CallContext,
        client: &Arc<Client>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let (mut backoff, until) = (RESTARTS, place.kept_until());
        loop {
            let left = Left {
                call: cx.clone(),
                session: place.session.clone(),
            };
            let error = match self.connection_again(client, left).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if SystemClock.now() > until {
                return Err(error);
            }
            cx.status(&error.message);
            tokio::time::sleep(backoff.pause()).await;
        }
    }
}

impl From<Asked> for InputRequired {
    fn from(asked: Asked) -> Self {
        let ask = |(key, method, params)| Ask {
            key,
            method,
            params,
        };
        Self {
            asks: asked.asks.into_iter().map(ask).collect(),
            state: asked.state,
        }
    }
}

/// How long a task that is kept for ever is looked for, in milliseconds.
const FORGOTTEN: u64 = 24 * 3_600_000;
