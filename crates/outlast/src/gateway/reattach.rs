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

use super::active_calls::{RecoveredRequest, ResumedCall};
use super::call::MAX_ATTEMPTS;
use super::connection::UpstreamConnection;
use super::input_requests::without_task_meta;
use super::pool::RECONNECT_BACKOFF;
use super::upstream_call::UpstreamCall;
use super::{Upstream, result};
use crate::client::{
    self, Call, Era, OpenInputRequest, OutcomeError, RoundRecorder, TaskReference,
};
use crate::server::ClientHandle;
use crate::transport::http_client::SavedSession;

/// What is stored with our task. Without a reference and a round, the progress of the call is
/// unknown.
#[derive(Default, Serialize, Deserialize)]
struct SavedCall {
    /// The upstream's task.
    reference: Option<TaskReference>,
    /// The session of the upstream's task, if the upstream has sessions.
    session: Option<SavedSession>,
    /// The input requests that precede the work.
    #[serde(default)]
    round: Option<SavedRound>,
    /// The input requests that the upstream sent in its session: the client's key and the
    /// upstream's id.
    #[serde(default)]
    requests: Vec<(String, Id)>,
}

/// The stored state of one call. Each change is stored before the next one begins.
#[derive(Default)]
pub(super) struct CallRecord(tokio::sync::Mutex<SavedCall>);

impl CallRecord {
    /// Records the task that the upstream created.
    async fn set_task(
        &self,
        connection: &UpstreamConnection,
        reference: &TaskReference,
        cx: &CallContext,
    ) {
        let mut saved = self.0.lock().await;
        saved.reference = Some(reference.clone());
        saved.session = connection.save_session();
        saved.store_or_warn(cx).await;
    }

    /// Records that the upstream's request `request` is sent to our client under `key`. It is
    /// stored as soon as the upstream's task is known.
    pub(super) async fn add_request(&self, key: &InputKey, request: &Id, cx: &CallContext) {
        let mut saved = self.0.lock().await;
        // A previous attempt may have used another key.
        saved.requests.retain(|(_, id)| id != request);
        saved
            .requests
            .push((key.as_str().to_owned(), request.clone()));
        if saved.reference.is_some() {
            saved.store_or_warn(cx).await;
        }
    }

    /// Whether the next run of this process would send the response to the input request `key`.
    pub(super) async fn is_stored(&self, key: &InputKey) -> bool {
        let saved = self.0.lock().await;
        let of_key = |(stored, _): &(String, Id)| stored == key.as_str();
        saved.reference.is_some() && saved.requests.iter().any(of_key)
    }
}

/// A round of input requests of a modern upstream.
#[derive(Serialize, Deserialize)]
struct SavedRound {
    /// The key, the method and the params of each.
    #[serde(rename = "asks")]
    requests: Vec<(String, String, Option<Raw>)>,
    state: Option<String>,
}

/// The round of input requests in which a call is sent.
pub(super) enum InputRound<'a> {
    /// The upstream has no rounds.
    None,
    First(&'a CallContext),
    /// The round that a previous run of this process recorded.
    Resumed(&'a CallContext, InputRequired),
}

impl InputRound<'_> {
    /// Makes the call record its rounds.
    pub(super) fn apply_to(self, call: Call) -> Call {
        match self {
            Self::None => call,
            Self::First(cx) => call.recording_rounds(Arc::new(RoundStore(cx.clone()))),
            Self::Resumed(cx, round) => call
                .recording_rounds(Arc::new(RoundStore(cx.clone())))
                .resuming_round(round),
        }
    }
}

/// Stores rounds of input requests for the next run of this process.
struct RoundStore(CallContext);

impl Debug for RoundStore {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "RoundStore({})", self.0.id())
    }
}

#[async_trait]
impl RoundRecorder for RoundStore {
    async fn round_started(&self, round: &InputRequired) {
        let requests = round.input_requests.iter().cloned();
        let requests = requests.map(|request| (request.key, request.method, request.params));
        let saved = SavedCall {
            round: Some(SavedRound {
                requests: requests.collect(),
                state: round.state.clone(),
            }),
            ..SavedCall::default()
        };
        if let Err(error) = saved.store(&self.0).await {
            tracing::warn!(call = %self.0.id(), %error, "could not store a round of input requests");
        }
    }

    async fn before_responses(&self) -> Result<(), client::Error> {
        // A stored round must not be sent twice.
        let stored = SavedCall::default().store(&self.0).await;
        stored.map_err(|error| client::Error::NotStored(error.to_string()))
    }
}

impl SavedCall {
    async fn store_or_warn(&self, cx: &CallContext) {
        if let Err(error) = self.store(cx).await {
            tracing::warn!(call = %cx.id(), %error, "could not store the state that resumes the upstream's task");
        }
    }

    async fn store(&self, cx: &CallContext) -> Result<(), EngineError> {
        cx.save_resume_state(self.to_resume_state()).await
    }

    fn to_resume_state(&self) -> ResumeState {
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
    fn retry_until(&self) -> Timestamp {
        let (begun, ttl) = match &self.reference {
            Some(reference) => (reference.created, reference.ttl_ms()),
            None => (SystemClock.now(), None),
        };
        begun.plus(ttl.unwrap_or(DEFAULT_RETRY_PERIOD_MS))
    }
}

/// The state that resumes a task of the upstream, if that is possible.
pub(super) fn resume_state(
    connection: &UpstreamConnection,
    reference: &TaskReference,
) -> Option<ResumeState> {
    let saved = SavedCall {
        reference: Some(reference.clone()),
        session: connection.save_session(),
        ..SavedCall::default()
    };
    connection
        .can_resume_tasks()
        .then(|| saved.to_resume_state())
}

/// Stores the state that resumes a task of the upstream, if that is possible.
pub(super) async fn attach(
    connection: &UpstreamConnection,
    reference: &TaskReference,
    cx: &CallContext,
) {
    if !connection.can_resume_tasks() {
        return;
    }
    let record = connection.shared.calls.record(cx);
    record.set_task(connection, reference, cx).await;
}

/// The open input requests of a previous run of this process, and the responses to those that the
/// upstream sent in its session.
fn recovered_requests(
    saved: &SavedCall,
    cx: &CallContext,
) -> (Vec<RecoveredRequest>, Vec<OpenInputRequest>) {
    let mut open = Vec::new();
    let recovered = cx.pending_input().into_iter().map(|key| {
        let of_key = |(stored, _): &&(String, Id)| stored == key.as_str();
        // Without a session the upstream does not know the request on a new connection.
        let in_session = saved.session.as_ref();
        let request = in_session.and_then(|_| saved.requests.iter().find(of_key));
        let response = request.map(|(_, id)| {
            let (sender, response) = watch::channel(None);
            open.push(OpenInputRequest {
                id: id.clone(),
                response: Box::pin(response_to(cx.clone(), key.clone(), sender)),
            });
            response
        });
        RecoveredRequest { key, response }
    });
    (recovered.collect(), open)
}

/// Waits for the response to an input request of a previous run of this process. The response stays
/// stored until the task ends, because nothing shows whether the upstream has received it.
async fn response_to(
    cx: CallContext,
    key: InputKey,
    sender: watch::Sender<Option<InputResponse>>,
) -> Option<InputResponse> {
    let response = cx.response_to(key).await.ok()?.response;
    sender.send_replace(Some(response.clone()));
    Some(without_task_meta(response))
}

/// Withdraws the input requests of a previous run once the upstream reports that it needs no input.
pub(super) async fn withdraw_unclaimed(
    connection: &UpstreamConnection,
    task: &PeerTask,
    cx: &CallContext,
) {
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
    pub(super) async fn resume_call(
        &self,
        handle: &ResumeState,
        call: &Origin,
        cx: &CallContext,
        prepared: UpstreamCall,
    ) -> Option<Outcome> {
        let client = &prepared.client;
        let mut saved: SavedCall = serde_json::from_slice(&handle.0).ok()?;
        if saved.reference.is_none() && saved.round.is_none() {
            let again = call.retry == RetryClass::Rerun && cx.attempt().0 <= MAX_ATTEMPTS;
            return if again {
                Some(self.call(call, cx, prepared).await)
            } else {
                None
            };
        }
        let (recovered, open) = recovered_requests(&saved, cx);
        let (reference, round) = (saved.reference.clone(), saved.round.take());
        let retry_until = saved.retry_until();
        let resumed = ResumedCall {
            call: cx.clone(),
            task: reference.as_ref().map(|reference| reference.task.clone()),
            session: saved.session.clone(),
            era: saved.era(self.settings.era),
            record: Arc::new(CallRecord(tokio::sync::Mutex::new(saved))),
            recovered,
        };
        let connection = tokio::select! {
            biased;
            connection = self.reconnect(&resumed, retry_until, client) => match connection {
                Ok(connection) => connection,
                Err(error) => return Some(error.into()),
            },
            () = cx.cancelled() => return Some(if cx.is_interrupted() {
                result::of_outcome_error(&self.name, OutcomeError::Detached)
            } else {
                Outcome::Cancelled
            }),
        };
        let active_call = connection.begin(cx);
        let in_round = reference.is_none();
        let mut controller = self.controller(&connection, call, cx, client);
        let ended = match (reference, round) {
            (Some(reference), _) => {
                let name = active_call.name();
                connection
                    .upstream
                    .drive_task(reference, open, name, &mut controller)
                    .await
            }
            (None, Some(round)) => {
                let round = InputRound::Resumed(cx, round.into());
                let request = self.build_call(&connection, &active_call, call, None, client, round);
                match request.check().await {
                    Ok(request) => request.drive(&mut controller).await,
                    Err(refusal) => {
                        return Some(result::internal(format!("{}: {refusal}", self.name)));
                    }
                }
            }
            (None, None) => return None,
        };
        match controller.ended(ended, client, cx) {
            // The upstream was restarted and does not know the round.
            Ok(Outcome::Error(_, ErrorCode(codes::INVALID_PARAMS), why)) if in_round => {
                tracing::info!(upstream = &*self.name, call = %cx.id(), ?why, "the upstream does not know the round of input requests");
                match call.retry {
                    RetryClass::Rerun => Some(self.call(call, cx, prepared).await),
                    RetryClass::Never => None,
                }
            }
            Ok(outcome) => Some(outcome),
            Err(lost) => Some(result::of_outcome_error(&self.name, lost)),
        }
    }

    /// Connects to the server of the task. The upstream may start later than the gateway, so this
    /// tries again until the task would have expired there.
    async fn reconnect(
        &self,
        resumed: &ResumedCall,
        until: Timestamp,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<UpstreamConnection>, ErrorObject> {
        let mut backoff = RECONNECT_BACKOFF;
        loop {
            let error = match self.resumed_connection(client, resumed).await {
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

impl From<SavedRound> for InputRequired {
    fn from(round: SavedRound) -> Self {
        let input_request = |(key, method, params)| InputRequestEntry {
            key,
            method,
            params,
        };
        Self {
            input_requests: round.requests.into_iter().map(input_request).collect(),
            state: round.state,
        }
    }
}

/// How long to look for a task without a TTL.
const DEFAULT_RETRY_PERIOD_MS: u64 = 24 * 3_600_000;
