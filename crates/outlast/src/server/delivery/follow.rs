//! The delivery of one call, in both eras: one loop with one state.
//!
//! A call starts as a plain call. If it ends within its grace period, the response is its outcome.
//! Otherwise it becomes a task. A caller with task support gets the handle. Any other caller keeps
//! waiting, with a heartbeat, until its wait budget is used up; then it gets a ticket. If the store
//! rejects the task, the call continues and the response is its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_engine::engine::{EndedTask, EngineError, Progress, Promotion, RunningCall};
use outlast_engine::{
    Committed, Engine, InputKey, InputResponse, InputTiming, Outcome, Outstanding, Scope, Task,
    TaskId,
};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::log::Log;
use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use super::policy::{DeliveryPlan, InputDelivery};
use super::source::{CallSource, SourceEvent};
use crate::log_limit::LogLimit;
use crate::sleep::sleep_until;

static NOT_STORED: LogLimit = LogLimit::new();

/// How messages of a call reach its caller. Each era has its own implementation.
pub(in crate::server) trait DeliveryChannel {
    /// Sends progress.
    async fn send_progress(&mut self, progress: &Progress);

    /// Sends a log message.
    async fn send_log(&mut self, log: &Log);

    /// Sends the input requests that were not sent yet; returns whether any was sent so far.
    fn send_input_requests(&mut self, call: TaskId, open: &Outstanding) -> bool {
        let _ = (call, open);
        false
    }

    /// Input responses that came with the request itself, for input requests that are open now.
    fn early_responses(
        &mut self,
        open: &Outstanding,
    ) -> Result<BTreeMap<InputKey, InputResponse>, ErrorObject> {
        let _ = open;
        Ok(BTreeMap::new())
    }

    /// The next input response to a call that is not a task.
    async fn next_input_response(&mut self) -> (InputKey, InputResponse) {
        std::future::pending().await
    }

    /// Whether the caller can still be reached.
    fn is_live(&self) -> bool {
        true
    }

    /// The call has become a task, and the caller keeps waiting for it. Returns the input responses
    /// that arrived meanwhile and now belong to the task.
    fn on_promoted(&mut self, task: &Committed<Task>) -> BTreeMap<InputKey, InputResponse> {
        let _ = task;
        BTreeMap::new()
    }
}

/// What the caller gets as its response.
pub(in crate::server) enum DeliveryOutcome {
    /// The outcome of the call.
    Outcome(Outcome),
    /// The outcome of the task that the caller waited for.
    TaskEnded(TaskId, Result<EndedTask, EngineError>),
    /// A handle.
    Handle(Committed<Task>),
    /// A ticket for a task that is still running.
    Ticket(TaskId),
    /// Open input requests, and the suspended call.
    Input(Box<RunningCall>, Outstanding),
    /// Open input requests of the task that the caller waited for.
    TaskInput(TaskId, Outstanding),
    /// An error: an input response of the request is invalid.
    Refused(ErrorObject),
    /// Nothing: the caller is unreachable, and the call was stopped.
    Abandoned,
}

/// Follows a call until there is a response for its caller. Dropping the future stops the call,
/// unless it has become a task.
pub(in crate::server) async fn follow(
    engine: &Engine,
    scope: &Scope,
    mut source: CallSource,
    plan: DeliveryPlan,
    channel: &mut impl DeliveryChannel,
) -> DeliveryOutcome {
    let mut state = State::new(plan, matches!(source, CallSource::Task(_)));
    loop {
        let next = state.next();
        let due = tokio::select! {
            biased;
            event = source.next() => {
                state.heartbeat.restart();
                match event {
                    SourceEvent::Progress(progress) => {
                        state.heartbeat.record(&progress);
                        channel.send_progress(&progress).await;
                    }
                    SourceEvent::Log(log) => channel.send_log(&log).await,
                    SourceEvent::RunsAsTask => state.promote_now(),
                    SourceEvent::Changed(open) => {
                        if let Some(answer) = changed(&mut state, &mut source, open, channel).await {
                            return answer;
                        }
                    }
                    SourceEvent::Ended(outcome) => return DeliveryOutcome::Outcome(outcome),
                    SourceEvent::Settled(task, settled) => return DeliveryOutcome::TaskEnded(task, settled),
                }
                continue;
            }
            (key, answer) = channel.next_input_response() => {
                source.respond([(key, answer)].into()).await;
                continue;
            }
            () = sleep_until(next.map(|(at, _)| at)) => next.map(|(_, due)| due),
        };
        match due {
            Some(Due::Heartbeat) => channel.send_progress(&state.heartbeat.beat()).await,
            Some(Due::LivenessCheck) if state.is_unreachable(channel.is_live()) => {
                return DeliveryOutcome::Abandoned;
            }
            Some(Due::LivenessCheck) => {}
            Some(Due::Ticket) => return DeliveryOutcome::Ticket(source.id()),
            Some(Due::Input) => {
                state.input_at = None;
                match source.outstanding() {
                    Some(open) if state.returns(&open) => {
                        return match source {
                            CallSource::Call(running) => DeliveryOutcome::Input(running, open),
                            CallSource::Task(_) => DeliveryOutcome::TaskInput(source.id(), open),
                        };
                    }
                    Some(_) => match promote(engine, scope, source, &mut state, channel).await {
                        Ok(next) => source = next,
                        Err(answer) => return answer,
                    },
                    None => {}
                }
            }
            Some(Due::Promotion) => {
                match promote(engine, scope, source, &mut state, channel).await {
                    Ok(next) => source = next,
                    Err(answer) => return answer,
                }
            }
            None => {}
        }
    }
}

/// Delivers the open input requests; returns the response if they are the response.
async fn changed(
    state: &mut State,
    source: &mut CallSource,
    open: Option<Outstanding>,
    channel: &mut impl DeliveryChannel,
) -> Option<DeliveryOutcome> {
    match (state.plan.input, &*source) {
        (InputDelivery::Nested, _) => {
            if let Some(open) = &open
                && channel.send_input_requests(source.id(), open)
            {
                state.mark_input_sent();
            }
        }
        // A task already has all input requests that were made together.
        (InputDelivery::Returned, CallSource::Task(_)) => {
            return open.map(|open| DeliveryOutcome::TaskInput(source.id(), open));
        }
        (InputDelivery::Returned, CallSource::Call(_)) => {
            if let Some(open) = &open {
                match channel.early_responses(open) {
                    Ok(answers) => source.respond(answers).await,
                    Err(error) => return Some(DeliveryOutcome::Refused(error)),
                }
            }
            let since = state.input_at;
            let has_input = source.outstanding().is_some();
            state.input_at =
                has_input.then(|| since.unwrap_or_else(|| Instant::now() + INPUT_BATCH_WINDOW));
        }
    }
    None
}

/// Makes a call a task. `Ok` is what the caller waits for next, `Err` is the response to it.
async fn promote(
    engine: &Engine,
    scope: &Scope,
    source: CallSource,
    state: &mut State,
    channel: &mut impl DeliveryChannel,
) -> Result<CallSource, DeliveryOutcome> {
    let CallSource::Call(running) = source else {
        return Ok(source);
    };
    match running.promote().await {
        Ok(Promotion::Stored(task)) if state.plan.takes_handle => {
            Err(DeliveryOutcome::Handle(task))
        }
        Ok(Promotion::Stored(task)) => {
            state.stored = true;
            let answers = channel.on_promoted(&task);
            if !answers.is_empty()
                && let Err(error) = engine.provide_input(scope, task.id, answers).await
            {
                tracing::warn!(task = %task.id, %error, "could not apply input responses to a new task");
            }
            let waiting = CallSource::task(engine, scope, task.id).await;
            waiting.map_err(|error| DeliveryOutcome::TaskEnded(task.id, Err(error)))
        }
        Ok(Promotion::Finished(outcome)) => Err(DeliveryOutcome::Outcome(outcome)),
        Err((running, error)) => {
            NOT_STORED.log(|left_out| {
                tracing::warn!(call = %running.id(), %error, left_out, "could not store a call as a task; the call continues");
            });
            state.plan.takes_handle = false;
            state.plan.promote_at = None;
            let source = CallSource::Call(running);
            if state.plan.input == InputDelivery::Returned && source.outstanding().is_some() {
                // The call cannot become a task, so its input requests must be returned.
                state.input_at = Some(Instant::now());
            }
            Ok(source)
        }
    }
}

/// The state of one delivery.
struct State {
    plan: DeliveryPlan,
    /// Whether the caller waits for a task.
    stored: bool,
    /// When the open input requests are returned to the caller.
    input_at: Option<Instant>,
    heartbeat: Heartbeat,
    /// When to check next whether the caller is reachable.
    liveness_check_at: Option<Instant>,
    /// How many checks in a row have failed.
    failed_checks: u32,
}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Input,
    Promotion,
    Ticket,
    Heartbeat,
    LivenessCheck,
}

impl State {
    fn new(plan: DeliveryPlan, stored: bool) -> Self {
        Self {
            heartbeat: Heartbeat::new(plan.heartbeat),
            plan,
            stored,
            input_at: None,
            liveness_check_at: None,
            failed_checks: 0,
        }
    }

    /// What is due next, and when.
    fn next(&self) -> Option<(Instant, Due)> {
        // Input requests that are being collected come first: they decide how the call continues.
        if let Some(at) = self.input_at {
            return Some((at, Due::Input));
        }
        let is_plain = !self.stored;
        let in_grace = is_plain && self.plan.promote_at.is_some();
        let all = [
            (self.plan.promote_at.filter(|_| is_plain), Due::Promotion),
            (self.plan.ticket_at.filter(|_| self.stored), Due::Ticket),
            (self.heartbeat.due().filter(|_| !in_grace), Due::Heartbeat),
            (
                self.liveness_check_at.filter(|_| is_plain),
                Due::LivenessCheck,
            ),
        ];
        let all = all.into_iter().filter_map(|(at, due)| Some((at?, due)));
        all.min_by_key(|(at, _)| *at)
    }

    /// Whether input requests are returned to the caller: those that are made before the work
    /// begins, and all of a call that cannot become a task.
    fn returns(&self, open: &Outstanding) -> bool {
        let before_work = |timing| timing == InputTiming::BeforeWork;
        let mut open = open.iter();
        !self.plan.takes_handle || open.all(|(_, request)| before_work(request.timing))
    }

    /// Promotes the call now, if its caller would get a handle later.
    fn promote_now(&mut self) {
        if let Some(at) = &mut self.plan.promote_at
            && self.plan.takes_handle
        {
            *at = Instant::now();
        }
    }

    /// Starts the liveness checks: the caller was sent an input request.
    fn mark_input_sent(&mut self) {
        self.liveness_check_at
            .get_or_insert_with(|| Instant::now() + LIVENESS_CHECK_INTERVAL);
    }

    /// Whether the caller was unreachable for too many checks. Its stream may still be resumed
    /// until then.
    fn is_unreachable(&mut self, is_live: bool) -> bool {
        self.liveness_check_at = Some(Instant::now() + LIVENESS_CHECK_INTERVAL);
        self.failed_checks = if is_live { 0 } else { self.failed_checks + 1 };
        self.failed_checks >= MAX_FAILED_CHECKS
    }
}

/// How long further input requests are collected after the first, so that they are returned
/// together.
const INPUT_BATCH_WINDOW: Duration = Duration::from_millis(5);

/// The interval of the checks whether the caller of a call with input requests is reachable.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// How many checks in a row may fail before the call is stopped.
const MAX_FAILED_CHECKS: u32 = 10;

#[cfg(test)]
mod tests {
    use outlast_engine::{InputKind, InputRequest};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn due(state: &State) -> Option<Due> {
        state.next().map(|(_, due)| due)
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_gets_promotion_heartbeats_and_ticket() {
        let plan =
            DeliveryPlan::waiting((Some(5 * SECOND), Some(2 * SECOND)), InputDelivery::Nested);
        let mut state = State::new(plan.promoted_after(3 * SECOND), false);
        assert_eq!(due(&state), Some(Due::Promotion));
        state.stored = true;
        assert_eq!(due(&state), Some(Due::Heartbeat));
        tokio::time::advance(4 * SECOND).await;
        state.heartbeat.restart();
        assert_eq!(due(&state), Some(Due::Ticket));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_caller_with_task_support_gets_an_early_handle() {
        let plan = DeliveryPlan::handle_after(SECOND, InputDelivery::Returned);
        let mut state = State::new(plan, false);
        state.promote_now();
        assert_eq!(state.next(), Some((Instant::now(), Due::Promotion)));
        let plan = DeliveryPlan::waiting((None, None), InputDelivery::Nested);
        let mut state = State::new(plan.promoted_after(SECOND), false);
        state.promote_now();
        assert_eq!(
            state.next(),
            Some((Instant::now() + SECOND, Due::Promotion))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_unstored_call_gets_heartbeats_and_no_ticket() {
        let plan = DeliveryPlan::waiting((Some(SECOND), Some(2 * SECOND)), InputDelivery::Nested);
        let mut state = State::new(plan.promoted_after(SECOND), false);
        state.plan.promote_at = None;
        assert_eq!(due(&state), Some(Due::Heartbeat));
    }

    #[tokio::test(start_paused = true)]
    async fn input_requests_are_due_before_anything_else() {
        let open = |timing| {
            let mut request = InputRequest::new(InputKind::ElicitForm, None);
            request.timing = timing;
            Outstanding::new(vec![(InputKey::new("k"), request)]).unwrap()
        };
        let plan = DeliveryPlan::handle_after(SECOND, InputDelivery::Returned);
        let mut state = State::new(plan, false);
        state.input_at = Some(Instant::now() + 9 * SECOND);
        assert_eq!(due(&state), Some(Due::Input));
        assert!(state.returns(&open(InputTiming::BeforeWork)));
        assert!(!state.returns(&open(InputTiming::DuringWork)));
        state.plan.takes_handle = false;
        assert!(state.returns(&open(InputTiming::DuringWork)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_stopped_only_if_its_caller_stays_unreachable() {
        let mut state = State::new(DeliveryPlan::inline(InputDelivery::Nested), false);
        assert_eq!(due(&state), None);
        state.mark_input_sent();
        assert_eq!(due(&state), Some(Due::LivenessCheck));
        for _ in 1..MAX_FAILED_CHECKS {
            assert!(!state.is_unreachable(false));
        }
        assert!(!state.is_unreachable(true));
        for _ in 1..MAX_FAILED_CHECKS {
            assert!(!state.is_unreachable(false));
        }
        assert!(state.is_unreachable(false));
    }
}
