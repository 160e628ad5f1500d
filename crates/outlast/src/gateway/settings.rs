//! The settings of an upstream and of its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_engine::{InputKinds, RetryClass};
use outlast_wire::version;

use super::{PrincipalSettings, ToolLists};
use crate::client::Era;
use crate::server::{ClientHandle, TaskPolicy};

/// The settings of an upstream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Settings for every tool that has no setting of its own.
    pub tool_defaults: ToolSettings,
    /// Settings for single tools, by name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Which of its tools any caller may use.
    pub tool_lists: ToolLists,
    /// What applies to single callers, by the name of the principal. `local` is the user of this
    /// machine, and `*` every caller without its own settings.
    pub principals: BTreeMap<String, PrincipalSettings>,
    /// Whether its tool annotations are trusted (V1-TLS-4). If they are, an interrupted call of a
    /// tool that declares itself read-only or idempotent is run again.
    pub trust_annotations: bool,
    /// The era of its connections. [`Era::Auto`] chooses for each connection by what its client
    /// needs.
    pub era: Era,
    /// Which calls share a connection.
    pub isolate: Isolate,
    /// How long clients without task support wait. It replaces the built-in values of known
    /// clients.
    pub wait_budget: Option<Duration>,
    /// Whether such a client gets a ticket when its wait ends, and the tools that use the ticket.
    pub tickets: bool,
    /// The maximum of concurrent calls. Further calls wait; their tasks are `working` meanwhile.
    pub concurrency: Option<usize>,
    /// The maximum of open tool calls, including those that wait. Further calls are rejected.
    pub max_open_calls: Option<usize>,
    /// The maximum of open tool calls for each owner.
    pub max_open_calls_per_owner: Option<usize>,
    /// The maximum of open connections.
    pub max_connections: usize,
    /// The maximum of open connections for each owner.
    pub max_connections_per_owner: usize,
    /// How long a connection stays open without a call or a listener.
    pub idle_timeout: Duration,
    /// The time limit of the handshake. A package that is downloaded at the first start needs
    /// minutes.
    pub handshake_timeout: Duration,
}

outlast_engine::option_setters! { Settings:
    set with_tool_defaults(tool_defaults: ToolSettings);
    set with_tools(tools: BTreeMap<String, ToolSettings>);
    set with_tool_lists(tool_lists: ToolLists);
    set with_principals(principals: BTreeMap<String, PrincipalSettings>);
    set with_trust_annotations(trust_annotations: bool);
    set with_era(era: Era);
    set with_isolate(isolate: Isolate);
    maybe with_wait_budget(wait_budget: Duration);
    set with_tickets(tickets: bool);
    some with_concurrency(concurrency: usize);
    some with_max_open_calls(max_open_calls: usize);
    some with_max_open_calls_per_owner(max_open_calls_per_owner: usize);
    set with_max_connections(max_connections: usize);
    set with_max_connections_per_owner(max_connections_per_owner: usize);
    set with_idle_timeout(idle_timeout: Duration);
    set with_handshake_timeout(handshake_timeout: Duration);
}

/// The settings of a tool. A value that is `None` comes from the settings of the upstream, then
/// from the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSettings {
    /// Whether its calls become tasks.
    pub task: Option<TaskMode>,
    /// How long a call may run before it becomes a task.
    pub grace: Option<Duration>,
    /// The TTL of its tasks, here and at an upstream with tasks, if the caller
    /// requests none.
    pub ttl: Option<Duration>,
    /// The time limit of a call.
    pub timeout: Option<Duration>,
    /// Whether an interrupted call is run again. It takes precedence over annotations.
    pub retry: Option<RetryClass>,
    /// The maximum of its concurrent calls. [`Settings::concurrency`] limits the calls of all
    /// tools.
    pub concurrency: Option<usize>,
}

outlast_engine::option_setters! { ToolSettings:
    maybe with_task(task: TaskMode);
    maybe with_grace(grace: Duration);
    maybe with_ttl(ttl: Duration);
    maybe with_timeout(timeout: Duration);
    maybe with_retry(retry: RetryClass);
    some with_concurrency(concurrency: usize);
}

/// Whether calls of a tool become tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskMode {
    /// If the caller requests a task, or the call takes long.
    #[default]
    Auto,
    /// At once, if the caller supports tasks.
    Always,
    /// Never.
    Never,
}

/// Which calls share a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolate {
    /// Calls of one owner whose clients support the same input kinds.
    #[default]
    Owner,
    /// None: every call has its own connection, so every input request belongs to a known call.
    Call,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tool_defaults: ToolSettings::default(),
            tools: BTreeMap::new(),
            tool_lists: ToolLists::default(),
            principals: BTreeMap::new(),
            trust_annotations: true,
            era: Era::default(),
            isolate: Isolate::default(),
            wait_budget: None,
            tickets: true,
            concurrency: None,
            max_open_calls: None,
            max_open_calls_per_owner: None,
            max_connections: 64,
            max_connections_per_owner: 16,
            idle_timeout: Duration::from_secs(30 * 60),
            handshake_timeout: Duration::from_secs(120),
        }
    }
}

impl Settings {
    /// Whether any call can become a task.
    pub(super) fn any_task(&self) -> bool {
        let never = |settings: &ToolSettings| settings.task == Some(TaskMode::Never);
        !never(&self.tool_defaults)
            || self
                .tools
                .values()
                .any(|tool| tool.task.is_some() && !never(tool))
    }

    /// The era of the connection for `client`. A server of both eras sends input requests to a
    /// legacy client in the legacy era, because tools that send them directly cannot do so in the
    /// modern one.
    pub(super) fn era_for(&self, client: &ClientHandle) -> Era {
        let is_legacy = client.version() != version::MODERN;
        match self.era {
            Era::Auto if is_legacy && client.accepts() != InputKinds::NONE => Era::PreferLegacy,
            era => era,
        }
    }

    pub(super) fn task(&self, tool: &str) -> TaskMode {
        self.setting(tool, |settings| settings.task)
            .unwrap_or_default()
    }

    pub(super) fn task_policy(&self, tool: &str) -> TaskPolicy {
        let grace = || self.setting(tool, |settings| settings.grace);
        match self.task(tool) {
            TaskMode::Always => TaskPolicy::Always,
            TaskMode::Auto | TaskMode::Never => {
                grace().map_or_else(TaskPolicy::default, TaskPolicy::After)
            }
        }
    }

    /// In milliseconds.
    pub(super) fn ttl(&self, tool: &str) -> Option<u64> {
        let ttl = self.setting(tool, |settings| settings.ttl)?;
        Some(ttl.as_millis() as u64)
    }

    pub(super) fn timeout(&self, tool: &str) -> Option<Duration> {
        self.setting(tool, |settings| settings.timeout)
    }

    /// Whether a tool can run again: by the settings, else by `hinted`, which its annotations say.
    pub(super) fn retry_class(&self, tool: &str, hinted: RetryClass) -> RetryClass {
        let setting = self.setting(tool, |settings| settings.retry);
        setting.unwrap_or(if self.trust_annotations {
            hinted
        } else {
            RetryClass::Never
        })
    }

    /// A setting of a tool, else of all tools.
    fn setting<T>(&self, tool: &str, what: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        let of_tool = self.tools.get(tool).and_then(&what);
        of_tool.or_else(|| what(&self.tool_defaults))
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
        settings.trust_annotations = false;
        assert_eq!(
            settings.retry_class("read", RetryClass::Rerun),
            RetryClass::Never
        );
        // A setting of the operator does not need trust.
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
        settings.trust_annotations = true;
        settings.tool_defaults.retry = Some(RetryClass::Never);
        assert_eq!(
            settings.retry_class("other", RetryClass::Rerun),
            RetryClass::Never
        );
    }

    #[test]
    fn a_setting_of_a_tool_precedes_the_default() {
        let mut settings = Settings::default();
        assert!(settings.any_task());
        settings.tool_defaults.task = Some(TaskMode::Never);
        settings.tool_defaults.grace = Some(Duration::from_millis(5));
        assert!(!settings.any_task());
        let slow = ToolSettings {
            task: Some(TaskMode::Always),
            ..ToolSettings::default()
        };
        settings.tools.insert("slow".into(), slow);
        assert!(settings.any_task());
        assert_eq!(settings.task("slow"), TaskMode::Always);
        assert_eq!(settings.task_policy("slow"), TaskPolicy::Always);
        assert_eq!(settings.task("other"), TaskMode::Never);
        assert_eq!(
            settings.task_policy("other"),
            TaskPolicy::After(Duration::from_millis(5))
        );
    }
}
