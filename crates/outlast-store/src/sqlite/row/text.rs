//! The words and the JSON in which parts of a task are written, for people and for us.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::task::{Happening, Keep, Moment, State, Timeline};
use outlast_engine::{
    Answer, AskKey, AskKind, Ending, ErrorCode, Outstanding, Question, Retry, Timing,
};
use outlast_wire::{Raw, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};

/// The word for a state.
pub(super) fn state(state: &State) -> &'static str {
    match state {
        State::Working => "working",
        State::AwaitingInput(_) => "awaiting_input",
        State::Ended(Ending::Result) => "result",
        State::Ended(Ending::ToolError) => "tool_error",
        State::Ended(Ending::Error(_)) => "error",
        State::Ended(Ending::Cancelled) => "cancelled",
    }
}

/// What a word for a state says.
pub(super) enum StateWord {
    Working,
    AwaitingInput,
    Ended(Ending),
}

pub(super) fn read_state(word: &str, code: Option<i64>) -> Option<StateWord> {
    Some(match word {
        "working" => StateWord::Working,
        "awaiting_input" => StateWord::AwaitingInput,
        "result" => StateWord::Ended(Ending::Result),
        "tool_error" => StateWord::Ended(Ending::ToolError),
        "error" => StateWord::Ended(Ending::Error(ErrorCode(code?))),
        "cancelled" => StateWord::Ended(Ending::Cancelled),
        _ => return None,
    })
}

pub(super) fn keep(keep: Keep) -> &'static str {
    match keep {
        Keep::Strict => "strict",
        Keep::WhileLive => "while_live",
    }
}

pub(super) fn read_keep(word: &str) -> Option<Keep> {
    [Keep::Strict, Keep::WhileLive]
        .into_iter()
        .find(|value| keep(*value) == word)
}

pub(super) fn retry(retry: Retry) -> &'static str {
    match retry {
        Retry::Never => "never",
        Retry::Rerun => "rerun",
    }
}

pub(super) fn read_retry(word: &str) -> Option<Retry> {
    [Retry::Never, Retry::Rerun]
        .into_iter()
        .find(|value| retry(*value) == word)
}

pub(super) fn timeline(out: &mut Vec<u8>, timeline: &Timeline) {
    let entries = timeline.moments.iter().map(|moment| EntryRef {
        at: moment.at.0,
        what: &moment.what,
    });
    sequence(out, entries);
}

pub(super) fn read_timeline(text: &str, dropped: u32) -> Result<Timeline, serde_json::Error> {
    let entries: Vec<Entry> = serde_json::from_str(text)?;
    let moments = entries.into_iter().map(|entry| Moment {
        at: Timestamp(entry.at),
        what: entry.what,
    });
    Ok(Timeline {
        moments: moments.collect(),
        dropped,
    })
}

pub(super) fn asks(out: &mut Vec<u8>, outstanding: &Outstanding) {
    let asks = outstanding.iter().map(|(key, question)| AskRef {
        key,
        kind: question.kind,
        timing: question.timing,
        params: question.params.as_ref(),
    });
    sequence(out, asks);
}

pub(super) fn read_asks(text: &str) -> Result<Option<Outstanding>, serde_json::Error> {
    let asks: Vec<Ask> = serde_json::from_str(text)?;
    let questions = asks.into_iter().map(|ask| {
        let question = Question {
            kind: ask.kind,
            params: ask.params,
            timing: ask.timing,
        };
        (ask.key, question)
    });
    Ok(Outstanding::new(questions.collect()))
}

pub(super) fn asked(out: &mut Vec<u8>, keys: &BTreeSet<AskKey>) {
    sequence(out, keys);
}

pub(super) fn read_asked(text: &str) -> Result<BTreeSet<AskKey>, serde_json::Error> {
    serde_json::from_str(text)
}

pub(super) fn answers(out: &mut Vec<u8>, answers: &BTreeMap<AskKey, Answer>) {
    write(out, answers);
}

pub(super) fn read_answers(text: &str) -> Result<BTreeMap<AskKey, Answer>, serde_json::Error> {
    serde_json::from_str(text)
}

fn sequence<T: Serialize>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, &item);
    }
    out.push(b']');
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value)
        .expect("strings, numbers and valid JSON are JSON, and memory takes it");
}

#[derive(Serialize)]
struct EntryRef<'a> {
    at: u64,
    what: &'a Happening,
}

#[derive(Deserialize)]
struct Entry {
    at: u64,
    what: Happening,
}

#[derive(Serialize)]
struct AskRef<'a> {
    key: &'a AskKey,
    kind: AskKind,
    timing: Timing,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Raw>,
}

#[derive(Deserialize)]
struct Ask {
    key: AskKey,
    kind: AskKind,
    timing: Timing,
    #[serde(default, deserialize_with = "present")]
    params: Option<Raw>,
}

/// A member that is there is kept, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}
