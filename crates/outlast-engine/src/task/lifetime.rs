//! How long a task lives: its TTL from creation, what happens when the work outlasts it, its run limit.

use outlast_wire::Timestamp;

use super::State;

/// How long a task lives and may run. All lengths in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// From creation to expiry, as reported now.
    pub ttl: u64,
    /// The TTL that was granted at creation.
    pub granted: u64,
    /// What happens at expiry if the work still runs.
    pub keep: Keep,
    /// How long the work may run, time spent awaiting input not counted.
    pub run_limit: Option<u64>,
    /// Time spent awaiting input so far, the present wait not included.
    pub waited: u64,
    /// When the present wait for input began.
    pub waiting_since: Option<Timestamp>,
}

/// What happens to a task whose TTL runs out while it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It is aborted and removed.
    Strict,
    /// It is kept: its TTL is extended, and its outcome stays for the granted TTL after the end.
    #[default]
    WhileLive,
}

impl Lifetime {
    /// A lifetime with nothing spent.
    pub fn new(ttl: u64, keep: Keep, run_limit: Option<u64>) -> Self {
        Self {
            ttl,
            granted: ttl,
            keep,
            run_limit,
            waited: 0,
            waiting_since: None,
        }
    }

    /// When the run limit is reached; never while the task awaits input.
    pub(crate) fn run_limit_at(&self, created: Timestamp, state: &State) -> Option<Timestamp> {
        match state {
            State::Working => Some(created.plus(self.run_limit?).plus(self.waited)),
            State::AwaitingInput(_) | State::Ended(_) => None,
        }
    }

    /// Notes whether the task awaits input from `now` on.
    pub(crate) fn note_wait(&mut self, waits: bool, now: Timestamp) {
        match (waits, self.waiting_since) {
            (true, None) => self.waiting_since = Some(now),
            (false, Some(since)) => {
                self.waited = self.waited.saturating_add(now.since(since));
                self.waiting_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}
