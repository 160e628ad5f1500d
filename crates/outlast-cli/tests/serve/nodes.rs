//! Several gateways on one PostgreSQL database.

use std::path::Path;

use outlast_testkit::{PostgresServer, PostgresSync, RunCommand, example, until};
use tempfile::TempDir;

use crate::gateway::{GatewayProcess, outlast, text};
use crate::terminate;

#[test]
fn a_task_of_one_gateway_is_followed_at_another() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, two) = (start_on(home.path(), &url), start_on(home.path(), &url));
    let id = one.run_ok(&[
        "call", "{}", "wait", "ms=300", "--task", "--detach", "--as", "v1",
    ]);
    assert_waited(&two, &id);
    assert_waited(&one, &id);
    let log = one.log();
    assert!(
        log.contains("tasks are kept in postgres://outlast@127.0.0.1"),
        "{log}"
    );
}

#[test]
fn nodes_are_listed_with_their_leases() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, _two) = (start_on(home.path(), &url), start_on(home.path(), &url));
    let table = one.run_ok(&["nodes", "--store", &url]);
    assert!(table.starts_with("NODE"), "{table}");
    assert_eq!(table.matches("joined").count(), 2, "{table}");
    let json = one.run_ok(&["nodes", "--store", &url, "--json"]);
    let nodes: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let nodes = nodes.as_array().expect("a list");
    assert_eq!(nodes.len(), 2, "{json}");
    for node in nodes {
        assert!(
            node["leaseMs"].as_u64().expect("a lease") <= 10_000,
            "{json}"
        );
        assert_eq!((&node["epoch"], &node["openTasks"]), (&1.into(), &0.into()));
    }
    let ready = one.get("/readyz").body;
    assert!(ready.contains("ready\nnode "), "{ready}");
    assert_eq!(
        ready.matches("(this node): joined, lease ").count(),
        1,
        "{ready}"
    );
    assert_eq!(ready.matches("\nnode ").count(), 2, "{ready}");
    let metrics = one.get("/metrics").body;
    assert!(
        metrics.contains("outlast_nodes{state=\"joined\"} 2"),
        "{metrics}"
    );
    assert!(metrics.contains("outlast_node_epoch 1"), "{metrics}");
}

#[test]
fn a_stopped_store_is_copied_to_a_database() {
    let home = TempDir::new().expect("a folder");
    // The default store of the gateway.
    let file = home.path().join("outlast/tasks.db");
    std::fs::create_dir(home.path().join("outlast")).expect("a folder");
    let from = format!("sqlite:{}", file.display());
    let url = PostgresServer::shared().fresh_url();
    let gateway = start_on(home.path(), &from);
    let ended = gateway.run_ok(&[
        "call", "{}", "wait", "ms=1", "--task", "--detach", "--as", "v1",
    ]);
    assert_waited(&gateway, &ended);
    let copy = |from: &str| {
        let copied = outlast(home.path())
            .args(["store", "copy", from, &url])
            .output();
        let copied = copied.expect("it runs");
        (copied.status.code(), text(&copied.stderr))
    };
    let (code, why) = copy(&from);
    assert!(code == Some(5) && why.contains("in use"), "{why}");
    gateway.kill();
    let (code, said) = copy(&from);
    assert!(code == Some(0) && said.contains("copied 1 tasks"), "{said}");
    let (code, why) = copy(&from);
    assert!(code == Some(2) && why.contains("?schema=NAME"), "{why}");
    let (code, why) = copy("sqlite:missing.db");
    assert!(code == Some(5) && why.contains("no store"), "{why}");
    let (code, why) = copy("memory:");
    assert!(
        code == Some(2) && why.contains("next: outlast store copy"),
        "{why}"
    );
    // The gateway on the database makes its own token for the same local user.
    std::fs::remove_file(home.path().join("outlast/tasks.db.token")).expect("a token");
    assert_waited(&start_on(home.path(), &url), &ended);
}

#[test]
fn tasks_of_a_killed_gateway_are_settled_by_another() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, two) = (start_on(home.path(), &url), start_on(home.path(), &url));
    let id = one.run_ok(&LONG_TASK);
    one.kill();
    assert_outcome_unknown(&two, &id);
}

#[test]
fn a_gateway_that_stops_leaves_its_tasks_to_another() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, two) = (start_on(home.path(), &url), start_on(home.path(), &url));
    let id = one.run_ok(&LONG_TASK);
    terminate(one);
    // It left. It did not wait until its lease lapsed.
    let nodes = two.run_ok(&["nodes", "--store", &url, "--json"]);
    let nodes: serde_json::Value = serde_json::from_str(&nodes).expect("JSON");
    assert_eq!(nodes.as_array().map(Vec::len), Some(1), "{nodes}");
    assert_outcome_unknown(&two, &id);
}

#[test]
fn a_gateway_is_not_ready_while_its_database_is_away() {
    let home = TempDir::new().expect("a folder");
    let server = PostgresServer::start(PostgresSync::On, "");
    let gateway = start_on(home.path(), &server.url("outlast"));
    let id = gateway.run_ok(&[
        "call", "{}", "wait", "ms=10", "--task", "--detach", "--as", "v1",
    ]);
    assert_waited(&gateway, &id);
    server.crash();
    until("it is not ready", || gateway.get("/readyz").status == 503);
    assert_eq!(gateway.get("/healthz").status, 200);
    let refused = gateway.run(&["tasks", "get", "{}", &id]);
    let why = text(&refused.stderr);
    assert!(why.contains("the store is unavailable"), "{why}");
    server.launch().expect("the database starts again");
    until("it is ready", || gateway.get("/readyz").status == 200);
    assert_waited(&gateway, &id);
}

#[test]
fn an_unreachable_database_is_named_without_its_password() {
    let home = TempDir::new().expect("a folder");
    let behind = example("behind");
    // No server listens on the port that is reserved for discard.
    let url = "postgres://ada:sesame@127.0.0.1:9/tasks";
    let started = outlast(home.path())
        .args(["serve", "--http", "127.0.0.1:0", "--store", url, "--"])
        .arg(behind)
        .run();
    let why = text(&started.stderr);
    assert!(!started.status.success());
    assert!(why.contains("cannot use the PostgreSQL database"), "{why}");
    assert!(why.contains("next: check the URL"), "{why}");
    assert!(!why.contains("sesame"), "{why}");
}

fn assert_waited(gateway: &GatewayProcess, id: &str) {
    let result = gateway.run_ok(&["tasks", "result", "{}", id]);
    assert!(result.contains("waited"), "{result}");
}

fn assert_outcome_unknown(gateway: &GatewayProcess, id: &str) {
    let result = gateway.run(&["tasks", "result", "{}", id]);
    let printed = text(&result.stdout) + &text(&result.stderr);
    assert!(
        !result.status.success() && printed.contains("unknown"),
        "{printed}"
    );
}

/// A call that runs until its gateway ends.
const LONG_TASK: [&str; 8] = [
    "call",
    "{}",
    "wait",
    "ms=600000",
    "--task",
    "--detach",
    "--as",
    "v1",
];

/// A gateway for the sample server on the store at `url`.
fn start_on(home: &Path, url: &str) -> GatewayProcess {
    let behind = example("behind");
    let words = ["--store", url, "--", behind.to_str().expect("a path")];
    GatewayProcess::start(home, "127.0.0.1:0", &words, 1)
}
