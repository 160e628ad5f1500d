//! A token of `outlast token add --operator`: it uses the tasks of other owners in the console, and
//! the audit trail has its name.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use outlast_testkit::{RunCommand, example, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::{GatewayProcess, outlast};

/// A gateway with an audit file for the sample server.
fn start(home: &TempDir) -> GatewayProcess {
    let config = json!({
        "mcpServers": { "behind": { "command": example("behind") } },
        "outlast": { "audit": { "file": "audit.log" } },
    });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    GatewayProcess::start(home.path(), "127.0.0.1:0", &["--config", "mcp.json"], 1)
}

/// Sends a request to the API of the console, and returns the status and the body.
fn send(gateway: &GatewayProcess, token: &str, line: &str, body: &Value) -> (u16, String) {
    let authority = gateway.authority();
    let body = body.to_string();
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(authority).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// The key of the input request of a task.
fn input_key(gateway: &GatewayProcess, token: &str, task: &str) -> Option<String> {
    let (_, body) = send(gateway, token, &format!("GET /tasks/{task}"), &json!({}));
    let task: Value = serde_json::from_str(&body).expect("JSON");
    task["inputRequests"][0]["key"].as_str().map(str::to_owned)
}

#[test]
fn an_operator_token_acts_under_its_own_name() {
    let home = TempDir::new().expect("a folder");
    let gateway = start(&home);
    let operator = gateway.run_ok(&["token", "add", "boss", "--operator"]);
    let other = gateway.run_ok(&["token", "add", "ada"]);
    let listed: Value =
        serde_json::from_str(&gateway.run_ok(&["token", "list", "--json"])).expect("JSON");
    let scopes = |name: &str| {
        let tokens = listed["tokens"].as_array().expect("a list");
        let token = tokens.iter().find(|token| token["name"] == name);
        token.expect("the token")["scopes"].clone()
    };
    assert_eq!(
        scopes("boss"),
        json!(["read", "call", "cancel", "answer", "operate"])
    );
    assert_eq!(scopes("ada"), json!(["read", "call", "cancel", "answer"]));
    // Both tokens are in the same file.
    until("the tokens are admitted", || {
        outlast(home.path())
            .args(["tools", &gateway.urls()[0]])
            .env("OUTLAST_TOKEN", &other)
            .stdin(Stdio::null())
            .run()
            .status
            .success()
    });
    // The local user owns the tasks.
    let begin = |words: &[&str]| {
        let call = ["call", "{}"];
        gateway.run_ok(&[&call, words, &["--task", "--detach", "--as", "v1"]].concat())
    };
    let answered = begin(&["ask"]);
    let cancelled = begin(&["wait", "ms=3600000"]);
    let answer = |token: &str, key: &str| {
        let result = json!({ "action": "accept", "content": { "name": "Ada" } });
        let body = json!({ "taskId": answered, "key": key, "result": result });
        send(&gateway, token, "POST /tasks/answer", &body)
    };
    let key = || input_key(&gateway, &operator, &answered);
    until("it asks", || key().is_some());
    let key = key().expect("it asks");
    assert_eq!(answer(&other, &key).0, 404);
    let (status, why) = answer(&operator, &key);
    assert_eq!(status, 200, "{why}");
    let name = json!({ "server": "", "source": "", "taskId": cancelled });
    assert_eq!(send(&gateway, &other, "POST /tasks/cancel", &name).0, 404);
    let (status, why) = send(&gateway, &operator, "POST /tasks/cancel", &name);
    assert_eq!(status, 200, "{why}");
    let by = |what: &str, task: &str| {
        let text = std::fs::read_to_string(home.path().join("audit.log")).expect("the file");
        let lines = text.lines().map(serde_json::from_str);
        let lines: Vec<Value> = lines.map(|line| line.expect("JSON")).collect();
        let line = lines
            .iter()
            .find(|line| line["message"] == what && line["task"] == task);
        line.map(|line| (line["owner"].clone(), line["by"].clone()))
    };
    let expected = Some((json!("principal:local"), json!("principal:boss")));
    assert_eq!(by("input answered", &answered), expected);
    assert_eq!(by("cancelled", &cancelled), expected);
    // A deletion can be undone for ten seconds.
    let (status, why) = send(&gateway, &operator, "POST /tasks/delete", &name);
    assert_eq!(status, 200, "{why}");
    until("it is deleted", || {
        by("deleted", &cancelled).as_ref() == expected.as_ref()
    });
}
