//! What happened to a task, when: a bounded list for people who look into it.

use std::sync::Arc;

use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::id::{AskKey, Attempt};

/// A bounded history. The first entry is kept; of the rest, the newest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The entries, oldest first.
    pub moments: Moments,
    /// How many entries between the first and the second were dropped.
    pub dropped: u32,
}

/// The entries of a timeline. Most tasks begin and end, and nothing else happens to them.
pub type Moments = SmallVec<[Moment; 2]>;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Happening,
}

/// What can happen to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// It was accepted.
    Created,
    /// A new attempt began after the last executor was gone.
    Claimed(Attempt),
    /// Its runner said something.
    Status(Arc<str>),
    /// Its runner can find the work again after a restart.
    Attached,
    /// It asked its caller.
    Asked(AskKey),
    /// Its caller answered.
    Answered(AskKey),
    /// A question was taken back.
    Withdrawn(AskKey),
    /// Its caller wants it to stop.
    CancelRequested,
    /// Its TTL became this many milliseconds.
    Extended(u64),
    /// It ended.
    Ended,
}

impl Timeline {
    /// The most entries a timeline has.
    pub const LIMIT: usize = 64;

    /// The most characters of a status text that are kept here.
    pub const TEXT_LIMIT: usize = 200;

    pub(crate) fn starting(at: Timestamp) -> Self {
        Self {
            moments: smallvec![Moment {
                at,
                what: Happening::Created,
            }],
            dropped: 0,
        }
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: Happening) {
        let what = match what {
            Happening::Status(text) if text.len() > Self::TEXT_LIMIT => Happening::Status(
                text.chars()
                    .take(Self::TEXT_LIMIT)
                    .collect::<String>()
                    .into(),
            ),
            what => what,
        };
        if self.moments.len() >= Self::LIMIT {
            self.moments.remove(1);
            self.dropped = self.dropped.saturating_add(1);
        }
        // Most histories have few entries and are kept for long.
        self.moments.reserve_exact(1);
        self.moments.push(Moment { at, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_its_beginning_and_its_end() {
        let mut timeline = Timeline::starting(Timestamp(0));
        for n in 1..=1_000 {
            timeline.note(Timestamp(n), Happening::Status("x".repeat(1_000).into()));
        }
        assert_eq!(timeline.moments.len(), Timeline::LIMIT);
        assert_eq!(timeline.dropped, 1_001 - Timeline::LIMIT as u32);
        assert_eq!(timeline.moments[0].what, Happening::Created);
        assert_eq!(timeline.moments[Timeline::LIMIT - 1].at, Timestamp(1_000));
        let Happening::Status(text) = &timeline.moments[1].what else {
            panic!("a status")
        };
        assert_eq!(text.len(), Timeline::TEXT_LIMIT);
    }
}
