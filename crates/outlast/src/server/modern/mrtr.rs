//! Calls that send input requests before their response: suspended, and resumed by the retry
//! (V2-MRTR: multi round-trip requests).

use outlast_engine::engine::{Promotion, RunningCall};
use outlast_engine::store::StoreError;
use outlast_engine::{Clock, NodeId, Outstanding, Scope, SystemClock};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Timestamp, codes, v2};

use super::call::{RequestedCall, create_result, outcome_reply};
use super::finish::DraftReply;
use super::request_state::{Fingerprint, RequestState};
use super::suspended::{SuspendedCall, TooManySuspended};
use super::{ModernRequest, input_responses};
use crate::engine_errors::to_wire;
use crate::log_limit::LogLimit;
use crate::server::{McpServer, TaskPolicy};

static NOT_STORED: LogLimit = LogLimit::new();

impl ModernRequest {
    /// Replies with the open input requests, and suspends the call until the retry.
    pub(super) async fn suspend(
        &self,
        running: RunningCall,
        open: &Outstanding,
        requested: &RequestedCall,
        round: u32,
    ) -> Result<DraftReply, ErrorObject> {
        let modern = &self.server.modern;
        let timeout_ms = modern.suspended_calls.timeout().as_millis() as u64;
        let state = RequestState {
            call: running.id(),
            node: self.server.engine.node(),
            round,
            expires: now().plus(timeout_ms),
            request: self.fingerprint(requested),
        };
        let state = state.seal(&self.server.keys, now()).await;
        let state = state.map_err(|error| to_wire(&error.into()))?;
        let views: Vec<_> = open.views().collect();
        let result = v2::input_required_result(&views, Some(&state));
        let suspended = SuspendedCall {
            running,
            owner: self.caller.owner().clone(),
            round,
        };
        modern
            .suspended_calls
            .add(suspended)
            .map_err(|TooManySuspended| {
                codes::internal("too many calls wait for input responses; try again later")
            })?;
        Ok(DraftReply::Local(
            result.expect("a result with a state is never empty"),
        ))
    }

    /// Resumes the call that a state names. With an invalid state no call runs a second time
    /// (BR-IN-4).
    pub(super) async fn resume(
        &self,
        state: &str,
        mut requested: RequestedCall,
    ) -> Result<DraftReply, ErrorObject> {
        let state = RequestState::open(state, &self.server.keys, now()).await;
        let state = state.map_err(|error| to_wire(&error.into()))?;
        let state = state
            .ok_or_else(|| invalid_state("it was not created by this server, or was changed"))?;
        if state.request != self.fingerprint(&requested) {
            return Err(invalid_state("it belongs to another request"));
        }
        if now() >= state.expires {
            return Err(invalid_state("it has expired, and the call was stopped"));
        }
        let suspended_calls = &self.server.modern.suspended_calls;
        let suspended = suspended_calls.take(state.call, state.round).ok_or_else(|| {
            invalid_state("it was used before, or the server was restarted: the outcome is unknown, and the call was not run again")
        })?;
        let open = suspended.running.state();
        let open = open.as_ref().and_then(|state| state.outstanding());
        let answers = match input_responses::matching(open, requested.take_early_responses()) {
            Ok(answers) => answers,
            Err(error) => {
                // The state stays valid for a corrected retry. The slot was free a moment ago.
                let _ = suspended_calls.add(suspended);
                return Err(error);
            }
        };
        let is_complete = open.is_none_or(|open| open.iter().len() == answers.len());
        let SuspendedCall { running, round, .. } = suspended;
        if is_complete && requested.task == Some(TaskPolicy::AfterInput) {
            return self
                .promote_after_input(running, answers, requested, round + 1)
                .await;
        }
        // A response to a closed input request is ignored.
        let _ = running.provide_input(answers).await;
        let remaining = running.state();
        match remaining.as_ref().and_then(|state| state.outstanding()) {
            // V2-MRTR-10: missing input responses are requested again.
            Some(remaining) if !is_complete => {
                self.suspend(running, remaining, &requested, round + 1)
                    .await
            }
            _ => self.follow(running, requested, round + 1).await,
        }
    }

    /// Makes a task of a call whose first input requests have responses. The task is stored before
    /// the responses are applied, so that the call cannot end earlier.
    async fn promote_after_input(
        &self,
        running: RunningCall,
        answers: std::collections::BTreeMap<
            outlast_engine::InputKey,
            outlast_engine::InputResponse,
        >,
        mut requested: RequestedCall,
        round: u32,
    ) -> Result<DraftReply, ErrorObject> {
        let engine = &self.server.engine;
        match running.promote().await {
            Ok(Promotion::Stored(task)) => {
                let scope = Scope::OwnedBy(task.owner.clone());
                if let Err(error) = engine.provide_input(&scope, task.id, answers).await {
                    // The input requests belong to the task now, and can be answered there.
                    tracing::warn!(task = %task.id, %error, "could not apply input responses to a task");
                    return Ok(create_result(&task, None));
                }
                let found = engine.load(&scope, task.id).await;
                Ok(create_result(found.as_ref().unwrap_or(&task), None))
            }
            Ok(Promotion::Finished(outcome)) => outcome_reply(outcome),
            Err((running, error)) => {
                NOT_STORED.log(|left_out| {
                    tracing::warn!(call = %running.id(), %error, left_out, "could not store a call as a task; the call continues");
                });
                requested.task = None;
                let _ = running.provide_input(answers).await;
                self.follow(*running, requested, round).await
            }
        }
    }

    fn fingerprint(&self, requested: &RequestedCall) -> Fingerprint {
        Fingerprint::new(
            &self.caller.principal(),
            &requested.method,
            requested.params.borrow(),
        )
    }
}

impl McpServer {
    /// The node with the suspended call that a `requestState` names; `None` if the state is not
    /// valid.
    pub(crate) async fn node_of_state(&self, state: &str) -> Result<Option<NodeId>, StoreError> {
        let state = RequestState::open(state, &self.keys, now()).await?;
        Ok(state.map(|state| state.node))
    }
}

fn invalid_state(why: &str) -> ErrorObject {
    codes::invalid_params(format!("`requestState` is rejected: {why}"))
}

fn now() -> Timestamp {
    SystemClock.now()
}
