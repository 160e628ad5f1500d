//! Questions a running call puts to its caller, and the answers.

use std::sync::Arc;

use outlast_wire::{Raw, method};
use serde::{Deserialize, Serialize};

use crate::id::AskKey;

/// A question, before it has a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked.
    pub kind: AskKind,
    /// The parameters of the request, unopened.
    pub params: Option<Raw>,
    /// Whether the call has begun its work.
    pub timing: Timing,
}

/// The questions that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// A form for the caller's person.
    ElicitForm,
    /// A page that the caller's person opens.
    ElicitUrl,
    /// A completion from the caller's model.
    Sample,
    /// A completion that may use tools.
    SampleWithTools,
    /// The folders the caller works in.
    Roots,
}

/// When a question is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Before anything was done: the call could as well be repeated with the answer.
    BeforeWork,
    /// In the middle of the work.
    #[default]
    DuringWork,
}

/// What a caller said to a question: what the request would have answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A result, unopened. Declining is one.
    Result(Raw),
    /// A JSON-RPC error object, unopened.
    Error(Raw),
}

/// The kinds of question a caller can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepts(u8);

impl Question {
    /// A question in the middle of the work.
    pub fn new(kind: AskKind, params: Option<Raw>) -> Self {
        Self {
            kind,
            params,
            timing: Timing::DuringWork,
        }
    }

    /// How many bytes of payload the question carries.
    pub fn size(&self) -> usize {
        self.params.as_ref().map_or(0, Raw::size)
    }
}

impl AskKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::ElicitForm,
        Self::ElicitUrl,
        Self::Sample,
        Self::SampleWithTools,
        Self::Roots,
    ];

    /// The method of the request that asks it.
    pub fn method(self) -> &'static str {
        match self {
            Self::ElicitForm | Self::ElicitUrl => method::ELICIT,
            Self::Sample | Self::SampleWithTools => method::CREATE_MESSAGE,
            Self::Roots => method::ROOTS_LIST,
        }
    }

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::ElicitForm => "form elicitation",
            Self::ElicitUrl => "url elicitation",
            Self::Sample => "sampling",
            Self::SampleWithTools => "sampling with tools",
            Self::Roots => "roots",
        }
    }
}

impl Answer {
    /// How many bytes the answer has.
    pub fn size(&self) -> usize {
        match self {
            Self::Result(raw) | Self::Error(raw) => raw.size(),
        }
    }
}

impl Accepts {
    /// No question at all.
    pub const NONE: Self = Self(0);

    /// Every kind of question.
    pub fn all() -> Self {
        AskKind::ALL.into_iter().collect()
    }

    /// Whether `kind` can be asked.
    pub fn contains(self, kind: AskKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds that are not in `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// One bit for each kind, as stores keep it.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The kinds whose bits are set.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::all().0)
    }
}

impl FromIterator<AskKind> for Accepts {
    fn from_iter<I: IntoIterator<Item = AskKind>>(kinds: I) -> Self {
        Self(
            kinds
                .into_iter()
                .fold(0, |bits, kind| bits | 1 << kind as u8),
        )
    }
}

/// Questions that wait for an answer. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Outstanding(Arc<[(AskKey, Question)]>);

impl Outstanding {
    /// These questions in the order they were asked, or `None` if there are none.
    pub fn new(questions: Vec<(AskKey, Question)>) -> Option<Self> {
        (!questions.is_empty()).then(|| Self(questions.into()))
    }

    /// The questions in the order they were asked.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&AskKey, &Question)> {
        self.0.iter().map(|(key, question)| (key, question))
    }

    /// The question under `key`.
    pub fn get(&self, key: &AskKey) -> Option<&Question> {
        self.iter()
            .find_map(|(found, question)| (found == key).then_some(question))
    }
}
