//! Resumes a call of a previous run of this process: a task of the upstream, or input requests that
//! precede the work.
//!
//! An input request of a V1 task is a request of the upstream in a session. Its id is stored with
//! the key that the client sees. After a restart the response is posted to that session under that
//! id, whether or not the upstream sends the request again.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EngineError};
use outlast_engine::task::ResumeState;
use outlast_engine::{
    Clock, ErrorCode, InputKey, InputResponse, Origin, Outcome, RetryClass, SystemClock,
};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::v2::{InputRequestEntry, InputRequired};
use outlast_wire::{PeerTask, Raw, Status, Timestamp, codes};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::active_calls::{LeftRequest, ResumedCall};
use super::asks::without_mark;
use super::connection::Connection;
use super::follow::ATTEMPTS;
use super::pool::RESTARTS;
use super::prepared::Prepared;
use super::{Upstream, result};
use crate::client::{
    self, Call, Era, OpenInputRequest, OutcomeError, RoundRecorder, TaskReference,
};
use crate::server::ClientHandle;
use crate::transport::http_client::SavedSession;

/// What is stored with our task. Without a reference and a round, the progress of the call is
/// unknown.
#[derive(Default, Serialize, Deserialize)]
struct Place {
    /// The upstream's task.
    reference: Option<TaskReference>,
    /// The session of the upstream's task, if the upstream has sessions.
    session: Option<SavedSession>,
    /// The input requests that precede the work.
    #[serde(default)]
    round: Option<Asked>,
    /// The input requests that the upstream sent in its session: the client's key and the
    /// upstream's id.
    #[serde(default)]
    requests: Vec<(String, Id)>,
}

/// The stored state of one call. Each change is stored before the next one begins.
#[derive(Default)]
pub(super) struct CallPlace(tokio::sync::Mutex<Place>);

impl CallPlace {
    /// Records the task that the upstream created.
    async fn has_task(&self, connection: &Connection, reference: &TaskReference, cx: &CallContext) {
        let mut place = self.0.lock().await;
        place.reference = Some(reference.clone());
        place.session = connection.keep_session();
        place.store_or_warn(cx).await;
    }

    /// Records that the upstream's request `request` is sent to our client under `key`. It is
    /// stored as soon as the upstream's task is known.
    pub(super) async fn asks(&self, key: &InputKey, request: &Id, cx: &CallContext) {
        let mut place = self.0.lock().await;
        // A previous attempt may have used another key.
        place.requests.retain(|(_, id)| id != request);
        let asked = (key.as_str().to_owned(), request.clone());
        place.requests.push(asked);
        if place.reference.is_some() {
            place.store_or_warn(cx).await;
        }
    }

    /// Whether the next run of this process would send the response to the input request `key`.
    pub(super) async fn is_stored(&self, key: &InputKey) -> bool {
        let place = self.0.lock().await;
        let of_key = |(stored, _): &(String, Id)| stored == key.as_str();
        place.reference.is_some() && place.requests.iter().any(of_key)
    }
}

/// A round of input requests of a modern upstream.
#[derive(Serialize, Deserialize)]
struct Asked {
    /// The key, the method and the params of each.
    asks: Vec<(String, String, Option<Raw>)>,
    state: Option<String>,
}

/// The round of input requests in which a call is sent.
pub(super) enum Round<'a> {
    /// The upstream has no rounds.
    None,
    First(&'a CallContext),
    /// The round that a previous run of this process recorded.
    Left(&'a CallContext, InputRequired),
}

impl Round<'_> {
    /// Makes the call record its rounds.
    pub(super) fn told_of(self, call: Call) -> Call {
        match self {
            Self::None => call,
            Self::First(cx) => call.recording_rounds(Arc::new(Rounds(cx.clone()))),
            Self::Left(cx, round) => call
                .recording_rounds(Arc::new(Rounds(cx.clone())))
                .resuming_round(round),
        }
    }
}

/// Stores rounds of input requests for the next run of this process.
struct Rounds(CallContext);

impl Debug for Rounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Rounds({})", self.0.id())
    }
}

#[async_trait]
impl RoundRecorder for Rounds {
    async fn round_started(&self, round: &InputRequired) {
        let asks = round.input_requests.iter().cloned();
        let asks = asks.map(|ask| (ask.key, ask.method, ask.params));
        let place = Place {
            round: Some(Asked {
                asks: asks.collect(),
                state: round.state.clone(),
            }),
            ..Place::default()
        };
        if let Err(error) = place.store(&self.0).await {
            tracing::warn!(call = %self.0.id(), %error, "could not store a round of input requests");
        }
    }

    async fn before_responses(&self) -> Result<(), client::Error> {
        // A stored round must not be sent twice.
        let stored = Place::default().store(&self.0).await;
        stored.map_err(|error| client::Error::NotStored(error.to_string()))
    }
}

impl Place {
    async fn store_or_warn(&self, cx: &CallContext) {
        if let Err(error) = self.store(cx).await {
            tracing::warn!(call = %cx.id(), %error, "could not store the state that resumes the upstream's task");
        }
    }

    async fn store(&self, cx: &CallContext) -> Result<(), EngineError> {
        cx.save_resume_state(self.to_handle()).await
    }

    fn to_handle(&self) -> ResumeState {
        let bytes = serde_json::to_vec(self).expect("strings and numbers are JSON");
        ResumeState(bytes.into())
    }

    /// The era of the upstream's connection, if `auto` chooses it.
    fn era(&self, auto: Era) -> Era {
        let is_legacy = match &self.reference {
            Some(reference) => reference.generation == "v1",
            // Only the modern era has rounds of input requests.
            None => false,
        };
        match auto {
            Era::Auto if is_legacy => Era::PreferLegacy,
            era => era,
        }
    }

    /// Until when to try to reconnect.
    fn kept_until(&self) -> Timestamp {
        let (begun, ttl) = match &self.reference {
            Some(reference) => (Timestamp(reference.created_ms), reference.ttl_ms),
            None => (SystemClock.now(), None),
        };
        begun.plus(ttl.unwrap_or(FORGOTTEN))
    }
}

/// The state that resumes a task of the upstream, if that is possible.
pub(super) fn handle(connection: &Connection, reference: &TaskReference) -> Option<ResumeState> {
    let place = Place {
        reference: Some(reference.clone()),
        session: connection.keep_session(),
        ..Place::default()
    };
    connection.outlives_us().then(|| place.to_handle())
}

/// Stores the state that resumes a task of the upstream, if that is possible.
pub(super) async fn attach(connection: &Connection, reference: &TaskReference, cx: &CallContext) {
    if !connection.outlives_us() {
        return;
    }
    let place = connection.shared.calls.place(cx);
    place.has_task(connection, reference, cx).await;
}

/// The open input requests of a previous run of this process, and the responses to those that the
/// upstream sent in its session.
fn left_by(place: &Place, cx: &CallContext) -> (Vec<LeftRequest>, Vec<OpenInputRequest>) {
    let mut open = Vec::new();
    let left = cx.pending_input().into_iter().map(|key| {
        let of_key = |(stored, _): &&(String, Id)| stored == key.as_str();
        // Without a session the upstream does not know the request on a new connection.
        let in_session = place.session.as_ref();
        let request = in_session.and_then(|_| place.requests.iter().find(of_key));
        let answer = request.map(|(_, id)| {
            let (tell, answer) = watch::channel(None);
            open.push(OpenInputRequest {
                id: id.clone(),
                response: Box::pin(answer_to(cx.clone(), key.clone(), tell)),
            });
            answer
        });
        LeftRequest { key, answer }
    });
    (left.collect(), open)
}

/// Waits for the response to an input request of a previous run of this process. The response stays
/// stored until the task ends, because nothing shows whether the upstream has received it.
async fn answer_to(
    cx: CallContext,
    key: InputKey,
    tell: watch::Sender<Option<InputResponse>>,
) -> Option<InputResponse> {
    let answered = cx.response_to(key).await.ok()?;
    tell.send_replace(Some(answered.response.clone()));
    Some(without_mark(answered.response))
}

/// Withdraws the input requests of a previous run once the upstream reports that it needs no input.
pub(super) async fn take_back_left(connection: &Connection, task: &PeerTask, cx: &CallContext) {
    // A stored task has no times. In that case the upstream has not reported yet.
    let is_seen = task.created.is_some() || task.updated.is_some();
    if !is_seen || task.status == Status::InputRequired {
        return;
    }
    for key in connection.shared.calls.take_unclaimed(cx.id()) {
        if let Err(error) = cx.withdraw_input(key).await {
            // It has a response, which is being sent.
            tracing::debug!(call = %cx.id(), %error, "could not withdraw an input request");
        }
    }
}

impl Upstream {
    /// Resumes a task of the upstream, or a round of input requests. `None` if the progress of the
    /// call is unknown.
    pub(super) async fn go_on(
        &self,
        handle: &ResumeState,
        call: &Origin,
        cx: &CallContext,
        prepared: Prepared,
    ) -> Option<Outcome> {
        let client = &prepared.client;
        let mut place: Place = serde_json::from_slice(&handle.0).ok()?;
        if place.reference.is_none() && place.round.is_none() {
            let again = call.retry == RetryClass::Rerun && cx.attempt().0 <= ATTEMPTS;
            return if again {
                Some(self.call(call, cx, prepared).await)
            } else {
                None
            };
        }
        let (left, open) = left_by(&place, cx);
        let (reference, round) = (place.reference.clone(), place.round.take());
        let kept_until = place.kept_until();
        let resumed = ResumedCall {
            call: cx.clone(),
            task: reference.as_ref().map(|reference| reference.task.clone()),
            session: place.session.clone(),
            era: place.era(self.settings.era),
            place: Arc::new(CallPlace(tokio::sync::Mutex::new(place))),
            left,
        };
        let connection = tokio::select! {
            biased;
            connection = self.find_again(&resumed, kept_until, client) => match connection {
                Ok(connection) => connection,
                Err(error) => return Some(error.into()),
            },
            () = cx.cancelled() => return Some(if cx.is_interrupted() {
                result::unsettled(&self.name, OutcomeError::Detached)
            } else {
                Outcome::Cancelled
            }),
        };
        let under_way = connection.begin(cx);
        let in_round = reference.is_none();
        let mut owner = self.owner(&connection, call, cx, client);
        let ended = match (reference, round) {
            (Some(reference), _) => {
                let name = under_way.name();
                connection
                    .back
                    .drive_task(reference, open, name, &mut owner)
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
        match owner.ended(ended, client, cx) {
            // The upstream was restarted and does not know the round.
            Ok(Outcome::Error(_, ErrorCode(codes::INVALID_PARAMS), why)) if in_round => {
                tracing::info!(upstream = &*self.name, call = %cx.id(), ?why, "the upstream does not know the round of input requests");
                match call.retry {
                    RetryClass::Rerun => Some(self.call(call, cx, prepared).await),
                    RetryClass::Never => None,
                }
            }
            Ok(outcome) => Some(outcome),
            Err(lost) => Some(result::unsettled(&self.name, lost)),
        }
    }

    /// Connects to the server of the task. The upstream may start later than the gateway, so this
    /// tries again until the task would have expired there.
    async fn find_again(
        &self,
        resumed: &ResumedCall,
        until: Timestamp,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<Connection>, ErrorObject> {
        let mut backoff = RESTARTS;
        loop {
            let error = match self.connection_again(client, resumed).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if SystemClock.now() > until {
                return Err(error);
            }
            resumed.call.status(&error.message);
            tokio::time::sleep(backoff.delay()).await;
        }
    }
}

impl From<Asked> for InputRequired {
    fn from(asked: Asked) -> Self {
        let ask = |(key, method, params)| InputRequestEntry {
            key,
            method,
            params,
        };
        Self {
            input_requests: asked.asks.into_iter().map(ask).collect(),
            state: asked.state,
        }
    }
}

/// How long to look for a task without a TTL.
const FORGOTTEN: u64 = 24 * 3_600_000;
