//! The metrics of a gateway in the format of Prometheus. Task ids and owners are never labels.

use std::time::Duration;

use metrics::{Unit, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use outlast::engine::Engine;
use outlast::gateway::UpstreamEndpoint;
use outlast::task::Owner;
use outlast_engine::store::NodeState;

/// Starts to collect metrics.
pub(super) fn collect() -> Result<PrometheusHandle, BuildError> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &BUCKETS_SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_bytes".into()), &BUCKETS_BYTES)?;
    let collected = builder.install_recorder()?;
    let unit = Unit::Count;
    describe_gauge!("mcp_tasks", unit, "Stored tasks.");
    describe_gauge!(
        "mcp_calls_running",
        unit,
        "Calls that run in this process, tasks or not."
    );
    describe_gauge!(
        "outlast_nodes",
        unit,
        "Nodes that share the store, by the state of their leases."
    );
    describe_gauge!(
        "outlast_node_lease_seconds",
        Unit::Seconds,
        "Time until the lease of this node lapses; 0 in a store without leases."
    );
    describe_gauge!(
        "outlast_node_epoch",
        unit,
        "How often this node has joined the store."
    );
    describe_gauge!(
        "outlast_node_open_tasks",
        unit,
        "Open tasks that this node executes."
    );
    describe_gauge!(
        "outlast_upstream_connections",
        unit,
        "Open connections to each server."
    );
    describe_gauge!(
        "outlast_upstream_failing",
        unit,
        "Whether a server could not be reached when that was tried last."
    );
    let kept = collected.clone();
    tokio::spawn(async move {
        // Measurements accumulate until `/metrics` is read or this upkeep runs.
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            kept.run_upkeep();
        }
    });
    Ok(collected)
}

/// Renders all metrics.
pub(super) async fn text(
    collected: &PrometheusHandle,
    engine: &Engine,
    served: &[UpstreamEndpoint],
) -> String {
    if let Ok(usage) = engine.usage(&Owner::Local).await {
        let ended = usage.retained.saturating_sub(usage.open);
        gauge!("mcp_tasks", "status" => "open").set(usage.open as f64);
        gauge!("mcp_tasks", "status" => "ended").set(ended as f64);
    }
    if let Ok(nodes) = engine.nodes().await {
        for state in [NodeState::Joined, NodeState::Lapsed, NodeState::Lost] {
            let count = nodes.iter().filter(|node| node.state == state).count();
            gauge!("outlast_nodes", "state" => state.word()).set(count as f64);
        }
        if let Some(own) = nodes.iter().find(|node| node.node == engine.node()) {
            let lease = own.lease.map(|lease| lease.as_secs_f64());
            gauge!("outlast_node_lease_seconds").set(lease.unwrap_or_default());
            gauge!("outlast_node_epoch").set(own.epoch as f64);
            gauge!("outlast_node_open_tasks").set(own.open_tasks as f64);
        }
    }
    gauge!("mcp_calls_running").set(engine.running() as f64);
    for served in served {
        let upstream = &served.upstream;
        let label = [("server", upstream.name().to_string())];
        gauge!("outlast_upstream_connections", &label).set(upstream.connections() as f64);
        let failing = f64::from(u8::from(upstream.is_failing()));
        gauge!("outlast_upstream_failing", &label).set(failing);
    }
    collected.render()
}

/// From fractions of a second to hours, because calls can be short or long.
const BUCKETS_SECONDS: [f64; 11] = [
    0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 1_800.0, 7_200.0, 28_800.0, 86_400.0, 604_800.0,
];

const BUCKETS_BYTES: [f64; 7] = [
    256.0,
    1_024.0,
    16_384.0,
    131_072.0,
    1_048_576.0,
    8_388_608.0,
    67_108_864.0,
];

/// How often collected measurements are merged.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
