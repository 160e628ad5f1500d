//! Where a detached task is, and the command that gets its result.

use outlast::client::{self, OutcomeError};

use crate::connect_error::cause;
use crate::exit::Failure;
use crate::target::{NamedServer, StartedBy};
use crate::terminal::say;

pub(crate) struct TaskLocation {
    /// The server, as it is named on a command line.
    server: String,
    /// The command that starts the server, if it was given instead of a name.
    command: Option<String>,
    /// Whether the server is a child of this process and ends with it.
    is_child: bool,
}

impl TaskLocation {
    pub(crate) fn of(server: &NamedServer) -> Self {
        Self {
            server: server.name.clone(),
            command: (server.starts == StartedBy::CommandLine).then(|| server.target.endpoint()),
            is_child: server.starts != StartedBy::Other,
        }
    }

    pub(crate) fn server(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.server)
    }

    /// Prints what happens to the task, and the command that gets its result.
    pub(crate) fn print_next_step(&self, task: &str) {
        if self.is_child {
            // A task that only that process knew is lost.
            say!(
                "The server ends with this command, and the task with it, unless the server keeps tasks elsewhere, as \
                 `outlast stdio -- CMD` does."
            );
        } else {
            say!("The task continues at the server.");
        }
        say!("  next: `{}` waits for its result", self.command_for(task));
    }

    /// The failure of a call without an outcome. If the task may still exist at the server, the
    /// last line is the command that gets its result.
    pub(crate) fn failure(&self, why: OutcomeError, task: Option<&str>) -> Failure {
        match (&why, task) {
            (OutcomeError::Lost { why: fault, .. }, Some(task)) if is_outage(fault) => {
                Failure::OutOfReach {
                    task: task.to_owned(),
                    why: cause(fault),
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

/// Whether the server could not be reached, which does not show that its tasks are lost.
fn is_outage(fault: &client::Error) -> bool {
    matches!(
        fault,
        client::Error::Transport(_) | client::Error::TimedOut(_)
    )
}
