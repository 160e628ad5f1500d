//! Follows a call until it ends or is detached: shows its status, asks the user for input, handles
//! Ctrl-C.

use std::cell::RefCell;
use std::time::Duration;

use outlast::client::{Execution, OutcomeError, StatusUpdates};
use outlast::task::Outcome;

use super::status::StatusLine;
use crate::interrupts::Interrupts;
use crate::terminal::say;
use crate::terminal_host::{Lines, TerminalHost};

/// How following ended.
pub(crate) enum End {
    /// The outcome or the error, and the id of the task if the call became one.
    Settled(Result<Outcome, OutcomeError>, Option<String>),
    /// The task with this id continues at the server.
    Detached(String),
}

/// What Ctrl-C does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ask the user, if there is a terminal. Without one the call is detached.
    Ask,
    /// Stop following. The task continues.
    Detach,
}

/// What the user chooses after Ctrl-C.
enum InterruptChoice {
    Cancel,
    Detach,
    Continue,
}

/// Follows `execution` to its end.
pub(crate) async fn follow(
    execution: &Execution,
    host: &TerminalHost,
    interrupt: Interrupt,
) -> End {
    let lines = Lines::default();
    let status = RefCell::new(StatusLine::new());
    let mut updates = execution.updates();
    let mut interrupts = Interrupts::listen();
    loop {
        let interrupted = tokio::select! {
            () = show_until_end(execution, &mut updates, &status) => false,
            () = host.answer_all(&lines, |asking| status.borrow_mut().set_hidden(asking)) => false,
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
        status.borrow_mut().set_hidden(true);
        let task = execution.status().task.map(|task| task.id);
        let choice = match (&task, interrupt, host) {
            // The result of a call without a task could not be fetched later.
            (None, ..) => InterruptChoice::Cancel,
            (Some(_), Interrupt::Ask, TerminalHost::Interactive(..)) => {
                ask_after_interrupt(&lines, &mut interrupts).await
            }
            (Some(_), ..) => InterruptChoice::Detach,
        };
        match (choice, task) {
            (InterruptChoice::Detach, Some(task)) => {
                execution.detach().await;
                return End::Detached(task);
            }
            (InterruptChoice::Continue, _) => {}
            (InterruptChoice::Cancel | InterruptChoice::Detach, _) => {
                if let Err(error) = execution.cancel().await {
                    say!("{error}");
                }
            }
        }
        status.borrow_mut().set_hidden(false);
    }
}

/// Asks what to do after Ctrl-C. A second Ctrl-C detaches.
async fn ask_after_interrupt(lines: &Lines, interrupts: &mut Interrupts) -> InterruptChoice {
    // The terminal shows ^C on the status line.
    say!("");
    let question = "[c]ancel the task, [d]etach and leave it running, or [s]tay?";
    tokio::select! {
        chosen = lines.choose(question, &["c", "d", "s"]) => match chosen {
            Some("c") => InterruptChoice::Cancel,
            Some("s") => InterruptChoice::Continue,
            _ => InterruptChoice::Detach,
        },
        () = interrupts.next() => InterruptChoice::Detach,
    }
}

/// Shows the status of the call until it ends.
async fn show_until_end(
    execution: &Execution,
    updates: &mut StatusUpdates,
    status: &RefCell<StatusLine>,
) {
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
        // The line shows for how long the server has been unreachable, so it changes without an
        // update.
        if let Ok(None) = tokio::time::timeout(refresh, updates.next()).await {
            return;
        }
    }
}
