//! The settings of servers and owners in the configuration file apply.

use std::process::{Output, Stdio};

use outlast_testkit::{RunCommand, example, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::{GatewayProcess, outlast, text};
use crate::receiver::{Receiver, ResponseMode};

/// A gateway for the sample server with these settings. `all` applies to the whole gateway.
fn start(home: &TempDir, settings: &Value, all: &Value) -> GatewayProcess {
    let server = json!({ "command": example("behind"), "outlast": settings });
    let config = json!({ "mcpServers": { "behind": server }, "outlast": all });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let tokens = json!({ "bob": "bobs-secret" });
    std::fs::write(home.path().join("tokens.json"), tokens.to_string()).expect("it is written");
    let words = ["--config", "mcp.json", "--tokens", "tokens.json"];
    GatewayProcess::start(home.path(), "127.0.0.1:0", &words, 1)
}

fn run_as_bob(gateway: &GatewayProcess, words: &[&str]) -> Output {
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

const LONG_CALL_WORDS: [&str; 6] = ["call", "{}", "wait", "ms=3600000", "--task", "--detach"];

#[test]
fn open_calls_are_limited_per_owner_and_server() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home, &json!({ "openCallsPerOwner": 1 }), &json!({}));
    let open = gateway.run_ok(&LONG_CALL_WORDS);
    let refused = gateway.run(&["call", "{}", "echo", "say=hi"]);
    assert!(!refused.status.success());
    assert!(
        error_text(&refused).contains("openCallsPerOwner"),
        "{}",
        error_text(&refused)
    );
    let other = run_as_bob(&gateway, &["call", "echo", "say=hi"]);
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
    gateway.run_ok(&LONG_CALL_WORDS);
    let refused = run_as_bob(&gateway, &["call", "echo", "say=hi"]);
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
    let long = [&LONG_CALL_WORDS[..], &["--as", "v1"]].concat();
    gateway.run_ok(&long);
    let refused = gateway.run(&long);
    assert!(!refused.status.success(), "{}", error_text(&refused));
    // A call that does not become a task is still answered.
    let plain = ["call", "{}", "echo", "say=hi", "--no-task"];
    assert_eq!(gateway.run_ok(&plain), "hi");
    let other = run_as_bob(&gateway, &["call", "wait", "ms=1", "--task"]);
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
fn a_tool_reruns_after_a_kill_if_configured() {
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

#[test]
fn a_denied_tool_does_not_exist_for_its_caller() {
    let home = TempDir::new().expect("a folder");
    let settings = json!({
        "denyTools": ["cra*"],
        "principals": { "bob": { "allowTools": ["echo", "crash"] } },
    });
    let gateway = start(&home, &settings, &json!({}));
    let mine = gateway.run_ok(&["tools", "{}"]);
    assert!(mine.contains("wait") && !mine.contains("crash"), "{mine}");
    let bobs = run_as_bob(&gateway, &["tools"]);
    let bobs = error_text(&bobs);
    assert!(
        bobs.contains("echo") && !bobs.contains("wait") && !bobs.contains("crash"),
        "{bobs}"
    );
    assert_eq!(gateway.run_ok(&["call", "{}", "wait", "ms=1"]), "waited");
    let echo = run_as_bob(&gateway, &["call", "echo", "say=hi"]);
    assert!(echo.status.success(), "{}", error_text(&echo));
    for (token, tool) in [("bobs-secret", "wait"), (gateway.token().as_str(), "crash")] {
        // Sent as it is: `outlast call` would refuse a tool that is not listed.
        let params = json!({ "name": tool, "arguments": { "ms": 1 } });
        let mut connection = gateway.connect();
        let answer = connection.call_tool("/mcp", token, params, json!({}));
        let unknown = format!("unknown tool: {tool}");
        assert!(answer.body.contains(&unknown), "{answer:?}");
    }
}

#[test]
fn each_principal_has_its_own_keys_at_a_server() {
    let home = TempDir::new().expect("a folder");
    let receiver = Receiver::start(ResponseMode::Status(500));
    let behind = example("behind");
    let script = format!("echo \"$API_KEY\" >> keys; exec {}", behind.display());
    let config = json!({ "mcpServers": {
        "child": {
            "command": "sh", "args": ["-c", script], "env": { "API_KEY": "shared" },
            "outlast": { "principals": { "bob": { "env": { "API_KEY": "${BOBS_KEY}" } } } },
        },
        "web": {
            "url": receiver.url, "headers": { "Authorization": "Bearer shared" },
            "outlast": { "principals": { "bob": { "headers": { "authorization": "Bearer ${BOBS_KEY}" } } } },
        },
    } });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let tokens = json!({ "bob": "bobs-secret" });
    std::fs::write(home.path().join("tokens.json"), tokens.to_string()).expect("it is written");
    let mut command = outlast(home.path());
    command.args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--no-probe",
        "--config",
        "mcp.json",
    ]);
    command
        .args(["--tokens", "tokens.json"])
        .env("BOBS_KEY", "of-bob")
        .stderr(Stdio::null());
    let gateway = GatewayProcess {
        process: outlast_testkit::ServerProcess::start(&mut command, 2),
        home: home.path().to_owned(),
    };
    let web = gateway.urls()[1].clone();
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
    gateway.run(&["tools", &web]);
    let used = |receiver: &Receiver| -> Vec<String> {
        let requests = receiver.requests();
        requests
            .iter()
            .map(|request| request.header("authorization").to_owned())
            .collect()
    };
    let mine = used(&receiver);
    assert!(
        !mine.is_empty() && mine.iter().all(|key| key == "Bearer shared"),
        "{mine:?}"
    );
    let echo = run_as_bob(&gateway, &["call", "echo", "say=hi"]);
    assert!(echo.status.success(), "{}", error_text(&echo));
    let keys = std::fs::read_to_string(home.path().join("keys")).expect("the keys");
    assert_eq!(keys, "shared\nof-bob\n");
    let tools = outlast(home.path())
        .args(["tools", &web])
        .env("OUTLAST_TOKEN", "bobs-secret")
        .run();
    assert!(!tools.status.success());
    let bobs = &used(&receiver)[mine.len()..];
    assert!(
        !bobs.is_empty() && bobs.iter().all(|key| key == "Bearer of-bob"),
        "{bobs:?}"
    );
}

#[test]
fn the_audit_file_says_who_did_what() {
    let home = TempDir::new().expect("a folder");
    let all = json!({ "audit": { "file": "audit.log" } });
    let gateway = start(&home, &json!({}), &all);
    let done = gateway.run_ok(&[
        "call", "{}", "wait", "ms=1", "--task", "--detach", "--as", "v1",
    ]);
    until("it has ended", || {
        gateway
            .run_ok(&["tasks", "get", "{}", &done])
            .contains("completed")
    });
    let open = gateway.run_ok(&LONG_CALL_WORDS);
    gateway.run_ok(&["tasks", "cancel", "{}", &open]);
    gateway.run_ok(&["tasks", "delete", &done]);
    let asking = run_as_bob(&gateway, &["call", "ask", "--task", "--detach"]);
    let asked = text(&asking.stdout).trim().to_owned();
    until("it asks", || {
        let words = [
            "tasks",
            "answer",
            &gateway.urls()[0],
            &asked,
            "--with",
            r#"{"action":"decline"}"#,
        ];
        let answered = outlast(home.path())
            .args(words)
            .env("OUTLAST_TOKEN", "bobs-secret")
            .run();
        answered.status.success()
    });
    let path = home.path().join("audit.log");
    let written = || -> Vec<Value> {
        let text = std::fs::read_to_string(&path).expect("the file");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let has = |what: &str, task: &str, member: &str, value: &str| {
        written().iter().any(|line| {
            line["message"] == what
                && line["task"] == task
                && line[member] == value
                && line["timestamp"].is_string()
        })
    };
    for (what, task, member, value) in [
        ("created", &done, "owner", "principal:local"),
        ("created", &done, "tool", "wait"),
        ("ended", &done, "how", "result"),
        ("cancelled", &open, "by", "principal:local"),
        ("deleted", &done, "by", "operator"),
        ("created", &asked, "owner", "principal:bob"),
        ("input answered", &asked, "owner", "principal:bob"),
        ("input answered", &asked, "by", "principal:bob"),
    ] {
        assert!(
            has(what, task, member, value),
            "{what} {task} {member}: {:#?}",
            written()
        );
    }
    // The log has none of it, and the file contains no arguments.
    assert!(!gateway.log().contains("input answered"));
    assert!(
        !std::fs::read_to_string(&path)
            .expect("the file")
            .contains("3600000")
    );
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&path)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn ended_tasks_are_pruned_by_number() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home, &json!({}), &json!({}));
    let done: Vec<_> = (0..3)
        .map(|_| {
            gateway.run_ok(&[
                "call", "{}", "wait", "ms=1", "--task", "--detach", "--as", "v1",
            ])
        })
        .collect();
    for task in &done {
        until("it has ended", || {
            gateway
                .run_ok(&["tasks", "get", "{}", task])
                .contains("completed")
        });
    }
    let open = gateway.run_ok(&LONG_CALL_WORDS);
    let shown = gateway.run_ok(&["tasks", "prune", "--keep", "1", "--dry-run"]);
    assert_eq!(shown.lines().collect::<Vec<_>>(), [&done[1], &done[0]]);
    assert_eq!(
        gateway.run_ok(&["tasks", "prune", "--keep", "0", "--status", "failed"]),
        ""
    );
    assert_eq!(
        gateway.run_ok(&["tasks", "prune", "--keep", "1", "--older-than", "1d"]),
        shown
    );
    let listed = gateway.run_ok(&["tasks", "list", "--json"]);
    assert!(
        listed.contains(&done[2]) && listed.contains(&open),
        "{listed}"
    );
    assert!(
        !listed.contains(&done[0]) && !listed.contains(&done[1]),
        "{listed}"
    );
    assert!(!gateway.run(&["tasks", "prune"]).status.success());
    // By size: the result of the last one has more than one byte.
    assert_eq!(
        gateway.run_ok(&["tasks", "prune", "--max-bytes", "1"]),
        done[2]
    );
}
