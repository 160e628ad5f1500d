//! When a call becomes a task, where the server decides that (V2-CAP-4).

use std::time::Duration;

/// When a call of a tool that may run as a task becomes one, for a caller that takes tasks and leaves it to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once.
    Always,
    /// When it has run for so long without an end. A call that asks in the middle of its work becomes one then.
    Within(Duration),
    /// When what it asks before its work begins is answered.
    OnceAnswered,
}

impl Delivery {
    /// How long a call may take to be answered without a task, if nothing else is said.
    pub const GRACE: Duration = Duration::from_millis(700);
}

impl Default for Delivery {
    fn default() -> Self {
        Self::Within(Self::GRACE)
    }
}
