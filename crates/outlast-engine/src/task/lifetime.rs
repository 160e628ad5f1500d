//! The TTL of a task, what happens when the work takes longer, and the run limit.

use outlast_wire::Timestamp;

use super::State;

/// How long a task is stored and may run. Durations are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The time from creation to expiry, as reported now.
    pub ttl_ms: u64,
    /// The TTL that was granted at creation.
    pub granted_ttl_ms: u64,
    /// What happens at expiry if the work still runs.
    pub ttl_policy: TtlPolicy,
    /// How long the work may run, without the time spent awaiting input.
    pub run_limit_ms: Option<u64>,
    /// The time spent awaiting input, without the current wait.
    pub waited_ms: u64,
    /// When the current wait for input started.
    pub waiting_since: Option<Timestamp>,
}

/// What happens to a task whose TTL ends while it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TtlPolicy {
    /// The work is aborted and the task is removed.
    Strict,
    /// The task is kept: its TTL is extended, and its outcome is stored for the granted TTL after
    /// the end.
    #[default]
    KeepLive,
}

impl Lifetime {
    /// The lifetime of a new task.
    pub fn new(ttl_ms: u64, ttl_policy: TtlPolicy, run_limit_ms: Option<u64>) -> Self {
        Self {
            ttl_ms,
            granted_ttl_ms: ttl_ms,
            ttl_policy,
            run_limit_ms,
            waited_ms: 0,
            waiting_since: None,
        }
    }

    /// When the run limit is reached; `None` while the task awaits input.
    pub(crate) fn run_limit_at(&self, created: Timestamp, state: &State) -> Option<Timestamp> {
        match state {
            State::Working => Some(created.plus(self.run_limit_ms?).plus(self.waited_ms)),
            State::AwaitingInput(_) | State::Ended(_) => None,
        }
    }

    /// Records whether the task awaits input from `now` on.
    pub(crate) fn record_wait(&mut self, waits: bool, now: Timestamp) {
        match (waits, self.waiting_since) {
            (true, None) => self.waiting_since = Some(now),
            (false, Some(since)) => {
                self.waited_ms = self.waited_ms.saturating_add(now.since(since));
                self.waiting_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}
