//! What a child says on its stdout: one fact a line, only after it was acknowledged.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// An acknowledged fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ack {
    /// A task exists, and lives until `expires`.
    Created {
        /// Its id.
        id: String,
        /// The owner of the task.
        owner: String,
        /// When its time is over, in milliseconds since the epoch.
        expires: u64,
        /// Whether it may run more than once.
        repeatable: bool,
    },
    /// The work of a task began, for the given attempt. Said by the work itself.
    Ran {
        /// The task.
        id: String,
    },
    /// A task was seen to have ended like this.
    Ended {
        /// The task.
        id: String,
        /// How, in the words of `Debug`.
        ending: String,
        /// The body.
        body: Option<String>,
    },
    /// A task was cancelled at once.
    Cancelled {
        /// The task.
        id: String,
    },
    /// A task was asked to stop.
    CancelAsked {
        /// The task.
        id: String,
    },
    /// A question was answered.
    Answered {
        /// The task.
        id: String,
        /// The question.
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
    /// Says it.
    pub fn say(&self) {
        let mut line = serde_json::to_string(self).expect("strings and numbers are JSON");
        line.push('\n');
        // One write: a line is there as a whole or not at all. A parent that is gone needs no facts.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }

    /// What a line says; the last one of a killed child may be cut short.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
