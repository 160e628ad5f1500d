//! What can be said of an upstream and of its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_engine::{InputKinds, RetryClass};
use outlast_wire::version;

use crate::client::Era;
use crate::server::{ClientHandle, TaskPolicy};

/// How an upstream is treated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What holds for every tool of which nothing else is said.
    pub every_tool: ToolSettings,
    /// What is said of single tools.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Whether its annotations are believed (V1-TLS-4): a tool that says that it only reads or may be repeated is run again
    /// when nobody knows how far a call came.
    pub trust: bool,
    /// In which era it is spoken to. [`Era::Auto`] chooses for each connection by what its client needs.
    pub era: Era,
    /// Which calls share a connection.
    pub isolate: Isolate,
    /// How long clients without tasks wait, whatever is known of them.
    pub budget: Option<Duration>,
    /// Whether such a client gets a ticket when it waits no longer, and the tools that go with it.
    pub tickets: bool,
    /// How many calls may be under way at once; others wait, and count as working meanwhile.
    pub concurrency: Option<usize>,
    /// How many calls of tools may be open at once, also those that wait; more are refused.
    pub open_calls: Option<usize>,
    /// The same for each owner.
    pub open_calls_per_owner: Option<usize>,
    /// How many connections may be open at once.
    pub connections: usize,
    /// How many of them may be of one owner.
    pub connections_per_owner: usize,
    /// After how long a connection that nobody uses or listens to is closed.
    pub idle: Duration,
    /// How long the server may take to begin. A package that has to be fetched first takes a while.
    pub handshake: Duration,
}

/// How a tool is treated. What is not said here is said for the upstream, or is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether its calls become tasks.
    pub task: Option<TaskMode>,
    /// How long a call may take to be answered without a task.
    pub grace: Option<Duration>,
    /// How long its tasks are kept, in milliseconds, here and at an upstream that has tasks, where the caller wants nothing
    /// in particular.
    pub ttl: Option<u64>,
    /// How long a call may take in all.
    pub timeout: Option<Duration>,
    /// Whether it may run again when nobody knows how far it came, whatever its annotations say.
    pub retry: Option<RetryClass>,
    /// How many of its calls may be under way at once. Of an upstream this is [`Settings::concurrency`].
    pub concurrency: Option<usize>,
}

/// Whether calls of a tool become tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskMode {
    /// Where the caller wants one, or when it takes long.
    #[default]
    Auto,
    /// At once, where the caller can handle one.
    Always,
    /// Never.
    Never,
}

/// Which calls share a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolate {
    /// Those of one owner whose clients can be asked the same.
    #[default]
    Owner,
    /// None: every call has its own, so that it is always clear who asks.
    Call,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            every_tool: ToolSettings::default(),
            tools: BTreeMap::new(),
            trust: true,
            era: Era::default(),
            isolate: Isolate::default(),
            budget: None,
            tickets: true,
            concurrency: None,
            open_calls: None,
            open_calls_per_owner: None,
            connections: 64,
            connections_per_owner: 16,
            idle: Duration::from_secs(30 * 60),
            handshake: Duration::from_secs(120),
        }
    }
}

impl Settings {
    /// Whether any call can become a task.
    pub(super) fn any_task(&self) -> bool {
        let never = |settings: &ToolSettings| settings.task == Some(TaskMode::Never);
        !never(&self.every_tool)
            || self
                .tools
                .values()
                .any(|tool| tool.task.is_some() && !never(tool))
    }

    /// In which era the upstream is spoken to for `client`. A server of both eras puts its input requests to a legacy client
    /// in the legacy one: tools that send them directly have no other way.
    pub(super) fn era_for(&self, client: &ClientHandle) -> Era {
        let is_legacy = client.version() != version::MODERN;
        match self.era {
            Era::Auto if is_legacy && client.accepts() != InputKinds::NONE => Era::PreferLegacy,
            era => era,
        }
    }

    pub(super) fn task(&self, tool: &str) -> TaskMode {
        self.said(tool, |settings| settings.task)
            .unwrap_or_default()
    }

    pub(super) fn delivery(&self, tool: &str) -> TaskPolicy {
        let grace = || self.said(tool, |settings| settings.grace);
        match self.task(tool) {
            TaskMode::Always => TaskPolicy::Always,
            TaskMode::Auto | TaskMode::Never => {
                grace().map_or_else(TaskPolicy::default, TaskPolicy::After)
            }
        }
    }

    pub(super) fn ttl(&self, tool: &str) -> Option<u64> {
        self.said(tool, |settings| settings.ttl)
    }

    pub(super) fn timeout(&self, tool: &str) -> Option<Duration> {
        self.said(tool, |settings| settings.timeout)
    }

    /// Whether a tool may run again, by the settings, else by its annotations, which say `hinted`.
    pub(super) fn retry_class(&self, tool: &str, hinted: RetryClass) -> RetryClass {
        let said = self.said(tool, |settings| settings.retry);
        said.unwrap_or(if self.trust {
            hinted
        } else {
            RetryClass::Never
        })
    }

    /// What is said of a tool, else of all.
    fn said<T>(&self, tool: &str, what: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        let of_tool = self.tools.get(tool).and_then(&what);
        of_tool.or_else(|| what(&self.every_tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_of_an_untrusted_server_change_nothing() {
        // V1-TLS-4.
        let mut settings = Settings::default();
        assert_eq!(
            settings.retry_class("read", RetryClass::Rerun),
            RetryClass::Rerun
        );
        assert_eq!(
            settings.retry_class("read", RetryClass::Never),
            RetryClass::Never
        );
        settings.trust = false;
        assert_eq!(
            settings.retry_class("read", RetryClass::Rerun),
            RetryClass::Never
        );
        // What the operator says of a tool is no annotation.
        let rerun = ToolSettings {
            retry: Some(RetryClass::Rerun),
            ..ToolSettings::default()
        };
        settings.tools.insert("read".into(), rerun);
        assert_eq!(
            settings.retry_class("read", RetryClass::Never),
            RetryClass::Rerun
        );
        assert_eq!(
            settings.retry_class("other", RetryClass::Rerun),
            RetryClass::Never
        );
        settings.trust = true;
        settings.every_tool.retry = Some(RetryClass::Never);
        assert_eq!(
            settings.retry_class("other", RetryClass::Rerun),
            RetryClass::Never
        );
    }

    #[test]
    fn what_is_said_of_a_tool_counts_before_what_is_said_of_all() {
        let mut settings = Settings::default();
        assert!(settings.any_task());
        settings.every_tool.task = Some(TaskMode::Never);
        settings.every_tool.grace = Some(Duration::from_millis(5));
        assert!(!settings.any_task());
        let slow = ToolSettings {
            task: Some(TaskMode::Always),
            ..ToolSettings::default()
        };
        settings.tools.insert("slow".into(), slow);
        assert!(settings.any_task());
        assert_eq!(settings.task("slow"), TaskMode::Always);
        assert_eq!(settings.delivery("slow"), TaskPolicy::Always);
        assert_eq!(settings.task("other"), TaskMode::Never);
        assert_eq!(
            settings.delivery("other"),
            TaskPolicy::After(Duration::from_millis(5))
        );
    }
}
