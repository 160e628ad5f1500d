//! The history of a task: a bounded list of events for operators.

use std::sync::Arc;

use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::id::{Attempt, InputKey};

/// A bounded history. It retains the first entry and the newest of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The entries, oldest first.
    pub entries: TimelineEntries,
    /// The number of dropped entries between the first and the second.
    pub dropped: u32,
}

/// The entries of a timeline. Most tasks have two: created and ended.
pub type TimelineEntries = SmallVec<[TimelineEntry; 2]>;

/// One event with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: TimelineEvent,
}

/// An event in the history of a task. The serialised names are part of the stored format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineEvent {
    /// The task was created.
    Created,
    /// A new attempt started after the executor was lost.
    Claimed(Attempt),
    /// The runner set a status message.
    Status(Arc<str>),
    /// The runner saved its resume state.
    #[serde(rename = "attached")]
    ResumeStateSaved,
    /// The runner made an input request.
    #[serde(rename = "asked")]
    InputRequested(InputKey),
    /// The caller sent an input response.
    #[serde(rename = "answered")]
    InputProvided(InputKey),
    /// An input request was withdrawn.
    #[serde(rename = "withdrawn")]
    InputWithdrawn(InputKey),
    /// The caller requested a cancellation.
    CancelRequested,
    /// The work was given away, and the task has no executor.
    Detached,
    /// The TTL became this many milliseconds.
    Extended(u64),
    /// The task ended.
    Ended,
}

impl Timeline {
    /// The maximum number of entries.
    pub const MAX_ENTRIES: usize = 64;

    /// The maximum number of characters of a status message in an entry.
    pub const MAX_STATUS_CHARS: usize = 200;

    pub(crate) fn starting(at: Timestamp) -> Self {
        Self {
            entries: smallvec![TimelineEntry {
                at,
                event: TimelineEvent::Created,
            }],
            dropped: 0,
        }
    }

    pub(crate) fn record(&mut self, at: Timestamp, event: TimelineEvent) {
        let event = match event {
            TimelineEvent::Status(text) if text.len() > Self::MAX_STATUS_CHARS => {
                TimelineEvent::Status(
                    text.chars()
                        .take(Self::MAX_STATUS_CHARS)
                        .collect::<String>()
                        .into(),
                )
            }
            event => event,
        };
        if self.entries.len() >= Self::MAX_ENTRIES {
            self.entries.remove(1);
            self.dropped = self.dropped.saturating_add(1);
        }
        // Most histories have few entries and are stored for long: allocate no more than needed.
        self.entries.reserve_exact(1);
        self.entries.push(TimelineEntry { at, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_retains_its_first_and_newest_entries() {
        let mut timeline = Timeline::starting(Timestamp(0));
        for n in 1..=1_000 {
            timeline.record(
                Timestamp(n),
                TimelineEvent::Status("x".repeat(1_000).into()),
            );
        }
        assert_eq!(timeline.entries.len(), Timeline::MAX_ENTRIES);
        assert_eq!(timeline.dropped, 1_001 - Timeline::MAX_ENTRIES as u32);
        assert_eq!(timeline.entries[0].event, TimelineEvent::Created);
        assert_eq!(
            timeline.entries[Timeline::MAX_ENTRIES - 1].at,
            Timestamp(1_000)
        );
        let TimelineEvent::Status(text) = &timeline.entries[1].event else {
            panic!("a status")
        };
        assert_eq!(text.len(), Timeline::MAX_STATUS_CHARS);
    }
}
