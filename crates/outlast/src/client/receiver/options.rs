//! The settings of tasks that the client hosts for a server.

use std::sync::Arc;
use std::time::Duration;

/// The settings of tasks that the client hosts for a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceiverOptions {
    /// The TTL of a task whose server requests none.
    pub ttl: ReceiverTtl,
    /// The longest TTL that is granted.
    pub max_ttl: Duration,
    /// The poll interval that is reported to the server.
    pub poll_interval: Duration,
    /// How many tasks may be open at the same time.
    pub max_open_tasks: u32,
    /// The status of a task while it waits for the user.
    pub status_while_waiting: WaitingStatus,
    /// The status message of a task while it waits for the user (S1-31).
    pub waiting_message: Arc<str>,
    /// The end of a task whose elicitation was declined.
    pub on_decline: OnDecline,
}

outlast_engine::option_setters! { ReceiverOptions:
    set with_ttl(ttl: ReceiverTtl);
    set with_max_ttl(max_ttl: Duration);
    set with_poll_interval(poll_interval: Duration);
    set with_max_open_tasks(max_open_tasks: u32);
    set with_status_while_waiting(status_while_waiting: WaitingStatus);
    text with_waiting_message(waiting_message: Arc<str>);
    set with_on_decline(on_decline: OnDecline);
}

/// The TTL of a task.
#[derive(Clone)]
pub enum ReceiverTtl {
    /// The same for every task.
    Fixed(Duration),
    /// Chosen when the task is created.
    Chosen(Arc<dyn Fn() -> Duration + Send + Sync>),
}

/// The status of a task while it waits for the user (A1-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitingStatus {
    /// `input_required`, as both seeds say.
    #[default]
    InputRequired,
    /// `working`, as the text of the specification says.
    Working,
}

/// The end of a task whose elicitation was declined (S0-75).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDecline {
    /// It completes, with the declined elicitation as its result (V1-ELIC-7).
    #[default]
    Completes,
    /// It fails, as the seeds say (S0-17, S1-60).
    Fails,
}

/// TTL one minute, at most one hour; poll interval two seconds (S0-45, S0-46); 32 open tasks.
impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            ttl: ReceiverTtl::Fixed(Duration::from_secs(60)),
            max_ttl: Duration::from_secs(3_600),
            poll_interval: Duration::from_secs(2),
            max_open_tasks: 32,
            status_while_waiting: WaitingStatus::default(),
            waiting_message: WAITING_MESSAGE.into(),
            on_decline: OnDecline::default(),
        }
    }
}

/// The default of [`ReceiverOptions::waiting_message`] (S0-72).
const WAITING_MESSAGE: &str = "Awaiting user approval";

impl ReceiverTtl {
    pub(in crate::client) fn millis(&self) -> u64 {
        let ttl = match self {
            Self::Fixed(ttl) => *ttl,
            Self::Chosen(choose) => choose(),
        };
        ttl.as_millis() as u64
    }
}

impl std::fmt::Debug for ReceiverTtl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(ttl) => write!(f, "Fixed({ttl:?})"),
            Self::Chosen(_) => f.write_str("Chosen"),
        }
    }
}
