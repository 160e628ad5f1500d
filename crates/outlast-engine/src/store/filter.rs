//! Which tasks a search returns.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::Snapshot;
use crate::outcome::Ending;
use crate::owner::Owner;
use crate::task::{State, Task};

/// Selects tasks. A task matches if it matches every field that is set. The default matches all
/// tasks of all owners.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The owner.
    pub owner: Option<Owner>,
    /// The name of the runner: in a gateway, the server.
    pub runner: Option<Arc<str>>,
    /// The name of the tool.
    pub tool: Option<Arc<str>>,
    /// The statuses; all if empty.
    pub statuses: Statuses,
    /// The earliest creation time.
    pub created_from: Option<Timestamp>,
    /// A text: the start of the id, or a part of the tool or of the status message. ASCII letters
    /// match in either case. The request and the body are not searched.
    pub text: Option<Arc<str>>,
}

/// The status of a task for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The work runs.
    Working,
    /// The work waits for input.
    InputRequired,
    /// It ended with a result.
    Completed,
    /// It ended with an error, or with a result flagged `isError`.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A set of [`Status`]es.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses(u8);

impl Filter {
    /// Whether `task` matches.
    pub fn matches(&self, task: &Snapshot) -> bool {
        let named = |wanted: &Option<Arc<str>>, name: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == name)
        };
        self.owner
            .as_ref()
            .is_none_or(|owner| owner == task.owner())
            && self.statuses.allow(Status::of(task))
            && self.created_from.is_none_or(|from| task.created() >= from)
            && named(&self.runner, Some(task.runner()))
            && named(&self.tool, task.tool())
            && self.text.as_deref().is_none_or(|text| {
                let id = task.id().to_string();
                starts_with(&id, text)
                    || [task.tool(), task.message()]
                        .into_iter()
                        .flatten()
                        .any(|found| contains(found, text))
            })
    }
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status of `task`.
    pub fn of(task: &Snapshot) -> Self {
        match task {
            Snapshot::Open(task) => Self::of_task(task),
            Snapshot::Ended(summary) => Self::of_ending(summary.ending),
        }
    }

    /// The status of a whole `task`.
    pub fn of_task(task: &Task) -> Self {
        match task.state {
            State::Working => Self::Working,
            State::AwaitingInput(_) => Self::InputRequired,
            State::Ended(ending) => Self::of_ending(ending),
        }
    }

    fn of_ending(ending: Ending) -> Self {
        match ending {
            Ending::Result => Self::Completed,
            Ending::ToolError | Ending::Error(_) => Self::Failed,
            Ending::Cancelled => Self::Cancelled,
        }
    }

    /// The word of V1.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl Statuses {
    /// Whether the set contains `status`.
    pub fn contains(self, status: Status) -> bool {
        self.0 & (1 << status as u8) != 0
    }

    fn allow(self, status: Status) -> bool {
        self == Self::default() || self.contains(status)
    }
}

impl FromIterator<Status> for Statuses {
    fn from_iter<I: IntoIterator<Item = Status>>(statuses: I) -> Self {
        let bits = statuses.into_iter();
        Self(bits.fold(0, |bits, status| bits | 1 << status as u8))
    }
}

fn starts_with(text: &str, start: &str) -> bool {
    text.as_bytes()
        .get(..start.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
}

fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty()
        || text
            .windows(part.len())
            .any(|found| found.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_words_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.word()), Some(status));
        }
        assert_eq!(Status::parse("Working"), None);
    }

    #[test]
    fn text_matches_in_either_case() {
        assert!(contains("Render PDF", "pdf") && contains("x", ""));
        assert!(!contains("Render", "renders") && !contains("", "a"));
        assert!(starts_with("ABc", "abC") && !starts_with("ab", "abc"));
    }
}
