//! The messages at the start of a gateway about servers that cannot be reached.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use outlast_testkit::{RunCommand, ServerProcess, example, until};
use serde_json::json;
use tempfile::TempDir;

use crate::gateway::{GatewayProcess, outlast, text};

/// A server that refuses every request with `status` until the test ends. Returns its URL.
fn start_refusing_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut begin = [0; 4096];
            let _ = stream.read(&mut begin);
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn an_unreachable_server_is_reported_at_start_with_next_step() {
    let home = TempDir::new().expect("a folder");
    let config = json!({ "mcpServers": {
        "fine": { "command": example("behind") },
        "down": { "url": "http://127.0.0.1:1/mcp" },
        "leaves": { "command": "sh", "args": ["-c", "echo no key >&2; exit 3"] },
        "missing": { "command": "/no/such/program" },
        "oauth": { "url": start_refusing_server("401 Unauthorized") },
        "old": { "url": start_refusing_server("405 Method Not Allowed") },
        "unknown": { "url": "http://no-such-host.invalid/mcp" },
    } });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    let gateway = GatewayProcess::start(home.path(), "127.0.0.1:0", &["--config", "mcp.json"], 7);
    // No server waits for another.
    let fine = gateway.urls().iter().find(|url| url.ends_with("/fine"));
    let fine = fine.expect("an endpoint");
    assert_eq!(gateway.run_ok(&["call", fine, "echo", "say=hi"]), "hi");
    for (server, next) in [
        ("down cannot be reached", "check its URL"),
        ("unknown cannot be reached", "check the host name"),
        ("leaves cannot be reached", "run its command by hand"),
        (
            "missing cannot be reached",
            "check its URL, or that its command is installed",
        ),
        ("oauth cannot be reached", "set its credentials in a header"),
        (
            "old cannot be reached",
            "if it uses the old HTTP+SSE transport",
        ),
    ] {
        until(server, || {
            let log = gateway.log();
            let output = log
                .split("outlast: ")
                .find(|output| output.starts_with(server));
            let next = format!("\n  next: {next}");
            output.is_some_and(|output| output.contains(&next))
        });
    }
    // Each failure is printed once, without the layers of the HTTP client.
    let log = gateway.log();
    for part in [
        "error sending request",
        "client error",
        "dns error",
        "the server cannot",
    ] {
        assert!(!log.contains(part), "{part}: {log}");
    }
    let down = "outlast: down cannot be reached: http://127.0.0.1:1: Connection refused";
    assert_eq!(log.matches(down).count(), 1, "{log}");
    assert!(!log.contains("cannot connect to the upstream"), "{log}");
    assert!(gateway.log().contains("no key"), "what it said last");
    assert!(!gateway.log().contains("fine cannot"));
    let metrics = gateway.get("/metrics").body;
    for line in [
        "outlast_upstream_failing{server=\"oauth\"} 1",
        "outlast_upstream_failing{server=\"fine\"} 0",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[test]
fn a_url_with_a_port_needs_no_scheme() {
    let home = TempDir::new().expect("a folder");
    let mut demo = outlast(home.path());
    demo.args(["demo", "--store", "memory:", "--http", "127.0.0.1:0"])
        .stderr(Stdio::null());
    let upstream = ServerProcess::start(&mut demo, 1);
    let place = format!("{}/mcp", upstream.authority());
    let config = json!({ "mcpServers": { "demo": { "url": place } } });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    for words in [&["--url", &place][..], &["--config", "mcp.json"]] {
        let gateway = GatewayProcess::start(home.path(), "127.0.0.1:0", words, 1);
        let tools = gateway.run_ok(&["tools", "{}"]);
        assert!(tools.contains("task optional"), "{words:?}: {tools}");
    }
    // A name without a port could be a file or a word.
    let refused = outlast(home.path())
        .args(["serve", "--url", "example.org/mcp"])
        .run();
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(
        why.contains("example.org/mcp is not a URL") && why.contains("http://"),
        "{why}"
    );
}
