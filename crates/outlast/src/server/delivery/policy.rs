//! The delivery policy: when a call becomes a task, how long its caller waits, and how it receives input requests.

use std::time::Duration;

use tokio::time::Instant;

/// When a call of a tool that may run as a task becomes one, for a caller that takes tasks and leaves it to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPolicy {
    /// At once.
    Always,
    /// When it has run for so long without an end. A call that asks in the middle of its work becomes one then.
    After(Duration),
    /// When what it asks before its work begins is answered.
    AfterInput,
}

impl TaskPolicy {
    /// How long a call may take to be answered without a task, if nothing else is said.
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(700);
}

impl TaskPolicy {
    /// How long a call runs before it becomes a task.
    pub(crate) fn grace(self) -> Duration {
        match self {
            Self::After(grace) => grace,
            Self::Always => Duration::ZERO,
            Self::AfterInput => Self::DEFAULT_GRACE,
        }
    }
}

impl Default for TaskPolicy {
    fn default() -> Self {
        Self::After(Self::DEFAULT_GRACE)
    }
}

/// How calls are held for a client that takes no tasks. Each is stored when its grace window is over, so that neither a
/// disconnect nor a crash loses its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// How long the client waits for an answer.
    pub budget: WaitBudget,
    /// Whether a client that stops waiting gets a *ticket*: a result that names the task, and tools to ask for it.
    pub tickets: bool,
}

/// How long a client waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitBudget {
    /// As long as it takes.
    Unlimited,
    /// So long.
    AtMost(Duration),
    /// As long as it takes if it hears of progress this often, and so long if it gave no token for that.
    WithProgress {
        /// How often.
        interval: Duration,
        /// How long without a token.
        without_token: Duration,
    },
}

impl WaitPolicy {
    /// For clients that take tasks and did not ask for one: they wait.
    pub(crate) const UNLIMITED: Self = Self {
        budget: WaitBudget::Unlimited,
        tickets: false,
    };

    /// How long a caller waits, and how often it must hear something meanwhile.
    pub(crate) fn limits(&self, has_token: bool) -> (Option<Duration>, Option<Duration>) {
        let limit = |limit| Some(limit).filter(|_| self.tickets);
        match self.budget {
            WaitBudget::Unlimited => (None, None),
            WaitBudget::AtMost(time) => (limit(time), None),
            WaitBudget::WithProgress { interval, .. } if has_token => (None, Some(interval)),
            WaitBudget::WithProgress { without_token, .. } => (limit(without_token), None),
        }
    }
}

/// How one call is delivered to its caller.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct DeliveryPlan {
    /// When the call becomes a task.
    pub(super) promote_at: Option<Instant>,
    /// Whether the caller gets a handle then. Otherwise it goes on waiting for the task.
    pub(super) takes_handle: bool,
    /// When a caller that waits for a task gets a ticket instead of the outcome.
    pub(super) ticket_at: Option<Instant>,
    /// How often a caller that waits must receive something.
    pub(super) heartbeat: Option<Duration>,
    /// How the caller receives input requests.
    pub(super) input: InputDelivery,
}

/// How a caller receives input requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum InputDelivery {
    /// As requests on the stream of its response.
    Nested,
    /// As the response itself: the caller sends its request again with the input responses.
    Returned,
}

impl DeliveryPlan {
    /// The caller waits for the outcome, however long that takes.
    pub(in crate::server) fn inline(input: InputDelivery) -> Self {
        Self {
            promote_at: None,
            takes_handle: false,
            ticket_at: None,
            heartbeat: None,
            input,
        }
    }

    /// The call becomes a task after `grace`, and the caller gets its handle.
    pub(in crate::server) fn handle_after(grace: Duration, input: InputDelivery) -> Self {
        Self {
            promote_at: Some(Instant::now() + grace),
            takes_handle: true,
            ..Self::inline(input)
        }
    }

    /// The call becomes a task after `grace`, and the caller goes on waiting for it.
    pub(in crate::server) fn promoted_after(mut self, grace: Duration) -> Self {
        self.promote_at = Some(Instant::now() + grace);
        self
    }

    /// The caller waits for a task: for `limit` at most, and with a heartbeat.
    pub(in crate::server) fn waiting(
        (limit, heartbeat): (Option<Duration>, Option<Duration>),
        input: InputDelivery,
    ) -> Self {
        Self {
            ticket_at: limit.map(|limit| Instant::now() + limit),
            heartbeat,
            ..Self::inline(input)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_hears_of_progress_waits_for_ever() {
        let second = Duration::from_secs(1);
        let policy = |budget, tickets| WaitPolicy { budget, tickets };
        let progress = WaitBudget::WithProgress {
            interval: second,
            without_token: 9 * second,
        };
        assert_eq!(policy(progress, true).limits(true), (None, Some(second)));
        assert_eq!(
            policy(progress, true).limits(false),
            (Some(9 * second), None)
        );
        let limited = WaitBudget::AtMost(second);
        assert_eq!(policy(limited, true).limits(true), (Some(second), None));
        assert_eq!(policy(limited, false).limits(true), (None, None));
        assert_eq!(WaitPolicy::UNLIMITED.limits(true), (None, None));
    }
}
