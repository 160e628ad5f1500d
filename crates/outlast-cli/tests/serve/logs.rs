//! What a gateway logs, and what it must never log.

use std::process::Stdio;
use std::time::Instant;

use outlast_testkit::mcp::tasks_only;
use outlast_testkit::{RunCommand, ServerProcess, example, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::{Gateway, outlast, text};

/// Text that must not be logged. Each source adds its own suffix, so that a leak names its source.
const SECRET: &str = "hunter2-";

/// The default level and the audit trail.
const AUDITED: &str = "info,outlast::audit=info";

fn secret(place: &str) -> String {
    format!("{SECRET}{place}")
}

/// Writes a configuration file whose servers each have a secret, and a token file.
fn write_files(home: &std::path::Path, web: &str) {
    let config = json!({ "mcpServers": {
        "child": { "command": example("behind"), "args": ["--key", secret("argument")], "env": { "KEY": secret("environment") } },
        "web": { "url": web, "headers": { "X-Key": secret("header") } },
        "gone": {
            "url": format!("http://127.0.0.1:1/mcp?key={}", secret("url")),
            "headers": { "X-Key": secret("unused-header") },
        },
    } });
    std::fs::write(home.join("mcp.json"), config.to_string()).expect("it is written");
    let tokens = json!({ "ada": secret("token") });
    std::fs::write(home.join("tokens.json"), tokens.to_string()).expect("it is written");
}

/// Performs everything that a client does and that may be logged.
fn visit(gateway: &Gateway, home: &std::path::Path) {
    let call = |server: usize, token: &str, words: &[&str]| {
        let (url, rest) = (gateway.urls()[server].as_str(), &words[1..]);
        let output = outlast(home)
            .args([words[0], url])
            .args(rest)
            .env("OUTLAST_TOKEN", token)
            .stdin(Stdio::null())
            .run();
        text(&output.stdout) + &text(&output.stderr)
    };
    let (ada, say) = (secret("token"), format!("say={}", secret("tool-argument")));
    // In the order of their names: child, gone, web.
    for how in [
        &["--as", "v1", "--task"][..],
        &["--as", "v2"],
        &["--no-task"],
    ] {
        let output = call(0, &ada, &[&["call", "echo", &say], how].concat());
        assert!(output.contains(SECRET), "the tool answers: {output}");
    }
    let odd = format!("ms=\"{}\"", secret("wrong-argument"));
    call(0, &ada, &["call", "wait", &odd, "--task", "--as", "v1"]);
    call(0, &ada, &["call", &secret("tool"), "--no-task"]);
    call(0, &ada, &["call", "crash", "--no-task"]);
    let output = call(0, &ada, &["call", "echo", &say]);
    assert!(output.contains(SECRET), "it is back: {output}");
    let unreachable = call(1, &ada, &["call", "echo", &say]);
    assert!(unreachable.contains("cannot be reached"), "{unreachable}");
    let output = call(2, &ada, &["call", "countdown", "from=1", "--task"]);
    assert!(!output.is_empty());
    call(0, &secret("wrong-token"), &["call", "echo", &say]);
    let session = secret("session");
    post(gateway, "/mcp/child", &ada, &session, "not json");
    let meta = json!({ "k": secret("meta") });
    let odd = json!({ "jsonrpc": "2.0", "id": 1, "method": "x", "params": { "_meta": meta } });
    post(gateway, "/mcp/child", &ada, &session, &odd.to_string());
}

/// Sends a body to the endpoint at `path`, with a header that must not be logged.
fn post(gateway: &Gateway, path: &str, token: &str, session: &str, body: &str) {
    let token = format!("Bearer {token}");
    let headers = [
        ("authorization", token.as_str()),
        ("x-own", &secret("own-header")),
        ("mcp-session-id", session),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    gateway.connect().send("POST", path, &headers, body);
}

#[test]
fn the_log_contains_no_secrets_and_no_messages() {
    let home = TempDir::new().expect("a folder");
    let words = ["demo", "--http", "127.0.0.1:0", "--store", "memory:"];
    let mut demo = outlast(home.path());
    demo.args(words)
        .args(["--step-ms", "1"])
        .stderr(Stdio::null());
    let demo = ServerProcess::start(&mut demo, 1);
    write_files(home.path(), demo.url());
    for format in ["text", "json"] {
        let words = [
            "--config",
            "mcp.json",
            "--tokens",
            "tokens.json",
            "--log",
            AUDITED,
            "--log-format",
            format,
        ];
        let gateway = Gateway::start(home.path(), "127.0.0.1:0", &words, 3);
        visit(&gateway, home.path());
        // The last line is written when the process handles the end.
        until("the log is complete", || {
            gateway.log().contains("unknown session")
        });
    }
    let log = std::fs::read_to_string(home.path().join("stderr")).expect("a log");
    let lines: Vec<_> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    // The log is not empty: it contains what an operator needs, in both formats.
    for expected in [
        "connected",
        "created",
        "ended",
        "connection lost",
        "connection restored",
        "cannot connect to the upstream",
        "unknown token",
        "unknown session",
        "answered with an error",
    ] {
        let lines: Vec<_> = log.lines().filter(|line| line.contains(expected)).collect();
        let json = lines
            .iter()
            .any(|line| serde_json::from_str::<Value>(line).is_ok());
        let text = lines.iter().any(|line| line.contains(" outlast"));
        assert!(json && text, "{expected}: {lines:#?}");
    }
}

#[test]
fn requests_are_logged_only_with_the_audit_trail() {
    let home = TempDir::new().expect("a folder");
    let behind = example("behind");
    let behind = ["--", behind.to_str().expect("a path")];
    // The lines for two tasks and three refused requests. The connection to the server exists
    // before.
    let written = |filter: &[&str]| {
        let words = [filter, &behind].concat();
        let gateway = Gateway::start(home.path(), "127.0.0.1:0", &words, 1);
        gateway.run_ok(&["call", "{}", "echo", "say=hi"]);
        let before = gateway.log().len();
        for how in ["v1", "v2"] {
            let task = gateway.run_ok(&["call", "{}", "wait", "ms=1", "--task", "--as", how]);
            assert_eq!(task, "waited");
        }
        for body in ["not json", "{}", "[]"] {
            post(&gateway, "/mcp", "no such token", "", body);
        }
        gateway.log().split_off(before)
    };
    assert_eq!(written(&[]), "");
    assert_eq!(written(&["--log", "info"]), "");
    let audited = written(&["--log", "outlast::audit=info"]);
    for (event, least) in [
        ("created", 1),
        ("ended", 1),
        ("result retrieved", 1),
        ("request rejected", 3),
    ] {
        let lines = audited
            .lines()
            .filter(|line| line.contains("outlast::audit"));
        let count = lines.filter(|line| line.contains(event)).count();
        assert!(count >= least, "{event}: {audited}");
    }
}

#[test]
fn calls_with_their_own_connections_write_no_log_lines() {
    let home = TempDir::new().expect("a folder");
    let behind = json!({
        "command": example("behind"),
        "outlast": { "isolate": "call", "connections": 3, "task": "always" },
    });
    let config = json!({ "mcpServers": { "behind": behind } });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let gateway = Gateway::start(home.path(), "127.0.0.1:0", &["--config", "mcp.json"], 1);
    // It opens the connection that lists the tools.
    assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
    let before = gateway.log().len();
    let logged = || gateway.log().split_off(before);
    for _ in 0..3 {
        assert_eq!(gateway.run_ok(&["call", "{}", "echo", "say=hi"]), "hi");
    }
    assert_eq!(logged(), "");
    // Calls beyond the limit of connections fail, and few of them write a line.
    let token = gateway.token();
    let mut connection = gateway.connect();
    let mut call = |ms: u32| {
        let params = json!({ "name": "wait", "arguments": { "ms": ms } });
        connection.call_tool("/mcp", &token, params, tasks_only());
    };
    for _ in 0..3 {
        call(3_600_000);
    }
    for _ in 0..40 {
        call(1);
    }
    let reached = "the limit of connections is reached";
    until("a line about the limit", || logged().contains(reached));
    let lines = logged()
        .lines()
        .filter(|line| line.contains(reached))
        .count();
    assert!(lines <= 20, "{lines} lines");
}

#[test]
fn a_flood_of_refused_requests_writes_few_lines() {
    let home = TempDir::new().expect("a folder");
    let behind = example("behind");
    let words = ["--log", "outlast::audit=info", "--"];
    let words = [&words[..], &[behind.to_str().expect("a path")]].concat();
    let gateway = Gateway::start(home.path(), "127.0.0.1:0", &words, 1);
    let begun = Instant::now();
    for _ in 0..200 {
        let headers = [("authorization", "Bearer no such token")];
        let answer = gateway.connect().send("POST", "/mcp", &headers, "{}");
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    // docs/limits.md: at most 20 lines in 10 s. A slow machine needs several of these windows.
    let windows = begun.elapsed().as_secs() / 10 + 1;
    let written = gateway.log();
    let rejected = |line: &&str| line.contains("request rejected");
    let lines = written.lines().filter(rejected).count() as u64;
    assert!((1..=20 * windows).contains(&lines), "{windows}: {written}");
    assert!(windows >= 10 || lines < 200, "{windows}: {written}");
    assert!(written.contains("left_out=0"), "{written}");
}

#[test]
fn a_log_can_be_disabled_and_an_unknown_level_is_refused() {
    let home = TempDir::new().expect("a folder");
    let behind = example("behind");
    let words = ["--log", "off", "--", behind.to_str().expect("a path")];
    let gateway = Gateway::start(home.path(), "127.0.0.1:0", &words, 1);
    gateway.run_ok(&["call", "{}", "wait", "ms=1", "--task", "--as", "v1"]);
    assert!(!gateway.log().contains("created"), "{}", gateway.log());
    drop(gateway);
    let output = outlast(home.path())
        .args(["serve", "--log", "loud", "--", "x"])
        .run();
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stderr);
    assert!(why.contains("`loud`") && why.contains("next:"), "{why}");
}

#[test]
fn log_lines_of_a_call_contain_the_trace_of_its_caller() {
    // V2-META-9.
    let home = TempDir::new().expect("a folder");
    let config = json!({ "mcpServers": { "child": { "command": example("behind"), "outlast": { "task": "always" } } } });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let words = ["--config", "mcp.json", "--log", AUDITED];
    let gateway = Gateway::start(home.path(), "127.0.0.1:0", &words, 1);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let params = json!({
        "name": "wait",
        "arguments": { "ms": 1 },
        "_meta": {
            "traceparent": format!("00-{trace}-b7ad6b7169203331-01"),
            "baggage": format!("key={}", secret("baggage")),
        },
    });
    let mut connection = gateway.connect();
    let answer = connection.call_tool("/mcp", &gateway.token(), params, tasks_only());
    assert!(answer.body.contains("taskId"), "{answer:?}");
    for step in ["created", "ended"] {
        until(step, || {
            let log = gateway.log();
            let mut lines = log.lines();
            lines.any(|line| line.contains(step) && line.contains(trace))
        });
    }
    assert!(!gateway.log().contains(SECRET), "{}", gateway.log());
}
