//! What is said of a task that is left at its server.

use crate::target::{Named, Starts};

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
        let next = match &self.command {
            Some(command) => format!("outlast tasks result {task} -- {command}"),
            None => format!("outlast tasks result {} {task}", self.server),
        };
        let what = match self.is_ours {
            // A task that only the process knew is gone with it.
            true => {
                "The server ends with this command, and the task with it, unless the server keeps tasks elsewhere, as \
                 `outlast stdio -- CMD` does."
            }
            false => "The task goes on at the server.",
        };
        eprintln!("{what}\n  next: `{next}` waits for its result");
    }
}
