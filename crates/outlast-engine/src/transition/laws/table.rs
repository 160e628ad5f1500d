//! The table of every command in every state: which are legal, and how the others are refused
//! (V1-LIFE-2, V1-LIFE-3).

use std::sync::Arc;

use crate::id::{Attempt, InputKey};
use crate::laws::fixtures::{self, CREATED, TTL_MS};
use crate::outcome::{Ending, ErrorCode, Outcome};
use crate::task::{Lifetime, ResumeState, State, Task, TtlPolicy};
use crate::transition::{Command, Next, Refused, Takeover};

/// The expected result of a row.
enum Expected {
    Works,
    Waits,
    Ends(Ending),
    No(Refused),
}

use Expected::{Ends, No, Waits, Works};

#[test]
fn a_working_task() {
    let no_such_request = || No(Refused::NotOutstanding);
    let rows = [
        (ask("new"), Waits),
        (withdraw("new"), no_such_request()),
        (fixtures::provide_input("new"), no_such_request()),
        (Command::ProvideInput([].into()), no_such_request()),
        (confirm("new"), no_such_request()),
        (status("drawing"), Works),
        (attach(), Works),
        (Command::CancelNow, Ends(Ending::Cancelled)),
        (request_cancel(), Works),
        (end(fixtures::result("1")), Ends(Ending::Result)),
        (end(tool_error()), Ends(Ending::ToolError)),
        (end(error()), Ends(Ending::Error(ErrorCode(-7)))),
        (end(Outcome::Cancelled), Ends(Ending::Cancelled)),
        (Command::Due, No(Refused::NotDue)),
        (Command::Extend { ttl: TTL_MS + 1 }, Works),
        (Command::Extend { ttl: TTL_MS }, No(Refused::Unchanged)),
        (claim(Takeover::Reattach), Works),
        (claim(Takeover::Rerun), Works),
    ];
    check(&fixtures::task(1), rows);
}

#[test]
fn a_task_that_awaits_input() {
    let task = apply(&fixtures::task(1), ask("open"));
    let reused = || No(Refused::KeyReused(InputKey::new("open")));
    let rows = [
        (ask("new"), Waits),
        (ask("open"), reused()),
        (withdraw("open"), Works),
        (withdraw("new"), No(Refused::NotOutstanding)),
        (fixtures::provide_input("open"), Works),
        (fixtures::provide_input("new"), No(Refused::NotOutstanding)),
        (confirm("open"), No(Refused::NotOutstanding)),
        (status("drawing"), Waits),
        (attach(), Waits),
        (Command::CancelNow, Ends(Ending::Cancelled)),
        (request_cancel(), Waits),
        (end(fixtures::result("1")), Ends(Ending::Result)),
        (end(error()), Ends(Ending::Error(ErrorCode(-7)))),
        (Command::Due, No(Refused::NotDue)),
        (Command::Extend { ttl: TTL_MS + 1 }, Waits),
        (claim(Takeover::Reattach), Waits),
        (claim(Takeover::Rerun), Works),
    ];
    check(&task, rows);
    for gone in [withdraw("open"), fixtures::provide_input("open")] {
        check(&apply(&task, gone), [(ask("open"), reused())]);
    }
    // Also in a later attempt.
    let again = apply(&task, claim(Takeover::Rerun));
    let ask = Command::RequestInput {
        attempt: again.attempt,
        key: InputKey::new("open"),
        request: fixtures::input_request(),
        limit: 256,
    };
    check(&again, [(ask, reused())]);
}

#[test]
fn an_ended_task() {
    let open = apply(&fixtures::task(1), ask("open"));
    for outcome in [
        fixtures::result("1"),
        tool_error(),
        error(),
        Outcome::Cancelled,
    ] {
        let ending = outcome.ending();
        let over = || No(Refused::AlreadyEnded(ending));
        let rows = [
            (ask("new"), over()),
            (withdraw("open"), over()),
            (fixtures::provide_input("open"), over()),
            (confirm("open"), over()),
            (status("drawing"), over()),
            (attach(), over()),
            (Command::CancelNow, over()),
            (request_cancel(), over()),
            (end(fixtures::result("2")), over()),
            (end(Outcome::Cancelled), over()),
            (Command::Due, No(Refused::NotDue)),
            (Command::Extend { ttl: TTL_MS + 1 }, Ends(ending)),
            (Command::Extend { ttl: TTL_MS }, No(Refused::Unchanged)),
            (claim(Takeover::Reattach), over()),
            (claim(Takeover::Rerun), over()),
        ];
        check(&apply(&open, end(outcome)), rows);
    }
}

// S0-50.
#[test]
fn a_refused_change_of_an_ended_task_is_documented() {
    for (outcome, status_word) in [
        (fixtures::result("1"), "result"),
        (tool_error(), "tool error"),
        (error(), "error"),
        (Outcome::Cancelled, "cancelled"),
    ] {
        let over = apply(&fixtures::task(1), end(outcome));
        let refused = Arc::new(over).apply(status("drawing"), CREATED.plus(1));
        let words = refused.expect_err("it has ended").to_string();
        let expected = format!(
            "Cannot transition from terminal status '{status_word}': the task has already ended"
        );
        assert_eq!(words, expected);
    }
}

#[test]
fn a_stale_attempt() {
    let task = apply(&fixtures::task(1), claim(Takeover::Reattach));
    let refused = || {
        No(Refused::Superseded {
            given: Attempt(1),
            current: Attempt(2),
        })
    };
    let rows = [
        ask("new"),
        withdraw("open"),
        confirm("open"),
        status("drawing"),
        attach(),
        end(fixtures::result("1")),
    ];
    check(&task, rows.map(|command| (command, refused())));
    // Commands of the caller have no attempt.
    check(&task, [(Command::CancelNow, Ends(Ending::Cancelled))]);
}

#[test]
fn too_many_input_requests() {
    let ask = |key| Command::RequestInput {
        attempt: Attempt(1),
        key: InputKey::new(key),
        request: fixtures::input_request(),
        limit: 2,
    };
    let two = apply(&apply(&fixtures::task(1), ask("1")), ask("2"));
    let refused = || No(Refused::TooManyInputRequests { limit: 2 });
    check(&two, [(ask("3"), refused())]);
    // Answered input requests count.
    check(
        &apply(&two, fixtures::provide_input("1")),
        [(ask("3"), refused())],
    );
}

#[test]
fn an_expired_task() {
    let kept = Lifetime::new(TTL_MS, TtlPolicy::KeepLive, None);
    let at = CREATED.plus(TTL_MS);
    for task in [
        fixtures::task(1),
        apply(&fixtures::task(1), Command::CancelNow),
    ] {
        let reply = Arc::new(task.clone()).apply(Command::Extend { ttl: 2 * TTL_MS }, at);
        assert_eq!(
            reply,
            Err(Refused::Expired),
            "an expired task cannot be extended"
        );
        let reply = Arc::new(task).apply(Command::Due, at).expect("it is due");
        assert_eq!(reply.next, Next::Removed);
    }
    let reply = Arc::new(fixtures::task_with_lifetime(1, kept)).apply(Command::Due, at);
    let Next::Stored(next, _) = reply.expect("it is due").next else {
        panic!("a running task is kept")
    };
    assert_eq!(next.lifetime.ttl_ms, 2 * TTL_MS);
}

fn check<const N: usize>(task: &Task, rows: [(Command, Expected); N]) {
    for (command, then) in rows {
        let reply = Arc::new(task.clone()).apply(command.clone(), CREATED.plus(1));
        let state = reply.map(|step| match step.next {
            Next::Stored(next, _) => next.state.clone(),
            Next::Removed => panic!("{command:?} removed a task before its time"),
        });
        let fits = match (&state, &then) {
            (Ok(State::Working), Works) | (Ok(State::AwaitingInput(_)), Waits) => true,
            (Ok(State::Ended(ending)), Ends(expected)) => ending == expected,
            (Err(refused), No(expected)) => refused == expected,
            _ => false,
        };
        assert!(fits, "{command:?} gave {state:?}");
    }
}

fn apply(task: &Task, command: Command) -> Task {
    Arc::unwrap_or_clone(fixtures::change(task, command, CREATED).next)
}

fn ask(key: &str) -> Command {
    fixtures::request_input(&fixtures::task(1), key)
}

fn withdraw(key: &str) -> Command {
    Command::WithdrawInput {
        attempt: Attempt(1),
        key: InputKey::new(key),
    }
}

fn confirm(key: &str) -> Command {
    Command::ConfirmInput {
        attempt: Attempt(1),
        key: InputKey::new(key),
    }
}

fn status(message: &str) -> Command {
    fixtures::status(&fixtures::task(1), message)
}

fn attach() -> Command {
    Command::SaveResumeState {
        attempt: Attempt(1),
        state: ResumeState([1, 2].into()),
    }
}

fn request_cancel() -> Command {
    Command::RequestCancel {
        deadline: CREATED.plus(5_000),
    }
}

fn end(outcome: Outcome) -> Command {
    fixtures::end(&fixtures::task(1), outcome)
}

fn claim(how: Takeover) -> Command {
    Command::Claim {
        executor: fixtures::NODE_B,
        how,
    }
}

fn tool_error() -> Outcome {
    Outcome::ToolError(fixtures::raw("1"), Some("no paper".into()))
}

fn error() -> Outcome {
    Outcome::error(ErrorCode(-7), "no ink")
}
