//! The stored words and JSON of parts of a task, readable by people and by this program.

use std::borrow::Cow;

use outlast_engine::task::{State, Timeline, TimelineEntries, TimelineEntry, TimelineEvent};
use outlast_engine::{Ending, ErrorCode, RetryClass, Task};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};

/// The word for a state. The code of an error follows its word.
pub(crate) fn state(state: &State) -> Cow<'static, str> {
    match state {
        State::Working => "working".into(),
        State::AwaitingInput(_) => "awaiting_input".into(),
        State::Ended(Ending::Result) => "result".into(),
        State::Ended(Ending::ToolError) => "tool_error".into(),
        State::Ended(Ending::Error(code)) => format!("{ERROR}{}", code.0).into(),
        State::Ended(Ending::Cancelled) => "cancelled".into(),
    }
}

/// A parsed state word.
pub(crate) enum StateWord {
    Working,
    AwaitingInput,
    Ended(Ending),
}

pub(crate) fn read_state(word: &str) -> Option<StateWord> {
    Some(match word {
        "working" => StateWord::Working,
        "awaiting_input" => StateWord::AwaitingInput,
        "result" => StateWord::Ended(Ending::Result),
        "tool_error" => StateWord::Ended(Ending::ToolError),
        "cancelled" => StateWord::Ended(Ending::Cancelled),
        error => {
            let code = error.strip_prefix(ERROR)?.parse().ok()?;
            StateWord::Ended(Ending::Error(ErrorCode(code)))
        }
    })
}

pub(crate) fn retry(retry: RetryClass) -> Option<&'static str> {
    match retry {
        RetryClass::Never => None,
        RetryClass::Rerun => Some("rerun"),
    }
}

pub(crate) fn read_retry(word: Option<&str>) -> Option<RetryClass> {
    [RetryClass::Never, RetryClass::Rerun]
        .into_iter()
        .find(|value| retry(*value) == word)
}

/// Writes the history of a task without the parts that are in other columns: its creation and, if
/// it is the last event, its end. Writes nothing if there are no other events.
pub(crate) fn timeline(out: &mut Vec<u8>, task: &Task) {
    let mut entries = &task.timeline.entries[..];
    if task.timeline.dropped == 0 {
        if let [first, rest @ ..] = entries
            && *first == creation(task.created)
        {
            entries = rest;
        }
        if let [rest @ .., last] = entries
            && task.state.ending().is_some()
            && *last == end(task.updated)
        {
            entries = rest;
        }
    }
    for (at, entry) in entries.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[{\"at\":" } else { b",{\"at\":" });
        write(out, &entry.at.0);
        out.extend_from_slice(b",\"what\":");
        write(out, &entry.event);
        out.push(b'}');
    }
    if !entries.is_empty() {
        out.push(b']');
    }
}

/// Reads the timeline of a task that was created at `created` and, if it has ended, last changed at
/// `ended`.
pub(crate) fn read_timeline(
    text: Option<&str>,
    dropped: u32,
    created: Timestamp,
    ended: Option<Timestamp>,
) -> Result<Timeline, serde_json::Error> {
    let stored: Vec<StoredEntry> = text.map_or(Ok(Vec::new()), serde_json::from_str)?;
    let stored = stored.into_iter().map(|entry| TimelineEntry {
        at: Timestamp(entry.at),
        event: entry.what,
    });
    let mut entries = TimelineEntries::with_capacity(stored.len() + 2);
    entries.extend(stored);
    let contains = |event| {
        entries
            .iter()
            .any(|entry: &TimelineEntry| entry.event == event)
    };
    let begins = dropped == 0 && !contains(TimelineEvent::Created);
    let ends = dropped == 0 && !contains(TimelineEvent::Ended);
    if begins {
        entries.insert(0, creation(created));
    }
    entries.extend(ended.filter(|_| ends).map(end));
    Ok(Timeline { entries, dropped })
}

fn creation(at: Timestamp) -> TimelineEntry {
    let event = TimelineEvent::Created;
    TimelineEntry { at, event }
}

fn end(at: Timestamp) -> TimelineEntry {
    let event = TimelineEvent::Ended;
    TimelineEntry { at, event }
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("strings and numbers are JSON, and memory takes it");
}

#[derive(Deserialize)]
struct StoredEntry {
    at: u64,
    what: TimelineEvent,
}

const ERROR: &str = "error ";
