//! The delivery of one call, in both eras: one loop, one state, events in and actions out.
//!
//! A call begins as a plain one. It is answered by its outcome if it ends within its grace period. Then it becomes a
//! task: a caller that takes tasks gets the handle, any other goes on waiting, with a heartbeat, until its time is over
//! and it gets a ticket. If the store refuses the task, the call goes on and is answered by its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_engine::engine::{EngineError, Progress, Promotion, RunningCall, Settled};
use outlast_engine::{
    Answer, AskKey, Committed, Engine, Outcome, Outstanding, Scope, Task, TaskId, Timing,
};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::log::Log;
use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use super::policy::{InputDelivery, Terms};
use super::source::{Source, SourceEvent};
use crate::log_limit::LogLimit;
use crate::sleep::sleep_until;

static NOT_STORED: LogLimit = LogLimit::new();

/// The caller of a call: what its era and its transport make of what happens meanwhile.
pub(in crate::server) trait Caller {
    /// Sends progress.
    async fn progress(&mut self, progress: &Progress);

    /// Sends a log message.
    async fn log(&mut self, log: &Log);

    /// Sends the input requests of a call that were not sent yet; returns whether any was ever sent.
    fn ask(&mut self, call: TaskId, open: &Outstanding) -> bool {
        let _ = (call, open);
        false
    }

    /// Input responses that came with the request itself, to requests that are open now.
    fn given(&mut self, open: &Outstanding) -> Result<BTreeMap<AskKey, Answer>, ErrorObject> {
        let _ = open;
        Ok(BTreeMap::new())
    }

    /// The next input response to a call that is no task.
    async fn answer(&mut self) -> (AskKey, Answer) {
        std::future::pending().await
    }

    /// Whether the caller can still be reached.
    fn is_live(&self) -> bool {
        true
    }

    /// The call has become a task, and the caller goes on waiting for it. Returns input responses that came meanwhile
    /// and are the task's now.
    fn promoted(&mut self, task: &Committed<Task>) -> BTreeMap<AskKey, Answer> {
        let _ = task;
        BTreeMap::new()
    }
}

/// What a caller is answered with.
pub(in crate::server) enum Delivered {
    /// The outcome of the call.
    Outcome(Outcome),
    /// The outcome of the task that the caller waited for.
    Settled(TaskId, Result<Settled, EngineError>),
    /// A handle.
    Handle(Committed<Task>),
    /// A ticket for a task that goes on.
    Ticket(TaskId),
    /// Open input requests, and the call that waits for the responses.
    Input(Box<RunningCall>, Outstanding),
    /// Open input requests of the task that the caller waited for.
    TaskInput(TaskId, Outstanding),
    /// An error: what came with the request does not fit.
    Refused(ErrorObject),
    /// Nothing: the caller cannot be reached, and the call was stopped.
    Abandoned,
}

/// Follows a call until its caller can be answered. Dropping the future stops the work, unless it has become a task.
pub(in crate::server) async fn follow(
    engine: &Engine,
    scope: &Scope,
    mut source: Source,
    terms: Terms,
    caller: &mut impl Caller,
) -> Delivered {
    let mut state = State::new(terms, matches!(source, Source::Task(_)));
    loop {
        let next = state.next();
        let due = tokio::select! {
            biased;
            event = source.next() => {
                state.heartbeat.restart();
                match event {
                    SourceEvent::Progress(progress) => {
                        state.heartbeat.record(&progress);
                        caller.progress(&progress).await;
                    }
                    SourceEvent::Log(log) => caller.log(&log).await,
                    SourceEvent::RunsAsTask => state.promote_now(),
                    SourceEvent::Changed(open) => {
                        if let Some(answer) = changed(&mut state, &mut source, open, caller).await {
                            return answer;
                        }
                    }
                    SourceEvent::Ended(outcome) => return Delivered::Outcome(outcome),
                    SourceEvent::Settled(task, settled) => return Delivered::Settled(task, settled),
                }
                continue;
            }
            (key, answer) = caller.answer() => {
                source.answer([(key, answer)].into()).await;
                continue;
            }
            () = sleep_until(next.map(|(at, _)| at)) => next.map(|(_, due)| due),
        };
        match due {
            Some(Due::Heartbeat) => caller.progress(&state.heartbeat.beat()).await,
            Some(Due::Reach) if state.is_out_of_reach(caller.is_live()) => {
                return Delivered::Abandoned;
            }
            Some(Due::Reach) => {}
            Some(Due::Ticket) => return Delivered::Ticket(source.id()),
            Some(Due::Input) => {
                state.input_at = None;
                match source.outstanding() {
                    Some(open) if state.returns(&open) => {
                        return match source {
                            Source::Call(running) => Delivered::Input(running, open),
                            Source::Task(_) => Delivered::TaskInput(source.id(), open),
                        };
                    }
                    Some(_) => match promote(engine, scope, source, &mut state, caller).await {
                        Ok(going_on) => source = going_on,
                        Err(answer) => return answer,
                    },
                    None => {}
                }
            }
            Some(Due::Promotion) => {
                match promote(engine, scope, source, &mut state, caller).await {
                    Ok(going_on) => source = going_on,
                    Err(answer) => return answer,
                }
            }
            None => {}
        }
    }
}

/// Delivers the input requests that are open now; returns the answer to the caller if they are it.
async fn changed(
    state: &mut State,
    source: &mut Source,
    open: Option<Outstanding>,
    caller: &mut impl Caller,
) -> Option<Delivered> {
    match (state.terms.input, &*source) {
        (InputDelivery::Nested, _) => {
            if let Some(open) = &open
                && caller.ask(source.id(), open)
            {
                state.has_asked();
            }
        }
        // A task has all input requests that were made together.
        (InputDelivery::Returned, Source::Task(_)) => {
            return open.map(|open| Delivered::TaskInput(source.id(), open));
        }
        (InputDelivery::Returned, Source::Call(_)) => {
            if let Some(open) = &open {
                match caller.given(open) {
                    Ok(answers) => source.answer(answers).await,
                    Err(error) => return Some(Delivered::Refused(error)),
                }
            }
            let since = state.input_at;
            let asks = source.outstanding().is_some();
            state.input_at = asks.then(|| since.unwrap_or_else(|| Instant::now() + TOGETHER));
        }
    }
    None
}

/// Makes a call a task. `Ok` is what the caller goes on waiting for, `Err` what it is answered with.
async fn promote(
    engine: &Engine,
    scope: &Scope,
    source: Source,
    state: &mut State,
    caller: &mut impl Caller,
) -> Result<Source, Delivered> {
    let Source::Call(running) = source else {
        return Ok(source);
    };
    match running.promote().await {
        Ok(Promotion::Stored(task)) if state.terms.takes_handle => Err(Delivered::Handle(task)),
        Ok(Promotion::Stored(task)) => {
            state.stored = true;
            let answers = caller.promoted(&task);
            if !answers.is_empty()
                && let Err(error) = engine.answer(scope, task.id, answers).await
            {
                tracing::warn!(task = %task.id, %error, "input responses did not reach a new task");
            }
            let waiting = Source::task(engine, scope, task.id).await;
            waiting.map_err(|error| Delivered::Settled(task.id, Err(error)))
        }
        Ok(Promotion::Finished(outcome)) => Err(Delivered::Outcome(outcome)),
        Err((running, error)) => {
            NOT_STORED.log(|left_out| {
                tracing::warn!(call = %running.id(), %error, left_out, "a call was not stored as a task; it goes on");
            });
            state.terms.takes_handle = false;
            state.terms.promote_at = None;
            let source = Source::Call(running);
            if state.terms.input == InputDelivery::Returned && source.outstanding().is_some() {
                // They can only be returned now.
                state.input_at = Some(Instant::now());
            }
            Ok(source)
        }
    }
}

/// The state of one delivery.
struct State {
    terms: Terms,
    /// Whether the caller waits for a task.
    stored: bool,
    /// When the open input requests are returned to the caller.
    input_at: Option<Instant>,
    heartbeat: Heartbeat,
    /// When to look next whether the caller can still be reached.
    reach_at: Option<Instant>,
    /// How many looks in a row did not reach it.
    unreached: u32,
}

/// What is due at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Input,
    Promotion,
    Ticket,
    Heartbeat,
    Reach,
}

impl State {
    fn new(terms: Terms, stored: bool) -> Self {
        Self {
            heartbeat: Heartbeat::new(terms.heartbeat),
            terms,
            stored,
            input_at: None,
            reach_at: None,
            unreached: 0,
        }
    }

    /// What is due next, and when.
    fn next(&self) -> Option<(Instant, Due)> {
        // Input requests that wait for others come first: they decide how the call goes on.
        if let Some(at) = self.input_at {
            return Some((at, Due::Input));
        }
        let plain = !self.stored;
        let in_grace = plain && self.terms.promote_at.is_some();
        let all = [
            (self.terms.promote_at.filter(|_| plain), Due::Promotion),
            (self.terms.ticket_at.filter(|_| self.stored), Due::Ticket),
            (self.heartbeat.due().filter(|_| !in_grace), Due::Heartbeat),
            (self.reach_at.filter(|_| plain), Due::Reach),
        ];
        let all = all.into_iter().filter_map(|(at, due)| Some((at?, due)));
        all.min_by_key(|(at, _)| *at)
    }

    /// Whether input requests are returned to the caller: those made before the work begins, and all of a call that
    /// cannot become a task.
    fn returns(&self, open: &Outstanding) -> bool {
        let before_work = |timing| timing == Timing::BeforeWork;
        let mut open = open.iter();
        !self.terms.takes_handle || open.all(|(_, question)| before_work(question.timing))
    }

    /// A caller that takes tasks gets its handle now, if it would get it later.
    fn promote_now(&mut self) {
        if let Some(at) = &mut self.terms.promote_at
            && self.terms.takes_handle
        {
            *at = Instant::now();
        }
    }

    /// The caller was sent an input request.
    fn has_asked(&mut self) {
        self.reach_at
            .get_or_insert_with(|| Instant::now() + REACH_EVERY);
    }

    /// Whether an input request has waited too long for a caller that cannot be reached. A stream may be resumed
    /// meanwhile.
    fn is_out_of_reach(&mut self, is_live: bool) -> bool {
        self.reach_at = Some(Instant::now() + REACH_EVERY);
        self.unreached = if is_live { 0 } else { self.unreached + 1 };
        self.unreached >= MAX_UNREACHED
    }
}

/// How long after an input request others are waited for, so that they are returned together.
const TOGETHER: Duration = Duration::from_millis(5);

/// How often a call that has sent input requests checks whether its caller can be reached.
const REACH_EVERY: Duration = Duration::from_secs(30);

/// How many checks in a row may fail before the call is stopped.
const MAX_UNREACHED: u32 = 10;

#[cfg(test)]
mod tests {
    use outlast_engine::{AskKind, Question};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn due(state: &State) -> Option<Due> {
        state.next().map(|(_, due)| due)
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_call_is_promoted_then_beats_then_gets_its_ticket() {
        let terms = Terms::waiting((Some(5 * SECOND), Some(2 * SECOND)), InputDelivery::Nested);
        let mut state = State::new(terms.held_after(3 * SECOND), false);
        assert_eq!(due(&state), Some(Due::Promotion));
        state.stored = true;
        assert_eq!(due(&state), Some(Due::Heartbeat));
        tokio::time::advance(4 * SECOND).await;
        state.heartbeat.restart();
        assert_eq!(due(&state), Some(Due::Ticket));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_caller_that_takes_tasks_gets_its_handle_early() {
        let terms = Terms::handle_after(SECOND, InputDelivery::Returned);
        let mut state = State::new(terms, false);
        state.promote_now();
        assert_eq!(state.next(), Some((Instant::now(), Due::Promotion)));
        let terms = Terms::waiting((None, None), InputDelivery::Nested);
        let mut state = State::new(terms.held_after(SECOND), false);
        state.promote_now();
        assert_eq!(
            state.next(),
            Some((Instant::now() + SECOND, Due::Promotion))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_not_stored_keeps_its_heartbeat_and_gets_no_ticket() {
        let terms = Terms::waiting((Some(SECOND), Some(2 * SECOND)), InputDelivery::Nested);
        let mut state = State::new(terms.held_after(SECOND), false);
        state.terms.promote_at = None;
        assert_eq!(due(&state), Some(Due::Heartbeat));
    }

    #[tokio::test(start_paused = true)]
    async fn input_requests_are_returned_before_anything_else_is_due() {
        let open = |timing| {
            let mut question = Question::new(AskKind::ElicitForm, None);
            question.timing = timing;
            Outstanding::new(vec![(AskKey::new("k"), question)]).unwrap()
        };
        let terms = Terms::handle_after(SECOND, InputDelivery::Returned);
        let mut state = State::new(terms, false);
        state.input_at = Some(Instant::now() + 9 * SECOND);
        assert_eq!(due(&state), Some(Due::Input));
        assert!(state.returns(&open(Timing::BeforeWork)));
        assert!(!state.returns(&open(Timing::DuringWork)));
        state.terms.takes_handle = false;
        assert!(state.returns(&open(Timing::DuringWork)));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_caller_that_stays_out_of_reach_is_given_up() {
        let mut state = State::new(Terms::inline(InputDelivery::Nested), false);
        assert_eq!(due(&state), None);
        state.has_asked();
        assert_eq!(due(&state), Some(Due::Reach));
        for _ in 1..MAX_UNREACHED {
            assert!(!state.is_out_of_reach(false));
        }
        assert!(!state.is_out_of_reach(true));
        for _ in 1..MAX_UNREACHED {
            assert!(!state.is_out_of_reach(false));
        }
        assert!(state.is_out_of_reach(false));
    }
}
