//! One tool call at the upstream, from its request to its outcome.

use std::time::Duration;

use outlast_engine::engine::CallContext;
use outlast_engine::{Origin, Outcome, RetryClass};
use outlast_wire::{meta, object, tool, v1, v2, version};

use super::active_calls::ActiveCall;
use super::connection::UpstreamConnection;
use super::pool::RECONNECT_BACKOFF;
use super::reattach::InputRound;
use super::runner::CLIENT_HOP_PARAMS;
use super::upstream_call::{PrestartedCall, UpstreamCall};
use super::url_elicitation::{self, UrlElicitations};
use super::{Upstream, result};
use crate::client::{self, Call, CallError, OutcomeError, TaskPreference};
use crate::server::ClientHandle;
use crate::transport::link::TransportError;

impl Upstream {
    /// Calls a tool, unless the call was prestarted, and drives the call to its end. A lost call is
    /// repeated only if its tool allows it.
    pub(super) async fn call(
        &self,
        call: &Origin,
        cx: &CallContext,
        mut prepared: UpstreamCall,
    ) -> Outcome {
        let client = &prepared.client;
        let (mut attempt, mut url_rounds) = (1, 0);
        let mut backoff = RECONNECT_BACKOFF;
        loop {
            let prestarted = prepared.prestarted.take();
            let (ended, mut controller) = match prestarted.and_then(PrestartedCall::into_started) {
                Some(started) => {
                    started.active_call.bind(cx);
                    started.running.await
                }
                None => {
                    let connection = prepared.connection.take();
                    let connection = match self.call_connection(connection, client).await {
                        Ok(connection) => connection,
                        Err(error) => return error.into(),
                    };
                    let active_call = connection.begin(cx);
                    let round = InputRound::First(cx);
                    let request =
                        self.build_call(&connection, &active_call, call, None, client, round);
                    let request = match request.check().await {
                        Ok(request) => request,
                        Err(refusal) => return self.not_sent(refusal),
                    };
                    let mut controller = self.controller(&connection, call, cx, client);
                    (request.drive(&mut controller).await, controller)
                }
            };
            match controller.ended(ended, client, cx) {
                Ok(outcome) if controller.has_task() => return outcome,
                Ok(outcome) => match url_elicitation::elicit_urls(outcome, client, cx).await {
                    UrlElicitations::Accepted if url_rounds < MAX_URL_ROUNDS => url_rounds += 1,
                    UrlElicitations::Accepted => {
                        return result::internal(format!(
                            "{} required url elicitations {MAX_URL_ROUNDS} times for one call",
                            self.name
                        ));
                    }
                    UrlElicitations::Outcome(outcome) => return outcome,
                },
                Err(lost) if can_repeat(&lost, call, attempt) && !cx.is_cancelled() => {
                    tracing::info!(upstream = &*self.name, call = %cx.id(), lost = lost.brief(), "repeating a lost call");
                    attempt += 1;
                    // The server may be restarting.
                    let pause = backoff.delay_of_at_least(lost.retry_after());
                    tokio::select! {
                        biased;
                        () = cx.cancelled() => return if cx.is_interrupted() {
                            result::of_outcome_error(&self.name, OutcomeError::Detached)
                        } else {
                            Outcome::Cancelled
                        },
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(lost) => return result::of_outcome_error(&self.name, lost),
            }
        }
    }

    /// Builds the call. The upstream's task has a TTL of `ttl` milliseconds, else that of the
    /// caller, else that of the settings.
    pub(super) fn build_call(
        &self,
        connection: &UpstreamConnection,
        active_call: &ActiveCall,
        call: &Origin,
        ttl: Option<u64>,
        client: &ClientHandle,
        round: InputRound<'_>,
    ) -> Call {
        let params = call.params.as_ref();
        let tool = call.tool.clone().unwrap_or_default();
        let requests_task = params.is_some_and(|it| object::find(it.borrow(), &["task"]).is_some());
        let mut request = connection
            .upstream
            .call_tool(tool.clone(), ())
            .task(preference(requests_task, client))
            .named(active_call.name());
        if connection.server().is_modern() {
            request = round.apply_to(request);
        }
        if let Some(params) = params {
            request = request.params(params.clone()).omit(CLIENT_HOP_PARAMS);
            if let Some(level) = connection.log_level(client) {
                request = request.meta(meta::LOG_LEVEL, level);
            }
        }
        // BR-TTL-2. The upstream's task must exist until its outcome is fetched and until our task
        // has expired, so that a waiting caller gets the error of our expiry.
        let requested = params.filter(|_| requests_task);
        let requested =
            requested.and_then(|params| v1::TaskRequest::read(Some(params.borrow())).ok());
        let requested = requested.flatten().and_then(|requested| requested.ttl_ms);
        match ttl.or(requested).or_else(|| self.settings.ttl(&tool)) {
            Some(ttl) => request.ttl(Duration::from_millis(ttl.saturating_add(TTL_MARGIN_MS))),
            None => request,
        }
    }

    /// The outcome of a call that could not be sent.
    pub(super) fn not_sent(&self, refusal: CallError) -> Outcome {
        match refusal {
            CallError::Request(fault) => result::of_client_error(&self.name, fault),
            refusal => result::internal(format!("{}: {refusal}", self.name)),
        }
    }
}

/// Whether the upstream should create a task, if its tool can be called either way (BR-CREATE-2,
/// BR-CREATE-4, BR-CREATE-5).
fn preference(requests_task: bool, client: &ClientHandle) -> TaskPreference {
    let extension = ["extensions", v2::EXTENSION];
    let takes_tasks = if client.version() == version::MODERN {
        object::find(client.capabilities(), &extension).is_some()
    } else {
        requests_task
    };
    if takes_tasks {
        TaskPreference::Prefer
    } else {
        TaskPreference::Allow
    }
}

/// Whether a lost call can be repeated.
fn can_repeat(lost: &OutcomeError, call: &Origin, attempt: u32) -> bool {
    let passing = match lost {
        OutcomeError::Request(client::Error::Transport(error)) => error.is_transient(),
        // A repeated call would return a result of the same size.
        OutcomeError::Lost { why, .. } => !matches!(
            why,
            client::Error::Transport(TransportError::TooLarge { .. })
        ),
        _ => false,
    };
    debug_assert_eq!(&*call.method, tool::CALL);
    passing && call.retry == RetryClass::Rerun && attempt < MAX_ATTEMPTS
}

/// The maximum of attempts in one run of this process.
pub(super) const MAX_ATTEMPTS: u32 = 3;

/// How much longer than ours the upstream's task exists.
const TTL_MARGIN_MS: u64 = 60_000;

/// The maximum of url elicitation rounds before a call runs.
const MAX_URL_ROUNDS: u32 = 8;
