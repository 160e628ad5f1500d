//! `outlast serve` for clients: a process that can be killed, with servers in separate processes.

#[cfg(target_os = "linux")]
mod descriptors;
mod gateway;
#[path = "../launcher/outlast.rs"]
mod launcher;
mod logs;
mod nodes;
mod operators;
mod receiver;
mod settings;
mod start;
mod webhooks;

use std::io::Write;
use std::process::{Command, Stdio};

use outlast_testkit::{RunCommand, ServerProcess, example, output_of, until, wait_for_end};
use tempfile::TempDir;

use gateway::{ATTACHED, GatewayProcess, outlast, text};

#[test]
fn any_server_gets_tasks_and_a_token_is_required() {
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    assert!(gateway.urls()[0].ends_with("/mcp"));
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
    assert_eq!(
        gateway.run_ok(&["call", "{}", "wait", "ms=10", "--task"]),
        "waited"
    );
    // A client with tasks gets no ticket tools.
    let tools = gateway.run_ok(&["doctor", "{}"]);
    assert!(
        tools.contains("echo") && !tools.contains("task_wait"),
        "{tools}"
    );
    // The owner of the gateway needs no token on the command line; another user does.
    let owner = outlast(home.path())
        .args(["call", &gateway.urls()[0], "echo", "say=hi"])
        .run();
    assert!(owner.status.success(), "{}", text(&owner.stderr));
    let elsewhere = TempDir::new().expect("a folder");
    let stranger = outlast(elsewhere.path())
        .args(["call", &gateway.urls()[0], "echo", "say=hi"])
        .run();
    assert!(!stranger.status.success());
    let why = text(&stranger.stderr);
    assert!(why.contains("401") && why.contains("--token"), "{why}");
    use std::os::unix::fs::PermissionsExt;
    let token = std::fs::metadata(home.path().join("outlast/tasks.db.token")).expect("a token");
    assert_eq!(token.permissions().mode() & 0o777, 0o600);
    // The same token at the next start, so that the owner is the same.
    let before = gateway.token();
    let address = gateway.kill();
    let gateway = GatewayProcess::for_sample_server(home.path(), &address);
    assert_eq!(gateway.token(), before);
}

#[test]
fn an_input_request_of_a_child_server_reaches_the_user() {
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    for form in ["--task", "--no-task"] {
        let mut asking = outlast(home.path())
            .args(["call", &gateway.urls()[0], "ask", "--interactive", form])
            .env("OUTLAST_TOKEN", gateway.token())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut person = asking.stdin.take().expect("a pipe");
        person.write_all(b"y\nAda\n").expect("it reads");
        drop(person);
        let output = output_of(asking);
        assert_eq!(text(&output.stdout).trim(), "Hello, Ada!", "{form}");
    }
}

#[test]
fn a_kill_loses_no_result_and_reruns_only_repeatable_calls() {
    // Guarantees 1, 2 and 4, with the real program.
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    let task = |gateway: &GatewayProcess, tool: &str, ms: &str| {
        gateway.run_ok(&["call", "{}", tool, ms, "--task", "--detach", "--as", "v1"])
    };
    let done = task(&gateway, "wait", "ms=1");
    let once = task(&gateway, "wait", "ms=3600000");
    let again = task(&gateway, "read", "ms=1500");
    until("the first has ended", || {
        gateway
            .run_ok(&["tasks", "get", "{}", &done])
            .contains("completed")
    });
    let address = gateway.kill();
    let gateway = GatewayProcess::for_sample_server(home.path(), &address);
    let result = gateway.run_ok(&["tasks", "result", "{}", &done]);
    assert!(result.contains("waited"), "{result}");
    let lost = gateway.run_ok(&["tasks", "get", "{}", &once]);
    assert!(
        lost.contains("failed") && lost.contains("unknown"),
        "{lost}"
    );
    let read = gateway.run_ok(&["tasks", "result", "{}", &again]);
    assert!(read.contains("read"), "{read}");
}

#[test]
fn an_orphaned_server_is_ended_before_its_call_runs_again() {
    // P5: a new attempt starts after the previous child has ended.
    let home = TempDir::new().expect("a folder");
    // It does not end with its input, and reports if another instance runs when it starts.
    let behind = example("behind");
    let script = format!(
        "for p in $(cat pids 2>/dev/null); do ps -o stat= -p $p | grep -v Z >> met; done; echo $$ >> pids; {}; sleep 600",
        behind.display()
    );
    let start = |address: &str| {
        // The test itself starts no other instance.
        let words = ["--name", "deaf", "--no-probe", "--", "sh", "-c", &script];
        GatewayProcess::start(home.path(), address, &words, 1)
    };
    let pids = || -> Vec<String> {
        let text = std::fs::read_to_string(home.path().join("pids")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let gateway = start("127.0.0.1:0");
    let task = gateway.run_ok(&[
        "call", "{}", "read", "ms=1000", "--task", "--detach", "--as", "v1",
    ]);
    let address = gateway.kill();
    let left = pids();
    assert_eq!(left.len(), 1);
    assert!(is_running(&left[0]), "it does not end with its input");
    let gateway = start(&address);
    let read = gateway.run_ok(&["tasks", "result", "{}", &task]);
    assert!(read.contains("read"), "{read}");
    assert!(!is_running(&left[0]));
    assert_eq!(pids().len(), 2, "it was begun again");
    let met = std::fs::read_to_string(home.path().join("met"));
    assert_eq!(met.expect("it has looked"), "", "two ran at once");
    // The test ends without a kill, so no process may be left.
    terminate(gateway);
    assert!(pids().iter().all(|pid| !is_running(pid)));
}

/// Whether a process runs. One that has ended may be listed until its parent reads its status.
fn is_running(pid: &str) -> bool {
    let shown = Command::new("ps").args(["-o", "stat=", "-p", pid]).run();
    let state = text(&shown.stdout);
    !state.trim().is_empty() && !state.contains('Z')
}

/// Stops a gateway like a service manager.
fn terminate(mut gateway: GatewayProcess) {
    let pid = gateway.process.id().to_string();
    let expected = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(expected.expect("it runs").success());
    wait_for_end(gateway.process.child());
}

#[test]
fn a_crashed_server_is_restarted_without_effect_on_another() {
    let home = TempDir::new().expect("a folder");
    let behind = example("behind");
    let config = serde_json::json!({ "mcpServers": {
        "one": { "command": behind, "outlast": { "tools": { "wait": { "task": "never" } } } },
        "two": { "command": behind },
    } });
    let file = home.path().join("mcp.json");
    std::fs::write(&file, config.to_string()).expect("it is written");
    let gateway = GatewayProcess::start(home.path(), "127.0.0.1:0", &["--config", "mcp.json"], 2);
    assert!(gateway.urls()[0].ends_with("/mcp/one") && gateway.urls()[1].ends_with("/mcp/two"));
    let two = gateway.urls()[1].clone();
    let waits = gateway.run_ok(&["call", &two, "wait", "ms=2000", "--task", "--detach"]);
    let crashed = gateway.run(&["call", "{}", "crash", "--no-task"]);
    assert!(!crashed.status.success());
    let expected = text(&crashed.stdout) + &text(&crashed.stderr);
    assert!(expected.contains("unknown"), "{expected}");
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=back"]), "back");
    let result = gateway.run_ok(&["tasks", "result", &two, &waits]);
    assert!(result.contains("waited"), "{result}");
    // The file's settings for a tool apply to that server only.
    let never = gateway.run(&["call", "{}", "wait", "ms=1", "--task", "--as", "v1"]);
    assert!(
        text(&never.stderr).contains("does not support task"),
        "{}",
        text(&never.stderr)
    );
}

#[test]
fn an_unknown_setting_prevents_the_start_of_the_gateway() {
    let home = TempDir::new().expect("a folder");
    let config = r#"{ "servers": { "a": { "command": "x", "outlast": { "gracems": 5, }, } } } // for VS Code"#;
    std::fs::write(home.path().join("mcp.json"), config).expect("it is written");
    let output = outlast(home.path())
        .args(["serve", "--http", "127.0.0.1:0", "--config", "mcp.json"])
        .run();
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stderr);
    assert!(
        why.contains("server a") && why.contains("write `graceMs`"),
        "{why}"
    );
}

#[test]
fn health_and_metrics_are_served_next_to_the_endpoint() {
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    gateway.run_ok(&["call", "{}", "wait", "ms=1", "--task", "--as", "v1"]);
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let response = gateway.get(path);
        assert_eq!((response.status, &*response.body), (200, body));
    }
    let metrics = gateway.get("/metrics");
    let media = metrics.header("content-type").expect("a media type");
    assert!(media.starts_with("text/plain"), "{media}");
    let body = metrics.body;
    for line in [
        "outlast_upstream_connections{server=\"behind\"}",
        "mcp_tasks_created_total 1",
        "mcp_tasks_ended_total{how=\"result\"} 1",
        "mcp_tasks{status=\"ended\"} 1",
        "mcp_task_duration_seconds_count{server=\"behind\",tool=\"wait\"} 1",
        "mcp_call_duration_seconds_count{server=\"behind\",tool=\"wait\"} 1",
        "mcp_call_result_bytes_count{server=\"behind\",tool=\"wait\"} 1",
        "# TYPE mcp_call_request_bytes histogram",
        "outlast_upstream_failing{server=\"behind\"} 0",
    ] {
        assert!(body.contains(line), "{line} in {body}");
    }
    assert_eq!(gateway.get("/other").status, 401);
}

#[test]
fn a_stopping_gateway_finishes_its_calls_and_ends_its_servers() {
    let home = TempDir::new().expect("a folder");
    let mut gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    let soon = gateway.run_ok(&["call", "{}", "wait", "ms=1500", "--task", "--detach"]);
    let id = gateway.process.id().to_string();
    let expected = Command::new("kill")
        .args(["-TERM", &id])
        .status()
        .expect("it runs");
    assert!(expected.success());
    // Until the work has ended it reports that it stops, and it still runs.
    until("it drains", || gateway.get("/readyz").status == 503);
    assert_eq!(
        gateway.get("/readyz").body,
        "not ready: the server is shutting down\n"
    );
    assert_eq!(gateway.get("/healthz").status, 200);
    let got = gateway.run_ok(&["tasks", "get", "{}", &soon]);
    assert!(got.contains("working"), "{got}");
    let ended = wait_for_end(gateway.process.child());
    assert!(ended.success(), "{ended}");
    let again = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    let result = again.run_ok(&["tasks", "result", "{}", &soon]);
    assert!(result.contains("waited"), "{result}");
}

#[test]
fn a_task_at_a_url_continues_after_a_gateway_kill() {
    // BR-SEC-3: found again by its stored handle, in either generation.
    let home = TempDir::new().expect("a folder");
    let words = [
        "demo",
        "--http",
        "127.0.0.1:0",
        "--store",
        "memory:",
        "--step-ms",
        "300",
    ];
    let mut demo = outlast(home.path());
    let demo = ServerProcess::start(demo.args(words).stderr(Stdio::null()), 1);
    let upstream = ["--url", demo.url(), "--name", "demo"];
    for how in ["v1", "v2"] {
        let gateway = GatewayProcess::start(home.path(), "127.0.0.1:0", &upstream, 1);
        let begun = [
            "call",
            "{}",
            "countdown",
            "from=12",
            "--task",
            "--detach",
            "--as",
            how,
        ];
        let task = gateway.run_ok(&begun);
        until("the demo has created its task", || {
            gateway.stored_tasks(ATTACHED).contains(&task)
        });
        let address = gateway.kill();
        let gateway = GatewayProcess::start(home.path(), &address, &upstream, 1);
        let result = gateway.run_ok(&["tasks", "result", "{}", &task, "--as", how]);
        assert!(!result.contains("unknown"), "{how}: {result}");
        let got = gateway.run_ok(&["tasks", "get", "{}", &task, "--as", how]);
        assert!(got.contains("completed"), "{how}: {got}");
    }
}

#[test]
fn tokens_are_added_and_revoked_while_the_gateway_runs() {
    let home = TempDir::new().expect("a folder");
    let gateway = GatewayProcess::for_sample_server(home.path(), "127.0.0.1:0");
    let secret = gateway.run_ok(&["token", "add", "reader", "--read-only"]);
    let call = |words: &[&str]| {
        let output = outlast(home.path())
            .args(words)
            .env("OUTLAST_TOKEN", &secret)
            .stdin(Stdio::null())
            .run();
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.success(), printed)
    };
    let url = gateway.urls()[0].clone();
    // The gateway reads the file soon.
    until("the token is admitted", || call(&["tools", &url]).0);
    let (called, why) = call(&["call", &url, "echo", "say=hi"]);
    assert!(!called && why.contains("missing scope: call"), "{why}");
    let list = gateway.run_ok(&["token", "list"]);
    assert_eq!(
        list.split_whitespace().collect::<Vec<_>>(),
        ["reader", "read"]
    );
    gateway.run_ok(&["token", "revoke", "reader"]);
    until("the token is refused", || !call(&["tools", &url]).0);
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
    let file = home.path().join("outlast/tasks.db.tokens.json");
    use std::os::unix::fs::PermissionsExt;
    let file = std::fs::metadata(file).expect("the file of the tokens");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}
