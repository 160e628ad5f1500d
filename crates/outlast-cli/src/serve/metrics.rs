//! How a gateway stands and what it has done, as Prometheus reads it. No task and no owner is ever a label.

use std::fmt::Write;

use outlast::engine::engine::Tally;
use outlast::engine::{Engine, Owner};
use outlast::gateway::Served;

/// The whole page.
pub(super) async fn text(engine: &Engine, served: &[Served]) -> String {
    let mut page = Page::default();
    if let Ok(usage) = engine.usage(&Owner::Local).await {
        let ended = usage.retained.saturating_sub(usage.open);
        let tasks = [("status=\"open\"", usage.open), ("status=\"ended\"", ended)];
        page.family("mcp_tasks", "gauge", "Tasks that are kept.", &tasks);
    }
    let running = engine.running() as u64;
    page.family(
        "mcp_calls_running",
        "gauge",
        "Calls that run in this process, tasks or not.",
        &[("", running)],
    );
    let tally = engine.tally();
    let help = "Tasks that were stored since this process began.";
    page.family(
        "mcp_tasks_created_total",
        "counter",
        help,
        &[("", tally.created)],
    );
    let ended = [
        ("how=\"result\"", tally.results),
        ("how=\"tool_error\"", tally.tool_errors),
        ("how=\"error\"", tally.errors),
        ("how=\"cancelled\"", tally.cancelled),
    ];
    page.family(
        "mcp_tasks_ended_total",
        "counter",
        "Tasks that ended.",
        &ended,
    );
    let help = "Tasks that were removed because their time was over.";
    page.family(
        "mcp_tasks_expired_total",
        "counter",
        help,
        &[("", tally.expired)],
    );
    let recovered = [
        ("how=\"reattached\"", tally.recovered.reattached as u64),
        ("how=\"rerun\"", tally.recovered.rerun as u64),
        ("how=\"cancelled\"", tally.recovered.cancelled as u64),
        ("how=\"unknown\"", tally.recovered.unknown as u64),
    ];
    let help = "What became of tasks that an earlier life left.";
    page.family("mcp_tasks_recovered_total", "counter", help, &recovered);
    page.durations(&tally);
    let labels: Vec<_> = served
        .iter()
        .map(|served| format!("server=\"{}\"", served.upstream.name()))
        .collect();
    let of_servers = |value: fn(&Served) -> u64| -> Vec<(&str, u64)> {
        let values = served.iter().map(value);
        labels.iter().map(String::as_str).zip(values).collect()
    };
    let open = of_servers(|served| served.upstream.connections() as u64);
    page.family(
        "outlast_upstream_connections",
        "gauge",
        "Open connections to each server.",
        &open,
    );
    let failing = of_servers(|served| u64::from(served.upstream.is_failing()));
    let help = "Whether a server could not be reached when that was tried last.";
    page.family("outlast_upstream_failing", "gauge", help, &failing);
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    // Writing to a string does not fail.
    fn family(&mut self, name: &str, kind: &str, help: &str, values: &[(&str, u64)]) {
        self.head(name, kind, help);
        for (labels, value) in values {
            let _ = match labels.is_empty() {
                true => writeln!(self.0, "{name} {value}"),
                false => writeln!(self.0, "{name}{{{labels}}} {value}"),
            };
        }
    }

    fn durations(&mut self, tally: &Tally) {
        let name = "mcp_task_duration_seconds";
        self.head(name, "histogram", "How long tasks took that ended.");
        let mut sum = 0;
        for (at, count) in tally.took.iter().enumerate() {
            sum += count;
            let bound = Tally::BOUNDS.get(at);
            let bound = bound.map_or("+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let seconds = tally.took_in_all.as_secs_f64();
        let _ = writeln!(self.0, "{name}_sum {seconds}\n{name}_count {sum}");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}
