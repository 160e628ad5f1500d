//! The example runs, on its standard input and output.

use std::process::Stdio;

use outlast_testkit::example;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn the_example_serves_an_ordinary_rmcp_server_with_tasks() {
    let mut child = Command::new(example("rmcp_server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut write = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = 0;
    let mut call = async |method: &str, params: Value| {
        next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": next, "method": method, "params": params });
        write
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        loop {
            let line = lines.next_line().await.unwrap().expect("an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == next && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    };
    let about = call(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        }),
    )
    .await;
    assert_eq!(about["instructions"], "Renders reports.");
    let tools = call("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| tool["execution"]["taskSupport"] == "optional")
    );
    let created = call(
        "tools/call",
        json!({ "name": "render_report", "arguments": { "title": "Rain", "pages": 2 }, "task": {} }),
    )
    .await;
    let task = &created["task"]["taskId"];
    let result = call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["content"][0]["text"], "Rain: 2 pages");
    // The end of the input ends the server.
    drop(write);
    assert!(child.wait().await.unwrap().success());
}
