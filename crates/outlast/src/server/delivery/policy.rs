//! The delivery policy: when a call becomes a task, how long its caller waits, and how it receives
//! input requests.

use std::time::Duration;

use tokio::time::Instant;

/// When a call becomes a task, for a caller with task support that leaves this to the server.
///
/// ```
/// use outlast::prelude::*;
/// use outlast::server::TaskPolicy;
///
/// let slow = Tool::new("slow", "Takes long", |_, _| async { Ok(text("done")) })
///     .task(TaskSupport::Optional)
///     .task_policy(TaskPolicy::Always);
/// # drop(slow);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPolicy {
    /// At once.
    Always,
    /// When it has run for this long. A call with an input request during its work becomes a task
    /// at that moment.
    After(Duration),
    /// When the input requests that precede its work have their responses.
    AfterInput,
}

impl TaskPolicy {
    /// The default grace period.
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(700);
}

impl TaskPolicy {
    /// The grace period before the call becomes a task.
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

/// How long a client without task support waits for a call. A call is stored when its grace period
/// is over, so that neither a disconnect nor a crash loses its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// How long the client waits for a response.
    pub budget: WaitBudget,
    /// Whether the client gets a *ticket* when its budget is used up: a result that names the task,
    /// and tools to poll it.
    pub tickets: bool,
}

/// How long a client waits for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitBudget {
    /// Without a limit.
    Unlimited,
    /// At most this long.
    AtMost(Duration),
    /// Without a limit while it receives progress, if its request has a progress token.
    WithProgress {
        /// The interval of progress notifications.
        interval: Duration,
        /// The limit for a request without a token.
        without_token: Duration,
    },
}

impl WaitPolicy {
    /// For clients with task support that did not request a task: they wait without a limit.
    pub(crate) const UNLIMITED: Self = Self {
        budget: WaitBudget::Unlimited,
        tickets: false,
    };

    /// How long a caller waits, and the heartbeat interval that it needs.
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

/// How one call is delivered.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct DeliveryPlan {
    /// When the call becomes a task.
    pub(super) promote_at: Option<Instant>,
    /// Whether the caller gets a handle at that moment. Otherwise it keeps waiting for the task.
    pub(super) takes_handle: bool,
    /// When a caller that waits for a task gets a ticket instead of the outcome.
    pub(super) ticket_at: Option<Instant>,
    /// The heartbeat interval, if the caller needs one.
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
    /// The caller waits for the outcome without a limit.
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

    /// The call becomes a task after `grace`, and the caller keeps waiting for it.
    pub(in crate::server) fn promoted_after(mut self, grace: Duration) -> Self {
        self.promote_at = Some(Instant::now() + grace);
        self
    }

    /// The caller waits for a task for at most `limit`, with a heartbeat.
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
    fn only_a_client_with_progress_waits_without_a_limit() {
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
