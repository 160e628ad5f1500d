//! How tasks are hosted for a server.

use std::sync::Arc;

/// How tasks are hosted for a server.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// How long a task lives whose server wants nothing in particular.
    pub ttl: ReceiverTtl,
    /// The longest life that is granted, in milliseconds.
    pub max_ttl_ms: u64,
    /// How often the server should look, in milliseconds.
    pub poll_interval_ms: u32,
    /// How many tasks may wait at the same time.
    pub max_open_tasks: u32,
    /// How a task looks while its person is asked.
    pub status_while_waiting: WaitingStatus,
    /// What becomes of a task whose person declined an elicitation.
    pub on_decline: OnDecline,
}

/// The life of a task, in milliseconds.
#[derive(Clone)]
pub enum ReceiverTtl {
    /// Always the same.
    Fixed(u64),
    /// Chosen when the task is made.
    Chosen(Arc<dyn Fn() -> u64 + Send + Sync>),
}

/// How a task looks while its person is asked (DESIGN §15, A1-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitingStatus {
    /// `input_required`, as both seeds want it.
    #[default]
    InputRequired,
    /// `working`, as the letter of the specification has it.
    Working,
}

/// What becomes of a task whose person declined an elicitation (DESIGN §15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDecline {
    /// It completes with that as its result (V1-ELIC-7).
    #[default]
    Completes,
    /// It fails, as the seeds have it (S0-17, S1-60).
    Fails,
}

/// A minute, an hour at most, a look every two seconds (S0-45, S0-46), 32 at a time.
impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            ttl: ReceiverTtl::Fixed(60_000),
            max_ttl_ms: 3_600_000,
            poll_interval_ms: 2_000,
            max_open_tasks: 32,
            status_while_waiting: WaitingStatus::default(),
            on_decline: OnDecline::default(),
        }
    }
}

impl ReceiverTtl {
    pub(super) fn millis(&self) -> u64 {
        match self {
            Self::Fixed(millis) => *millis,
            Self::Chosen(choose) => choose(),
        }
    }
}

impl std::fmt::Debug for ReceiverTtl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(millis) => write!(f, "Fixed({millis})"),
            Self::Chosen(_) => f.write_str("Chosen"),
        }
    }
}
