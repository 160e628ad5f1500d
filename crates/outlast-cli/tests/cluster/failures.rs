//! Nodes that are killed, paused and restarted under load.

use std::time::Duration;

use outlast_testkit::eventually;
use serde_json::json;
use tokio::time::sleep;

use crate::load::{Ending, Load, Report};
use crate::nodes::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_task_is_lost_when_nodes_fail() {
    let mut cluster = Cluster::start();
    let load = Load::start(&cluster).await;
    sleep(STEP).await;
    cluster.nodes[0].kill();
    sleep(STEP).await;
    cluster.nodes[0].start();
    sleep(STEP).await;
    // Longer than a lease.
    cluster.nodes[1].pause();
    sleep(Duration::from_secs(15)).await;
    cluster.nodes[1].resume();
    sleep(STEP).await;
    cluster.nodes[2].kill();
    sleep(STEP).await;
    cluster.nodes[2].start();
    sleep(STEP).await;
    let report = load.finish().await;
    for ((tool, id), ending) in &report.tasks {
        match ending {
            Ending::Completed(text) => assert_eq!(text, expected(tool), "{tool} {id}"),
            // P5: only a call that may have done something ends like this.
            Ending::Failed(why) => assert!(
                *tool != "reads" && why.contains("unknown"),
                "{tool} {id}: {why}"
            ),
        }
    }
    assert_runs(&cluster, &report);
    print_summary(&report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_no_task() {
    let mut cluster = Cluster::start();
    let load = Load::start(&cluster).await;
    for node in 0..cluster.nodes.len() {
        sleep(STEP).await;
        let node = &mut cluster.nodes[node];
        tokio::task::block_in_place(|| {
            node.stop();
            node.start();
            node.until_ready();
        });
    }
    sleep(STEP).await;
    let report = load.finish().await;
    print_summary(&report);
    assert!(report.failed_in_a_row <= 5, "{report:?}");
    for ((tool, id), ending) in &report.tasks {
        let completed = Ending::Completed(expected(tool).to_owned());
        assert_eq!(*ending, completed, "{tool} {id}");
    }
    assert_runs(&cluster, &report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_continues_when_its_node_is_killed() {
    let mut cluster = Cluster::start();
    for server in ["child", "remote"] {
        let client = cluster.session(server).await;
        let task = client
            .task("once", json!({ "id": format!("kept-{server}") }))
            .await;
        client.until(&task, "completed").await;
        let mut general = client.listen(None).await;
        let mut last = general.event().await.expect("an event").id.expect("an id");
        // One of them is the home of the session.
        for node in 0..cluster.nodes.len() {
            cluster.nodes[node].kill();
            eventually("the session continues", async || {
                let status = client.request("ping", json!({})).await.status;
                // The node may have been killed while it answered.
                assert!([200, 502, 503].contains(&status), "{status}");
                status == 200
            })
            .await;
            let listed = client.call("tasks/list", json!({})).await;
            assert_eq!(listed["result"]["tasks"][0]["taskId"], task, "{listed}");
            let mut general = client.listen(Some(&last)).await;
            let event = general.event().await.expect("an event");
            last = event.id.expect("an id");
            let started = &mut cluster.nodes[node];
            tokio::task::block_in_place(|| {
                started.start();
                started.until_ready();
            });
        }
        assert_eq!(client.delete_session().await.status, 204);
    }
}

/// The text of the result of a tool.
fn expected(tool: &str) -> &str {
    match tool {
        "asks" => "Hello, Ada!",
        tool => tool,
    }
}

/// Asserts that no call ran again, except those that only read.
fn assert_runs(cluster: &Cluster, report: &Report) {
    assert!(report.tasks.len() > 20, "{report:?}");
    let runs = cluster.runs();
    for ((tool, id), ending) in &report.tasks {
        let runs = runs.get(id).copied().unwrap_or_default();
        let most = if *tool == "reads" { 3 } else { 1 };
        assert!(runs <= most, "{tool} {id} ran {runs} times: {ending:?}");
    }
}

fn print_summary(report: &Report) {
    let failed = report.tasks.values();
    let failed = failed.filter(|ending| matches!(ending, Ending::Failed(_)));
    println!(
        "{} tasks ended, {} with an unknown outcome; {} polls failed, at most {} in a row; calls that were refused: {:#?}",
        report.tasks.len(),
        failed.count(),
        report.failed_polls,
        report.failed_in_a_row,
        report.refused
    );
}

/// The time between two events.
const STEP: Duration = Duration::from_secs(3);
