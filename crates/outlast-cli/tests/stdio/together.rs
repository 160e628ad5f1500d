//! `outlast serve` and `outlast stdio` on one store: one gateway, whichever starts first.

use std::process::Stdio;

use outlast_testkit::{example, until};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{
    RunningServe, call_echo, close_host, gateway_pid, outlast, run, start_host, start_host_with,
    start_refused_host, status, stdout_of, text,
};

#[test]
fn a_relay_attaches_to_the_gateway_that_serve_runs() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let serving = RunningServe::start(home);
    let mut host = start_host(home);
    call_echo(&mut host, "hi");
    let status = status(home);
    assert_eq!(status["gateway"]["pid"], serving.child.id(), "{status}");
    assert_eq!(status["gateway"]["kind"], "serve");
    assert_eq!(status["gateway"]["hosts"], 1);
    assert_eq!(status["gateway"]["urls"], json!([serving.url]));
    // HTTP clients are served as before, and the command line finds the token itself.
    assert_eq!(
        stdout_of(home, &["call", &serving.url, "echo", "say=there"]),
        "there"
    );
    close_host(host);
}

#[test]
fn serve_replaces_a_background_gateway_and_keeps_its_relays() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    call_echo(&mut host, "one");
    let before = gateway_pid(home);
    let mut serving = RunningServe::start(home);
    assert_ne!(serving.pid(), before);
    call_echo(&mut host, "two");
    assert_eq!(gateway_pid(home), serving.pid());
    // When it stops, the relay continues without it.
    let task = host.task("wait", json!({ "ms": 1 }));
    let result = host.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    kill_process(serving.pid(), Signal::TERM).expect("it runs");
    // Either gateway may respond, because the signal arrives at any time.
    call_echo(&mut host, "three");
    serving.wait_for_end();
    let result = host.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    assert_ne!(gateway_pid(home), serving.pid());
    close_host(host);
}

#[test]
fn serve_waits_for_the_calls_of_a_background_gateway() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let gate = home.join("gate");
    let mut host = start_host(home);
    let task = host.task("wait", json!({ "file": gate }));
    let mut serving = RunningServe::begin(home);
    serving
        .stderr
        .until("waiting for the gateway in the background");
    std::fs::write(&gate, "").expect("it is written");
    // The call was not interrupted.
    let result = host.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    let serving = serving.started();
    assert_eq!(gateway_pid(home), serving.pid());
    close_host(host);
}

#[test]
fn a_second_serve_on_a_store_is_refused_by_name() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let serving = RunningServe::start(home);
    let behind = example("behind");
    let behind = behind.to_str().expect("a path");
    let refused = run(home, &["serve", "--http", "127.0.0.1:0", "--", behind]);
    let why = text(&refused.stderr);
    // The same code as for every other store that is in use.
    assert_eq!(refused.status.code(), Some(5), "{why}");
    let pid = format!("process {}", serving.child.id());
    assert!(why.contains(&pid) && why.contains(&serving.url), "{why}");
    assert!(
        why.contains("next:") && why.contains("outlast gateway stop"),
        "{why}"
    );
}

#[test]
fn relays_that_differ_in_harmless_variables_share_a_server() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let behind = example("behind");
    let window = |shlvl: &str, key: &str| {
        let mut command = outlast(home);
        command
            .env("SHLVL", shlvl)
            .env("_", shlvl)
            .env("OLDPWD", shlvl)
            .env("KEY", key);
        start_host_with(command.arg("stdio").arg("--").arg(&behind))
    };
    let mut hosts = [window("1", "a"), window("2", "a"), window("3", "b")];
    hosts.iter_mut().for_each(|host| call_echo(host, "hi"));
    let servers = status(home)["gateway"]["servers"].clone();
    assert_eq!(servers.as_array().map(Vec::len), Some(2), "{servers}");
    hosts.into_iter().for_each(close_host);
}

#[test]
fn a_store_in_use_is_reported_to_the_host() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let store = format!("sqlite:{}", home.join("outlast/tasks.db").display());
    std::fs::create_dir(home.join("outlast")).expect("a folder");
    let mut demo = outlast(home)
        .args(["demo", "--http", "127.0.0.1:0", "--store", &store])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    until("the demo has the store", || {
        home.join("outlast/tasks.db-wal").exists()
    });
    let (error, why, code) = start_refused_host(home, &["--", "server"]);
    demo.kill().expect("it runs");
    demo.wait().expect("it ends");
    assert_eq!(code, Some(5), "{why}");
    for text in [&error, &why] {
        assert!(
            text.contains("in use by process")
                && text.contains("next:")
                && text.contains("--store"),
            "{text}"
        );
    }
}
