//! Calls that ask before they are answered: parked, and taken up again by the retry (V2-MRTR).

use outlast_engine::engine::{Promotion, RunningCall};
use outlast_engine::{Clock, Outstanding, Scope, SystemClock};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Timestamp, codes, v2};

use super::call::{RequestedCall, accepted, delivered};
use super::finish::Answer;
use super::request_state::{Fingerprint, Seal, State};
use super::suspended::{Full, Parked};
use super::{Request, input_responses};
use crate::log_limit::LogLimit;
use crate::server::Delivery;
use crate::server::errors::to_wire;

static NOT_STORED: LogLimit = LogLimit::new();

impl Request {
    /// Answers with the open questions and lets the call wait for the retry.
    pub(super) async fn park(
        &self,
        running: RunningCall,
        open: &Outstanding,
        wanted: &RequestedCall,
        round: u32,
    ) -> Result<Answer, ErrorObject> {
        let modern = &self.front.modern;
        let patience = modern.parking.patience().as_millis() as u64;
        let state = State {
            call: running.id(),
            round,
            expires: now().plus(patience),
            request: self.fingerprint(wanted),
        };
        let state = self.seal().await?.close(&state);
        let asks: Vec<_> = open.views().collect();
        let asking = v2::input_required_result(&asks, Some(&state));
        let parked = Parked {
            running,
            owner: self.visitor.owner().clone(),
            round,
        };
        modern
            .parking
            .put(parked)
            .map_err(|Full| codes::internal("too many calls wait for answers; try again later"))?;
        Ok(Answer::Own(asking.expect("there is a state")))
    }

    /// Takes up the call that a state names. Whatever is wrong with the state, nothing is run a second time
    /// (BR-IN-4).
    pub(super) async fn resume(
        &self,
        state: &str,
        mut wanted: RequestedCall,
    ) -> Result<Answer, ErrorObject> {
        let state = self.seal().await?.open(state);
        let state = state.ok_or_else(|| refused("it was not made here, or was changed"))?;
        if state.request != self.fingerprint(&wanted) {
            return Err(refused("it belongs to another request"));
        }
        if now() >= state.expires {
            return Err(refused("its time is over, and the call was stopped"));
        }
        let parking = &self.front.modern.parking;
        let parked = parking.take(state.call, state.round).ok_or_else(|| {
            refused("it was used before, or the server was restarted: the outcome is unknown, and the call was not run again")
        })?;
        let open = parked.running.state();
        let open = open.as_ref().and_then(|state| state.outstanding());
        let answers = match input_responses::fitting(open, wanted.take_given()) {
            Ok(answers) => answers,
            Err(error) => {
                // The state stays good for a better answer; there was room a moment ago.
                let _ = parking.put(parked);
                return Err(error);
            }
        };
        let all = open.is_none_or(|open| open.iter().len() == answers.len());
        let Parked { running, round, .. } = parked;
        if all && wanted.task == Some(Delivery::OnceAnswered) {
            return self
                .promote_answered(running, answers, wanted, round + 1)
                .await;
        }
        // A question that is not open any more takes no answer.
        let _ = running.answer(answers).await;
        let left = running.state();
        match left.as_ref().and_then(|state| state.outstanding()) {
            // V2-MRTR-10: what is missing is asked for again.
            Some(left) if !all => self.park(running, left, &wanted, round + 1).await,
            _ => self.follow(running, wanted, round + 1).await,
        }
    }

    /// Makes a call a task whose first questions are answered: stored while it still waits, so that it cannot end
    /// before.
    async fn promote_answered(
        &self,
        running: RunningCall,
        answers: std::collections::BTreeMap<outlast_engine::AskKey, outlast_engine::Answer>,
        mut wanted: RequestedCall,
        round: u32,
    ) -> Result<Answer, ErrorObject> {
        let engine = &self.front.engine;
        match running.promote().await {
            Ok(Promotion::Stored(task)) => {
                let scope = Scope::Of(task.owner.clone());
                if let Err(error) = engine.answer(&scope, task.id, answers).await {
                    // The questions are the task's now, and can be answered there.
                    tracing::warn!(task = %task.id, %error, "answers did not reach a task");
                    return Ok(accepted(&task, None));
                }
                let found = engine.load(&scope, task.id).await;
                Ok(accepted(found.as_ref().unwrap_or(&task), None))
            }
            Ok(Promotion::Finished(outcome)) => delivered(outcome),
            Err((running, error)) => {
                NOT_STORED.log(|left_out| {
                    tracing::warn!(call = %running.id(), %error, left_out, "a call did not become a task");
                });
                wanted.task = None;
                let _ = running.answer(answers).await;
                self.follow(*running, wanted, round).await
            }
        }
    }

    async fn seal(&self) -> Result<&Seal, ErrorObject> {
        let store = self.front.engine.store();
        let seal = &self.front.modern.seal;
        seal.get_or_try_init(|| Seal::of(&**store, now()))
            .await
            .map_err(|error| to_wire(&error.into()))
    }

    fn fingerprint(&self, wanted: &RequestedCall) -> Fingerprint {
        Fingerprint::of(
            &self.visitor.principal(),
            &wanted.method,
            wanted.params.borrow(),
        )
    }
}

fn refused(why: &str) -> ErrorObject {
    codes::invalid_params(format!("`requestState` is not taken: {why}"))
}

fn now() -> Timestamp {
    SystemClock.now()
}
