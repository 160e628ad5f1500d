//! `outlast stdio` for a host: relays that start and end, and a gateway that stays.

mod commands;
mod harness;
mod killed;
#[path = "../launcher/outlast.rs"]
mod launcher;
mod races;
mod together;

use std::os::unix::fs::PermissionsExt;

use outlast_testkit::{example, until};
use serde_json::json;
use tempfile::TempDir;

use harness::{close_host, outlast, run, start_host, start_host_with, start_refused_host, text};

#[test]
fn the_next_relay_gets_the_result_after_a_host_ends() {
    // BR-CAN-8: the end of the host's pipe ends only the relay.
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut one = start_host(home);
    let stdout_of = one.call(
        "tools/call",
        json!({ "name": "echo", "arguments": { "say": "hi" } }),
    );
    assert_eq!(stdout_of["result"]["content"][0]["text"], "hi");
    let task = one.call(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 2_000 }, "task": {} }),
    );
    let task = task["result"]["task"]["taskId"]
        .as_str()
        .expect("a task")
        .to_owned();
    let socket = home.join("outlast/tasks.db.sock");
    let mode = std::fs::metadata(&socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    close_host(one);
    // No relay is connected, but the gateway stays for the running call.
    let listed = run(home, &["tasks", "list"]);
    assert!(
        text(&listed.stdout).contains(&task),
        "{}",
        text(&listed.stderr)
    );
    let mut other = start_host(home);
    let result = other.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    let hung = other.call(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 3_600_000 }, "task": {} }),
    );
    let hung = hung["result"]["task"]["taskId"]
        .as_str()
        .expect("a task")
        .to_owned();
    close_host(other);
    let cancelled = run(home, &["tasks", "cancel", &hung]);
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    // The log is readable by its owner only.
    let log = home.join("outlast/tasks.db.log");
    let mode = std::fs::metadata(&log).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let logged = std::fs::read_to_string(&log).expect("a log");
    assert!(
        logged.contains("created") && logged.contains(&task),
        "{logged}"
    );
    // When it is idle it exits, and the file shows what happened.
    until("the gateway has left", || !socket.exists());
    until("the file is free", || {
        let got = run(home, &["tasks", "get", &hung]);
        text(&got.stdout).contains("cancelled")
    });
}

#[test]
fn two_relays_share_one_gateway() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let starting = [(); 2].map(|()| {
        let home = home.to_owned();
        std::thread::spawn(move || start_host(&home))
    });
    let [one, two] = starting.map(|host| host.join().expect("it starts"));
    let mut hosts = [one, two];
    let task = hosts[0].call(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 10 }, "task": {} }),
    );
    let task = json!({ "taskId": task["result"]["task"]["taskId"] });
    let result = hosts[1].call("tasks/result", task);
    assert_eq!(result["result"]["content"][0]["text"], "waited");
    let [one, two] = hosts;
    close_host(one);
    close_host(two);
    let socket = home.join("outlast/tasks.db.sock");
    until("the gateway has left", || !socket.exists());
}

#[test]
fn stdio_starts_a_configured_server_and_refuses_a_url() {
    let folder = TempDir::new().expect("a folder");
    let config = json!({ "mcpServers": {
        "behind": { "command": example("behind"), "outlast": { "graceMs": 1 } },
        "web": { "url": "http://127.0.0.1:1/mcp" },
    } });
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, config.to_string()).expect("it is written");
    let mut relay = outlast(folder.path());
    let mut host = start_host_with(relay.args(["stdio", "--config", "mcp.json", "behind"]));
    let stdout_of = host.call(
        "tools/call",
        json!({ "name": "echo", "arguments": { "say": "hi" } }),
    );
    assert_eq!(
        stdout_of["result"]["content"][0]["text"], "hi",
        "{stdout_of}"
    );
    close_host(host);
    for (words, why) in [
        (&["--config", "mcp.json"][..], "name one of: behind, web"),
        (&["--config", "mcp.json", "web"], "outlast serve --config"),
    ] {
        let (error, message, code) = start_refused_host(folder.path(), words);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(why), "{message}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn unknown_settings_are_reported_to_the_host() {
    let folder = TempDir::new().expect("a folder");
    let words = ["--settings", r#"{"gracems":1}"#, "--", "x"];
    let (error, message, code) = start_refused_host(folder.path(), &words);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("write `graceMs`"), "{message}");
    assert!(error.contains("write `graceMs`"), "{error}");
    // Without a request of a host, only the standard error has it.
    let closed = run(folder.path(), &[&["stdio"], &words[..]].concat());
    assert_eq!(closed.status.code(), Some(2));
    assert!(closed.stdout.is_empty(), "{}", text(&closed.stdout));
}

#[test]
fn cancelling_an_ended_task_is_an_error() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    let params = json!({ "name": "wait", "arguments": { "ms": 1 }, "task": {} });
    let task = host.call("tools/call", params);
    let id = json!({ "taskId": task["result"]["task"]["taskId"] });
    host.call("tasks/result", id.clone());
    let id = id["taskId"].as_str().expect("an id");
    let refused = run(home, &["tasks", "cancel", id]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("has already ended (completed)"), "{why}");
    close_host(host);
}
