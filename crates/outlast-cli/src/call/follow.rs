//! Stays with a call until it is over or left: shows how it stands, asks what its server asks, hears Ctrl-C.

use std::cell::RefCell;
use std::time::Duration;

use outlast::client::{Execution, OutcomeError, StatusUpdates};
use outlast::engine::Outcome;

use super::status::StatusLine;
use crate::interrupts::Interrupts;
use crate::person::{Lines, Person};
use crate::terminal::say;

/// How following ended.
pub(crate) enum End {
    /// The outcome, or why there is none, and the task if there was one.
    Settled(Result<Outcome, OutcomeError>, Option<String>),
    /// The task goes on without us.
    Left(String),
}

/// What Ctrl-C means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The person is asked, if there is one; nothing is lost if not.
    Ask,
    /// We only watch, and leave.
    Leave,
}

/// What a person chooses after Ctrl-C.
enum Choice {
    Cancel,
    Leave,
    GoOn,
}

/// Follows `execution` to its end.
pub(crate) async fn follow(execution: Execution, person: &Person, interrupt: Interrupt) -> End {
    let lines = Lines::default();
    let status = RefCell::new(StatusLine::new());
    let mut updates = execution.updates();
    let mut interrupts = Interrupts::listen();
    loop {
        let interrupted = tokio::select! {
            () = shown(&execution, &mut updates, &status) => false,
            () = person.attend(&lines, |asking| status.borrow_mut().give_way(asking)) => false,
            () = interrupts.next() => true,
        };
        if !interrupted {
            let settled = execution.outcome().await;
            let view = execution.status();
            status.borrow_mut().finish(&view);
            if let Some(why) = &view.output_mismatch {
                say!(
                    "warning: the structured result does not fit the tool's `outputSchema`: {why}"
                );
            }
            return End::Settled(settled, view.task.map(|task| task.id));
        }
        status.borrow_mut().give_way(true);
        let task = execution.status().task.map(|task| task.id);
        let choice = match (&task, interrupt, person) {
            // Nobody could ever fetch the result of a plain call.
            (None, ..) => Choice::Cancel,
            (Some(_), Interrupt::Ask, Person::There(..)) => asked(&lines, &mut interrupts).await,
            (Some(_), ..) => Choice::Leave,
        };
        match (choice, task) {
            (Choice::Leave, Some(task)) => {
                execution.detach().await;
                return End::Left(task);
            }
            (Choice::GoOn, _) => {}
            (Choice::Cancel | Choice::Leave, _) => {
                if let Err(error) = execution.cancel().await {
                    say!("{error}");
                }
            }
        }
        status.borrow_mut().give_way(false);
    }
}

/// Asks what Ctrl-C meant; pressed again, it means to leave.
async fn asked(lines: &Lines, interrupts: &mut Interrupts) -> Choice {
    // The terminal has shown ^C on the line of the status.
    say!("");
    let question = "[c]ancel the task, [d]etach and leave it running, or [s]tay?";
    tokio::select! {
        chosen = lines.choose(question, &["c", "d", "s"]) => match chosen {
            Some("c") => Choice::Cancel,
            Some("s") => Choice::GoOn,
            _ => Choice::Leave,
        },
        () = interrupts.next() => Choice::Leave,
    }
}

/// Shows how the call stands until it is over.
async fn shown(execution: &Execution, updates: &mut StatusUpdates, status: &RefCell<StatusLine>) {
    loop {
        let view = execution.status();
        if view.ended.is_some() {
            return;
        }
        status.borrow_mut().show(&view);
        let refresh = match view.outage {
            Some(_) => status.borrow().refresh(),
            None => Duration::MAX,
        };
        // The line says for how long the server has been unreachable, so it changes without news.
        if let Ok(None) = tokio::time::timeout(refresh, updates.next()).await {
            return;
        }
    }
}
