//! What is said of a task that is left at its server.

use outlast::client::{self, OutcomeError};

use crate::exit::Failure;
use crate::target::{Named, Starts};
use crate::terminal::say;

/// Where a task is found again.
pub(crate) struct Left {
    /// The server, as it is named in a command line.
    server: String,
    /// The command that starts it, where that stands in the place of a name.
    command: Option<String>,
    /// Whether the server is our child and ends with us.
    is_ours: bool,
}

impl Left {
    pub(crate) fn at(server: &Named) -> Self {
        Self {
            server: server.name.clone(),
            command: (server.starts == Starts::ByCommand).then(|| server.target.endpoint()),
            is_ours: server.starts != Starts::Elsewhere,
        }
    }

    /// The server, as it is named in a command line.
    pub(crate) fn server(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.server)
    }

    /// Says what becomes of the task, and how its result is asked for.
    pub(crate) fn tell(&self, task: &str) {
        if self.is_ours {
            // A task that only the process knew is gone with it.
            say!(
                "The server ends with this command, and the task with it, unless the server keeps tasks elsewhere, as \
                 `outlast stdio -- CMD` does."
            );
        } else {
            say!("The task continues at the server.");
        }
        say!("  next: `{}` waits for its result", self.command_for(task));
    }

    /// The failure of a call that came to no outcome. Where the task may still be at the server, the last line says how to
    /// come back to it.
    pub(crate) fn unsettled(&self, why: OutcomeError, task: Option<&str>) -> Failure {
        match (&why, task) {
            (OutcomeError::Lost { why: fault, .. }, Some(task)) if is_outage(fault) => {
                Failure::OutOfReach {
                    task: task.to_owned(),
                    why: fault.to_string(),
                    next: self.command_for(task),
                }
            }
            _ => why.into(),
        }
    }

    fn command_for(&self, task: &str) -> String {
        match &self.command {
            Some(command) => format!("outlast tasks result {task} -- {command}"),
            None => format!("outlast tasks result {} {task}", self.server),
        }
    }
}

/// Whether the server could not be asked, which says nothing about its tasks.
fn is_outage(fault: &client::Error) -> bool {
    matches!(
        fault,
        client::Error::Transport(_) | client::Error::TimedOut(_)
    )
}
