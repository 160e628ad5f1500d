//! The TasksServer example, run as a process.

use outlast_testkit::ServerProcess;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

#[tokio::test]
async fn the_tasks_server_meets_its_seed() {
    // S3-2 to S3-5, S3-9 to S3-14, S3-23 to S3-26.
    let server = ServerProcess::example("tasks_server", &["--port", "0"]);
    assert!(server.address().ip().is_loopback());
    let mut client = HttpClient::without_session(server.address());
    let met = client.introduce("2025-11-25").await;
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(met["capabilities"]["tasks"], tasks);
    assert_eq!(met["capabilities"].get("experimental"), None);

    let list = client.call("tools/list", json!({})).await;
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["name"], "LongRunningAnalysis");
    assert_eq!(tool["execution"]["taskSupport"], "optional");
    assert_eq!(tool.get("_meta"), None);
    let input = &tool["inputSchema"];
    assert_eq!(input["required"], json!(["data"]));
    assert_eq!(input["properties"]["data"]["type"], "string");
    let duration = &input["properties"]["durationSeconds"];
    assert_eq!(
        (&duration["type"], &duration["default"]),
        (&json!("integer"), &json!(5))
    );
    // `task` is not an argument.
    assert_eq!(input["properties"].get("task"), None);

    let arguments = json!({ "data": "tides", "durationSeconds": 0 });
    let response = client.tool("LongRunningAnalysis", arguments.clone()).await;
    let plain = response.json().await["result"].clone();
    assert_eq!(plain["content"][0]["text"], "Analysis complete for: tides");

    let arguments = json!({ "data": "tides", "durationSeconds": 1 });
    let params = json!({
        "name": "LongRunningAnalysis", "arguments": arguments, "task": { "ttl": 60_000 },
    });
    let created = client.call("tools/call", params).await["result"].clone();
    assert_eq!(created["task"]["status"], "working");
    assert_eq!(created.get("content"), None);
    let task = created["task"]["taskId"].as_str().unwrap();
    assert_eq!(client.status(task).await["result"]["status"], "working");
    client.until(task, "completed").await;
    let result = client.result(task).await.json().await["result"].clone();
    assert_eq!(result["content"], plain["content"]);
}

#[tokio::test]
async fn errors_of_the_samples_name_the_argument() {
    // V1-TLS-2, V1-TLS-5, A1-30.
    let server = ServerProcess::example("tasks_server", &["--port", "0"]);
    let client = HttpClient::connect(server.address()).await;
    for (arguments, named) in [
        (json!({}), "data"),
        (json!({ "data": 7 }), "data"),
        (
            json!({ "data": "x", "durationSeconds": 0.5 }),
            "durationSeconds",
        ),
        (
            json!({ "data": "x", "durationSeconds": -1 }),
            "durationSeconds",
        ),
    ] {
        let response = client.tool("LongRunningAnalysis", arguments).await;
        let result = response.json().await["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
        let received = result["content"][0]["text"].as_str().unwrap();
        assert!(received.contains(named), "{received}");
    }
}
