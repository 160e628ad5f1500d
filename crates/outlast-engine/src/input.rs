//! Input requests of a running call to its caller (elicitation, sampling, roots), and the input
//! responses.
//!
//! What a task remembers of them is in [`task::InputHistory`](crate::task::InputHistory); the
//! transitions are in `transition::input`.

use std::sync::Arc;

use outlast_wire::{Raw, method};
use serde::{Deserialize, Serialize};

use crate::id::InputKey;

/// An input request without its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRequest {
    /// What the caller is asked for.
    pub kind: InputKind,
    /// The parameters of the request, not parsed.
    pub params: Option<Raw>,
    /// Whether the call has started its work.
    pub timing: InputTiming,
}

/// The kinds of input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// A form for the user of the caller.
    ElicitForm,
    /// A URL that the user of the caller opens.
    ElicitUrl,
    /// A completion by the caller's model.
    Sample,
    /// A completion that may use tools.
    SampleWithTools,
    /// The directories that the caller works in.
    Roots,
}

/// When an input request is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputTiming {
    /// Before any work is done: the caller can be asked to repeat its call with the input response.
    BeforeWork,
    /// While the work runs.
    #[default]
    DuringWork,
}

/// What the caller returned for an input request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputResponse {
    /// A result, not parsed. A declined elicitation is a result.
    Result(Raw),
    /// A JSON-RPC error object, not parsed.
    Error(Raw),
}

/// A set of [`InputKind`]s: the input requests that a caller can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputKinds(u8);

impl InputRequest {
    /// An input request of running work.
    pub fn new(kind: InputKind, params: Option<Raw>) -> Self {
        Self {
            kind,
            params,
            timing: InputTiming::DuringWork,
        }
    }

    /// The size of the parameters in bytes.
    pub fn size(&self) -> usize {
        self.params.as_ref().map_or(0, Raw::size)
    }
}

impl InputKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::ElicitForm,
        Self::ElicitUrl,
        Self::Sample,
        Self::SampleWithTools,
        Self::Roots,
    ];

    /// The method of the JSON-RPC request.
    pub fn method(self) -> &'static str {
        match self {
            Self::ElicitForm | Self::ElicitUrl => method::ELICIT,
            Self::Sample | Self::SampleWithTools => method::CREATE_MESSAGE,
            Self::Roots => method::ROOTS_LIST,
        }
    }

    /// The name for messages.
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

impl InputResponse {
    /// The size of the result or error in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Result(raw) | Self::Error(raw) => raw.size(),
        }
    }
}

impl InputKinds {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Every kind.
    pub fn all() -> Self {
        InputKind::ALL.into_iter().collect()
    }

    /// Whether `kind` is in the set.
    pub fn contains(self, kind: InputKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds that are not in `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// One bit for each kind, as stores write it.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The kinds whose bits are set.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::all().0)
    }
}

impl FromIterator<InputKind> for InputKinds {
    fn from_iter<I: IntoIterator<Item = InputKind>>(kinds: I) -> Self {
        Self(
            kinds
                .into_iter()
                .fold(0, |bits, kind| bits | 1 << kind as u8),
        )
    }
}

/// The input requests that have no response yet. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Outstanding(Arc<[(InputKey, InputRequest)]>);

impl Outstanding {
    /// These requests in the order in which they were made, or `None` without requests.
    pub fn new(requests: Vec<(InputKey, InputRequest)>) -> Option<Self> {
        (!requests.is_empty()).then(|| Self(requests.into()))
    }

    /// The requests in the order in which they were made.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&InputKey, &InputRequest)> {
        self.0.iter().map(|(key, request)| (key, request))
    }

    /// The request with `key`.
    pub fn get(&self, key: &InputKey) -> Option<&InputRequest> {
        self.iter()
            .find_map(|(found, request)| (found == key).then_some(request))
    }
}
