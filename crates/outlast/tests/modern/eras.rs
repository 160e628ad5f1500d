//! Both eras on one stdio connection, and the metadata of a request.

use outlast_testkit::mcp::with_modern_meta;
use serde_json::json;

use crate::harness::Harness;
use crate::stdio_client::{StdioClient, everything};

#[tokio::test(start_paused = true)]
async fn a_server_is_discovered_without_a_handshake() {
    // V2-DISC-1, V2-CAP-2, V2-CAP-15, V2-META-6, V2-CACHE-1.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server);
    let found = client.call("server/discover", json!({})).await["result"].clone();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    let extensions = &found["capabilities"]["extensions"];
    assert_eq!(extensions["io.modelcontextprotocol/tasks"], json!({}));
    assert_eq!(found["capabilities"].get("tasks"), None);
    assert!(found["capabilities"]["tools"].is_object());
    assert_eq!(found["instructions"], "Be kind.");
    let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(*info, json!({ "name": "test", "version": "1" }));
    assert!(found["ttlMs"].is_u64() && found["cacheScope"].is_string());
}

#[tokio::test(start_paused = true)]
async fn both_eras_share_one_connection() {
    // V2-ERA-8, V2-STATE-1, V2-CAP-16: the tasks of the owner are accessible in either era.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let listed = client.call("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 5);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": everything(),
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let met = client.legacy("initialize", params).await;
    assert!(met["result"]["capabilities"]["tasks"].is_object());
    assert_eq!(met["result"]["capabilities"].get("extensions"), None);
    client.notify("notifications/initialized", json!({})).await;
    // The extension in a legacy handshake has no effect: the call waits for its end.
    let modern = client.task("gated").await;
    let input_required = json!({ "name": "gated", "arguments": {}, "task": {} });
    let created = client.legacy("tools/call", input_required).await;
    let legacy = created["result"]["task"]["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(client.status(&legacy).await["status"], "working");
    let seen = client
        .legacy("tasks/get", json!({ "taskId": modern }))
        .await;
    assert_eq!(seen["result"]["status"], "working");
    let pinged = client.legacy("ping", json!({})).await;
    assert_eq!(pinged["result"], json!({}));
    harness.open_gate();
    harness.open_gate();
    let done = client.until(&modern, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
    let done = client.until(&legacy, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
}

#[tokio::test(start_paused = true)]
async fn the_error_for_a_version_names_the_supported_ones() {
    // V2-VER-1.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let mut params = with_modern_meta(json!({}), json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    client
        .write(json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": params }))
        .await;
    let rejected = client.response_to(json!("x")).await;
    assert_eq!(rejected["error"]["code"], -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "v999" });
    assert_eq!(rejected["error"]["data"], data);
}

#[tokio::test(start_paused = true)]
async fn incomplete_metadata_is_rejected() {
    // V2-META-3, V2-META-8.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let ask = |id: &str, method: &str, params: serde_json::Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut params = with_modern_meta(json!({}), json!({}));
        let key = format!("io.modelcontextprotocol/{missing}");
        params["_meta"].as_object_mut().unwrap().remove(&key);
        client.write(ask(missing, "tools/list", params)).await;
        let rejected = client.response_to(json!(missing)).await;
        assert_eq!(rejected["error"]["code"], -32602, "{missing}");
    }
    for method in ["server/discover", "subscriptions/listen", "tasks/update"] {
        client.write(ask(method, method, json!({}))).await;
        let rejected = client.response_to(json!(method)).await;
        assert_eq!(rejected["error"]["code"], -32602, "{method}");
    }
    let mut params = with_modern_meta(json!({}), json!({}));
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    client.write(ask("level", "tools/list", params)).await;
    assert_eq!(
        client.response_to(json!("level")).await["error"]["code"],
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn methods_of_the_legacy_era_do_not_exist() {
    // V2-ERA-9, V2-ERR-6, V2-ERR-7, A2-34.
    let mut client = StdioClient::connect(Harness::new().await.server);
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/result",
        "tasks/list",
        "no/such/method",
    ] {
        let rejected = client.call(method, json!({ "taskId": "x" })).await;
        assert_eq!(rejected["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_without_execution() {
    // V2-TLS-2, V2-CACHE-1, V2-CACHE-5, V2-PAGE-1.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let listed = client.call("tools/list", json!({})).await["result"].clone();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("execution").is_none()));
    assert!(listed["ttlMs"].is_u64());
    assert_eq!(listed["cacheScope"], "private");
    let again = client.call_with("tools/list", json!({}), json!({})).await;
    assert_eq!(again["result"]["tools"], listed["tools"]);
    let odd = client.call("tools/list", json!({ "cursor": "odd" })).await;
    assert_eq!(odd["error"]["code"], -32602);
}
