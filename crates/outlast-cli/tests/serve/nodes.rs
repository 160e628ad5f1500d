//! Several gateways on one PostgreSQL database.

use std::path::Path;

use outlast_testkit::{PostgresServer, PostgresSync, RunCommand, example, until};
use tempfile::TempDir;

use crate::gateway::{Gateway, outlast, text};

#[test]
fn a_task_of_one_gateway_is_followed_at_another() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, two) = (on(home.path(), &url), on(home.path(), &url));
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
fn tasks_of_a_killed_gateway_are_settled_by_another() {
    let home = TempDir::new().expect("a folder");
    let url = PostgresServer::shared().fresh_url();
    let (one, two) = (on(home.path(), &url), on(home.path(), &url));
    let id = one.run_ok(&[
        "call",
        "{}",
        "wait",
        "ms=600000",
        "--task",
        "--detach",
        "--as",
        "v1",
    ]);
    one.kill();
    let result = two.run(&["tasks", "result", "{}", &id]);
    let said = text(&result.stdout) + &text(&result.stderr);
    assert!(
        !result.status.success() && said.contains("unknown"),
        "{said}"
    );
}

#[test]
fn a_gateway_is_not_ready_while_its_database_is_away() {
    let home = TempDir::new().expect("a folder");
    let server = PostgresServer::start(PostgresSync::On, "");
    let gateway = on(home.path(), &server.url("outlast"));
    let id = gateway.run_ok(&[
        "call", "{}", "wait", "ms=10", "--task", "--detach", "--as", "v1",
    ]);
    assert_waited(&gateway, &id);
    server.crash();
    until("it is not ready", || {
        gateway.get("/readyz").0.contains(" 503 ")
    });
    assert!(gateway.get("/healthz").0.contains(" 200 "));
    let refused = gateway.run(&["tasks", "get", "{}", &id]);
    let why = text(&refused.stderr);
    assert!(why.contains("the store is unavailable"), "{why}");
    server.launch().expect("the database starts again");
    until("it is ready", || gateway.get("/readyz").0.contains(" 200 "));
    assert_waited(&gateway, &id);
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
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

fn assert_waited(gateway: &Gateway, id: &str) {
    let result = gateway.run_ok(&["tasks", "result", "{}", id]);
    assert!(result.contains("waited"), "{result}");
}

/// A gateway for the sample server on the store at `url`.
fn on(home: &Path, url: &str) -> Gateway {
    let behind = example("behind");
    let words = ["--store", url, "--", behind.to_str().expect("a path")];
    Gateway::start(home, "127.0.0.1:0", &words, 1)
}
