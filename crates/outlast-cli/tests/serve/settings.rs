//! The settings of servers and owners in the configuration file apply.

use std::process::{Output, Stdio};

use outlast_testkit::{RunCommand, example, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::{Gateway, outlast, text};

/// A gateway for the sample server with these settings. `all` applies to the whole gateway.
fn start(home: &TempDir, settings: &Value, all: &Value) -> Gateway {
    let server = json!({ "command": example("behind"), "outlast": settings });
    let config = json!({ "mcpServers": { "behind": server }, "outlast": all });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let tokens = json!({ "bob": "bobs-secret" });
    std::fs::write(home.path().join("tokens.json"), tokens.to_string()).expect("it is written");
    let words = ["--config", "mcp.json", "--tokens", "tokens.json"];
    Gateway::start(home.path(), "127.0.0.1:0", &words, 1)
}

fn as_bob(gateway: &Gateway, words: &[&str]) -> Output {
    outlast(&gateway.home)
        .args([words[0], &gateway.urls()[0]])
        .args(&words[1..])
        .env("OUTLAST_TOKEN", "bobs-secret")
        .stdin(Stdio::null())
        .run()
}

fn error_text(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

const LONG: [&str; 6] = ["call", "{}", "wait", "ms=3600000", "--task", "--detach"];

#[test]
fn open_calls_are_limited_per_owner_and_server() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home, &json!({ "openCallsPerOwner": 1 }), &json!({}));
    let open = gateway.run_ok(&LONG);
    let refused = gateway.run(&["call", "{}", "echo", "say=hi"]);
    assert!(!refused.status.success());
    assert!(
        error_text(&refused).contains("openCallsPerOwner"),
        "{}",
        error_text(&refused)
    );
    let other = as_bob(&gateway, &["call", "echo", "say=hi"]);
    assert!(error_text(&other).contains("hi"), "{}", error_text(&other));
    gateway.run_ok(&["tasks", "cancel", "{}", &open]);
    until("there is room again", || {
        gateway
            .run(&["call", "{}", "echo", "say=hi"])
            .status
            .success()
    });
}

#[test]
fn open_calls_are_limited_per_server() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home, &json!({ "openCalls": 1 }), &json!({}));
    gateway.run_ok(&LONG);
    let refused = as_bob(&gateway, &["call", "echo", "say=hi"]);
    assert!(
        error_text(&refused).contains("`openCalls`"),
        "{}",
        error_text(&refused)
    );
}

#[test]
fn open_tasks_are_limited_per_owner_across_servers() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home, &json!({}), &json!({ "openTasksPerOwner": 1 }));
    let long = [&LONG[..], &["--as", "v1"]].concat();
    gateway.run_ok(&long);
    let refused = gateway.run(&long);
    assert!(!refused.status.success(), "{}", error_text(&refused));
    // A call that does not become a task is still answered.
    let plain = ["call", "{}", "echo", "say=hi", "--no-task"];
    assert_eq!(gateway.run_ok(&plain), "hi");
    let other = as_bob(&gateway, &["call", "wait", "ms=1", "--task"]);
    assert!(
        error_text(&other).contains("waited"),
        "{}",
        error_text(&other)
    );
}

#[test]
fn a_call_ends_at_its_timeout() {
    let home = TempDir::new().expect("a folder");
    let settings = json!({ "tools": { "wait": { "timeoutMs": 200 } } });
    let gateway = start(&home, &settings, &json!({}));
    let late = gateway.run(&["call", "{}", "wait", "ms=3600000", "--task"]);
    assert!(
        error_text(&late).contains("timeoutMs"),
        "{}",
        error_text(&late)
    );
}

#[test]
fn a_tool_reruns_after_a_kill_if_the_file_allows_it() {
    let home = TempDir::new().expect("a folder");
    let settings =
        json!({ "tools": { "wait": { "retry": "rerun" }, "read": { "retry": "never" } } });
    let gateway = start(&home, &settings, &json!({}));
    let task = |tool: &str| {
        gateway.run_ok(&[
            "call", "{}", tool, "ms=1500", "--task", "--detach", "--as", "v1",
        ])
    };
    let (again, never) = (task("wait"), task("read"));
    gateway.kill();
    let gateway = start(&home, &settings, &json!({}));
    let result = gateway.run_ok(&["tasks", "result", "{}", &again]);
    assert!(result.contains("waited"), "{result}");
    let lost = gateway.run_ok(&["tasks", "get", "{}", &never]);
    assert!(
        lost.contains("failed") && lost.contains("unknown"),
        "{lost}"
    );
}

#[test]
fn the_file_sets_the_era_of_a_server() {
    for (era, expected) in [("legacy", "era=Legacy"), ("modern", "era=Modern")] {
        let home = TempDir::new().expect("a folder");
        let gateway = start(&home, &json!({ "era": era }), &json!({}));
        assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
        let log = gateway.log();
        assert!(log.contains(expected), "{log}");
    }
}
