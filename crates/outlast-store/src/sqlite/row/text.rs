//! The words and the JSON in which parts of a task are written, for people and for us.

use std::borrow::Cow;

use outlast_engine::task::{Happening, Moment, State, Timeline};
use outlast_engine::{Ending, ErrorCode, Retry, Task};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};

/// The word for a state; an error has its code behind it.
pub(super) fn state(state: &State) -> Cow<'static, str> {
    match state {
        State::Working => "working".into(),
        State::AwaitingInput(_) => "awaiting_input".into(),
        State::Ended(Ending::Result) => "result".into(),
        State::Ended(Ending::ToolError) => "tool_error".into(),
        State::Ended(Ending::Error(code)) => format!("{ERROR}{}", code.0).into(),
        State::Ended(Ending::Cancelled) => "cancelled".into(),
    }
}

/// What a word for a state says.
pub(super) enum StateWord {
    Working,
    AwaitingInput,
    Ended(Ending),
}

pub(super) fn read_state(word: &str) -> Option<StateWord> {
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

pub(super) fn retry(retry: Retry) -> Option<&'static str> {
    match retry {
        Retry::Never => None,
        Retry::Rerun => Some("rerun"),
    }
}

pub(super) fn read_retry(word: Option<&str>) -> Option<Retry> {
    [Retry::Never, Retry::Rerun]
        .into_iter()
        .find(|value| retry(*value) == word)
}

/// Writes what happened to a task, but for what other columns say: when it was created and, if that was last, when it
/// ended. Nothing if there is nothing else.
pub(super) fn timeline(out: &mut Vec<u8>, task: &Task) {
    let mut moments = &task.timeline.moments[..];
    if task.timeline.dropped == 0 {
        if let [first, rest @ ..] = moments
            && *first == creation(task.created)
        {
            moments = rest;
        }
        if let [rest @ .., last] = moments
            && task.state.ending().is_some()
            && *last == end(task.updated)
        {
            moments = rest;
        }
    }
    for (at, moment) in moments.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[{\"at\":" } else { b",{\"at\":" });
        write(out, &moment.at.0);
        out.extend_from_slice(b",\"what\":");
        write(out, &moment.what);
        out.push(b'}');
    }
    if !moments.is_empty() {
        out.push(b']');
    }
}

/// The timeline of a task that was created then and, if it has ended, last changed at `ended`.
pub(super) fn read_timeline(
    text: Option<&str>,
    dropped: u32,
    created: Timestamp,
    ended: Option<Timestamp>,
) -> Result<Timeline, serde_json::Error> {
    let entries: Vec<Entry> = text.map_or(Ok(Vec::new()), serde_json::from_str)?;
    let entries = entries.into_iter().map(|entry| Moment {
        at: Timestamp(entry.at),
        what: entry.what,
    });
    let mut moments = Vec::with_capacity(entries.len() + 2);
    moments.extend(entries);
    let tells = |what| moments.iter().any(|moment: &Moment| moment.what == what);
    let begins = dropped == 0 && !tells(Happening::Created);
    let ends = dropped == 0 && !tells(Happening::Ended);
    if begins {
        moments.insert(0, creation(created));
    }
    moments.extend(ended.filter(|_| ends).map(end));
    let moments = moments.into();
    Ok(Timeline { moments, dropped })
}

fn creation(at: Timestamp) -> Moment {
    let what = Happening::Created;
    Moment { at, what }
}

fn end(at: Timestamp) -> Moment {
    let what = Happening::Ended;
    Moment { at, what }
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("strings and numbers are JSON, and memory takes it");
}

#[derive(Deserialize)]
struct Entry {
    at: u64,
    what: Happening,
}

const ERROR: &str = "error ";
