//! An acknowledged fact. The child prints each one on a line, after the acknowledgement.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// An acknowledged fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ack {
    /// A task exists, and is stored until `expires`.
    Created {
        /// Its id.
        id: String,
        /// The owner of the task.
        owner: String,
        /// When it expires, in milliseconds since the epoch.
        expires: u64,
        /// Whether it may run more than once.
        repeatable: bool,
    },
    /// The work of a task started. The work itself prints this.
    Ran {
        /// The task.
        id: String,
    },
    /// A task has ended.
    Ended {
        /// The task.
        id: String,
        /// Its ending, as `Debug` prints it.
        ending: String,
        /// The body.
        body: Option<String>,
    },
    /// A task was cancelled immediately.
    Cancelled {
        /// The task.
        id: String,
    },
    /// The cancellation of a task was requested.
    CancelRequested {
        /// The task.
        id: String,
    },
    /// An input request got its response.
    InputProvided {
        /// The task.
        id: String,
        /// The key of the input request.
        key: String,
    },
    /// A record has this value or a later one.
    Record {
        /// Which record.
        key: String,
        /// A number that grows.
        value: u64,
    },
    /// A caller got the error that the store cannot be written now.
    Unavailable,
}

impl Ack {
    /// Prints it.
    pub fn print(&self) {
        let mut line = serde_json::to_string(self).expect("strings and numbers are JSON");
        line.push('\n');
        // One write, so that a line is complete or missing. The parent may have ended.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }

    /// Parses a line. The last line of a killed child may be incomplete.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
