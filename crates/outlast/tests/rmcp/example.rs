//! Runs the example on standard input and output.

use std::process::Command;

use outlast_testkit::example;
use outlast_testkit::mcp::ProcessClient;
use serde_json::json;

#[test]
fn the_example_serves_an_ordinary_rmcp_server_with_tasks() {
    let mut client = ProcessClient::start(&mut Command::new(example("rmcp_server")));
    let about = client.initialize(json!({}));
    assert_eq!(about["instructions"], "Renders reports.");
    let tools = client.call("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| tool["execution"]["taskSupport"] == "optional")
    );
    let task = client.task("render_report", json!({ "title": "Rain", "pages": 2 }));
    let result = client.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "Rain: 2 pages");
    // The end of the input ends the server.
    assert!(client.close().success());
}
