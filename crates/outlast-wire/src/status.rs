//! The five status words of a task, the same in both generations.

use std::fmt;
use std::str::FromStr;

/// The status of a task on the wire (V1-LIFE-4, V2-LIFE-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The work runs.
    Working,
    /// The receiver needs input from the requestor.
    InputRequired,
    /// The work ended with a result.
    Completed,
    /// The work ended with an error, or in V1 with a flagged tool result.
    Failed,
    /// The work was cancelled.
    Cancelled,
}

/// The word is not one of the five.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task status `{0}`")]
pub struct UnknownStatus(pub String);

impl Status {
    /// The status word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a task in this status never changes again (V1-LIFE-3, V2-LIFE-6).
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, UnknownStatus> {
        [
            Self::Working,
            Self::InputRequired,
            Self::Completed,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|status| status.as_str() == word)
        .ok_or_else(|| UnknownStatus(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S0-67, S4-42, S4-72.
    #[test]
    fn only_completed_failed_and_cancelled_are_terminal() {
        for (word, terminal) in [
            ("working", false),
            ("input_required", false),
            ("completed", true),
            ("failed", true),
            ("cancelled", true),
        ] {
            let status: Status = word.parse().expect("it is one of the five");
            assert_eq!(status.is_terminal(), terminal, "{word}");
        }
        assert!("expired".parse::<Status>().is_err());
    }
}
