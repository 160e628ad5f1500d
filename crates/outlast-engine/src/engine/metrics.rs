//! The metrics of an engine, through the [`metrics`] facade: any recorder can collect them.
//!
//! A recorder counts from its installation: install it before the engine opens. Task ids and owners
//! are never labels. Servers and tools are labels, up to a maximum number.

// No behaviour depends on these numbers, so the scheduler of the race tests does not control them.
use std::collections::HashMap;
use std::sync::Arc;

use metrics::{
    Counter, Histogram, SharedString, Unit, counter, describe_counter, describe_histogram,
    histogram,
};
use parking_lot::Mutex;

use super::RecoveryCounts;
use crate::origin::Origin;
use crate::outcome::{Ending, Outcome};

pub(crate) struct EngineMetrics {
    created: Counter,
    results: Counter,
    tool_errors: Counter,
    errors: Counter,
    cancelled: Counter,
    expired: Counter,
    recovered: [Counter; 4],
    tools: Mutex<ToolTable>,
}

/// The tools with their own labels, by server and name.
#[derive(Default)]
struct ToolTable {
    known: HashMap<Arc<str>, HashMap<Arc<str>, Arc<ToolMetrics>>>,
    count: usize,
    /// The metrics of all other tools.
    other: Option<Arc<ToolMetrics>>,
}

struct ToolMetrics {
    call_duration: Histogram,
    task_duration: Histogram,
    request_bytes: Histogram,
    result_bytes: Histogram,
}

impl EngineMetrics {
    pub(crate) fn new() -> Self {
        describe();
        let ended = |how: &'static str| counter!("mcp_tasks_ended_total", "how" => how);
        let recovered = |how: &'static str| counter!("mcp_tasks_recovered_total", "how" => how);
        Self {
            created: counter!("mcp_tasks_created_total"),
            results: ended("result"),
            tool_errors: ended("tool_error"),
            errors: ended("error"),
            cancelled: ended("cancelled"),
            expired: counter!("mcp_tasks_expired_total"),
            recovered: ["reattached", "rerun", "cancelled", "unknown"].map(recovered),
            tools: Mutex::default(),
        }
    }

    /// A task was stored.
    pub(crate) fn created(&self) {
        self.created.increment(1);
    }

    /// A call ended in this process, as a task or not.
    pub(crate) fn called(&self, origin: &Origin, outcome: &Outcome, millis: u64) {
        let tool = self.tool(origin);
        tool.call_duration.record(seconds(millis));
        tool.request_bytes.record(origin.size() as f64);
        if let Some(body) = outcome.body() {
            tool.result_bytes.record(body.size() as f64);
        }
    }

    /// A task ended.
    pub(crate) fn ended(&self, origin: &Origin, how: Ending, millis: u64) {
        let count = match how {
            Ending::Result => &self.results,
            Ending::ToolError => &self.tool_errors,
            Ending::Error(_) => &self.errors,
            Ending::Cancelled => &self.cancelled,
        };
        count.increment(1);
        self.tool(origin).task_duration.record(seconds(millis));
    }

    /// Expired tasks were removed.
    pub(crate) fn expired(&self, tasks: usize) {
        self.expired.increment(tasks as u64);
    }

    /// Tasks of lost executors were recovered.
    pub(crate) fn recovered(&self, what: RecoveryCounts) {
        let all = [what.reattached, what.rerun, what.cancelled, what.unknown];
        for (count, more) in self.recovered.iter().zip(all) {
            count.increment(more as u64);
        }
    }

    fn tool(&self, origin: &Origin) -> Arc<ToolMetrics> {
        let mut tools = self.tools.lock();
        tools.of(
            &origin.runner,
            origin.tool.as_ref().unwrap_or(&origin.method),
        )
    }
}

impl ToolTable {
    fn of(&mut self, server: &Arc<str>, tool: &Arc<str>) -> Arc<ToolMetrics> {
        let found = self.known.get(server).and_then(|tools| tools.get(tool));
        if let Some(found) = found {
            return found.clone();
        }
        if self.count == MAX_TOOLS {
            let other = self
                .other
                .get_or_insert_with(|| ToolMetrics::new(OTHER, OTHER));
            return other.clone();
        }
        self.count += 1;
        let made = ToolMetrics::new(server_name(server), tool.clone());
        let tools = self.known.entry(server.clone()).or_default();
        tools.insert(tool.clone(), made.clone());
        made
    }
}

impl ToolMetrics {
    fn new(server: impl Into<SharedString>, tool: impl Into<SharedString>) -> Arc<Self> {
        let labels = [("server", server.into()), ("tool", tool.into())];
        Arc::new(Self {
            call_duration: histogram!("mcp_call_duration_seconds", &labels),
            task_duration: histogram!("mcp_task_duration_seconds", &labels),
            request_bytes: histogram!("mcp_call_request_bytes", &labels),
            result_bytes: histogram!("mcp_call_result_bytes", &labels),
        })
    }
}

/// The server of a runner: `NAME` if the runner is named `KIND:NAME`.
fn server_name(runner: &str) -> String {
    let name = runner.split_once(':').map_or(runner, |(_, name)| name);
    name.to_owned()
}

fn describe() {
    describe_counter!("mcp_tasks_created_total", "Tasks created by this process.");
    describe_counter!("mcp_tasks_ended_total", "Tasks that ended.");
    describe_counter!(
        "mcp_tasks_expired_total",
        "Tasks removed because their TTL ended."
    );
    describe_counter!(
        "mcp_tasks_recovered_total",
        "Recovered tasks of lost executors, by result."
    );
    describe_histogram!(
        "mcp_call_duration_seconds",
        Unit::Seconds,
        "Duration of calls in this process, as tasks or not."
    );
    describe_histogram!(
        "mcp_task_duration_seconds",
        Unit::Seconds,
        "Duration of tasks from creation to end."
    );
    describe_histogram!(
        "mcp_call_request_bytes",
        Unit::Bytes,
        "Size of the parameters of calls."
    );
    describe_histogram!(
        "mcp_call_result_bytes",
        Unit::Bytes,
        "Size of the results and errors of calls."
    );
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}

/// The maximum number of tools with their own labels, because a caller can name any number of tools
/// that do not exist.
const MAX_TOOLS: usize = 512;

/// The label of tools without their own.
const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_as_its_runner_without_the_kind() {
        assert_eq!(server_name("upstream:files"), "files");
        assert_eq!(server_name("tools"), "tools");
    }

    #[test]
    fn tools_beyond_the_limit_share_their_numbers() {
        let mut tools = ToolTable::default();
        let server: Arc<str> = "s".into();
        let first = tools.of(&server, &"0".into());
        for number in 1..MAX_TOOLS {
            tools.of(&server, &number.to_string().into());
        }
        let rest = tools.of(&server, &"more".into());
        assert!(Arc::ptr_eq(&rest, &tools.of(&server, &"much more".into())));
        assert!(Arc::ptr_eq(&first, &tools.of(&server, &"0".into())));
        assert_eq!(tools.count, MAX_TOOLS);
        assert!(!tools.known[&server].contains_key("more"));
    }
}
