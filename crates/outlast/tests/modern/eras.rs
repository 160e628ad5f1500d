//! Both eras on one pipe, and what a request says of itself.

use serde_json::json;

use crate::harness::Stage;
use crate::stdio_client::{Pipe, everything, said};

#[tokio::test(start_paused = true)]
async fn a_server_is_discovered_without_a_handshake() {
    // V2-DISC-1, V2-CAP-2, V2-CAP-15, V2-META-6, V2-CACHE-1.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front);
    let found = pipe.call("server/discover", json!({})).await["result"].clone();
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
async fn both_eras_live_on_one_pipe() {
    // V2-ERA-8, V2-STATE-1, V2-CAP-16: and the tasks of the owner are reachable from either.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let listed = pipe.call("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 5);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": everything(),
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let met = pipe.legacy("initialize", params).await;
    assert!(met["result"]["capabilities"]["tasks"].is_object());
    assert_eq!(met["result"]["capabilities"].get("extensions"), None);
    pipe.notify("notifications/initialized", json!({})).await;
    // The extension in a legacy handshake means nothing: the call waits for its end.
    let modern = pipe.task("gated").await;
    let asked = json!({ "name": "gated", "arguments": {}, "task": {} });
    let created = pipe.legacy("tools/call", asked).await;
    let legacy = created["result"]["task"]["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(pipe.status(&legacy).await["status"], "working");
    let seen = pipe.legacy("tasks/get", json!({ "taskId": modern })).await;
    assert_eq!(seen["result"]["status"], "working");
    let pinged = pipe.legacy("ping", json!({})).await;
    assert_eq!(pinged["result"], json!({}));
    stage.open_gate();
    stage.open_gate();
    let done = pipe.until(&modern, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
    let done = pipe.until(&legacy, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_served_is_refused_with_those_that_are() {
    // V2-VER-1.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let mut params = said(json!({}), json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    pipe.write(json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": params }))
        .await;
    let refused = pipe.answer_to(json!("x")).await;
    assert_eq!(refused["error"]["code"], -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "v999" });
    assert_eq!(refused["error"]["data"], data);
}

#[tokio::test(start_paused = true)]
async fn half_of_the_metadata_is_not_enough() {
    // V2-META-3, V2-META-8.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let ask = |id: &str, method: &str, params: serde_json::Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut params = said(json!({}), json!({}));
        let key = format!("io.modelcontextprotocol/{missing}");
        params["_meta"].as_object_mut().unwrap().remove(&key);
        pipe.write(ask(missing, "tools/list", params)).await;
        let refused = pipe.answer_to(json!(missing)).await;
        assert_eq!(refused["error"]["code"], -32602, "{missing}");
    }
    for method in ["server/discover", "subscriptions/listen", "tasks/update"] {
        pipe.write(ask(method, method, json!({}))).await;
        let refused = pipe.answer_to(json!(method)).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
    let mut params = said(json!({}), json!({}));
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    pipe.write(ask("level", "tools/list", params)).await;
    assert_eq!(
        pipe.answer_to(json!("level")).await["error"]["code"],
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_new_version_dropped_is_not_there() {
    // V2-ERA-9, V2-ERR-6, V2-ERR-7, A2-34.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/result",
        "tasks/list",
        "no/such/method",
    ] {
        let refused = pipe.call(method, json!({ "taskId": "x" })).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_without_a_word_about_tasks() {
    // V2-TLS-2, V2-CACHE-1, V2-CACHE-5, V2-PAGE-1.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let listed = pipe.call("tools/list", json!({})).await["result"].clone();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("execution").is_none()));
    assert!(listed["ttlMs"].is_u64());
    assert_eq!(listed["cacheScope"], "private");
    let again = pipe.call_with("tools/list", json!({}), json!({})).await;
    assert_eq!(again["result"]["tools"], listed["tools"]);
    let odd = pipe.call("tools/list", json!({ "cursor": "odd" })).await;
    assert_eq!(odd["error"]["code"], -32602);
}
