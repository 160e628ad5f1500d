//! Malformed input on stdio.

use serde_json::{Value, json};

use crate::harness::StdioClient;

#[tokio::test(start_paused = true)]
async fn malformed_lines_get_errors_and_nothing_else() {
    let mut client = StdioClient::new().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{{"x":{deep}}}}}"#);
    for (line, code) in [
        ("garbage", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32600,
        ),
        (deep.as_str(), -32600),
    ] {
        client.write_raw(line.as_bytes()).await;
        let response = client.next().await;
        assert_eq!(
            response["error"]["code"],
            code,
            "{}: {response}",
            &line[..line.len().min(60)]
        );
    }
    client.write_raw(b"").await;
    client.write_raw(b"   ").await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_too_long_line_is_rejected_and_skipped() {
    let mut client = StdioClient::new().await;
    let huge = vec![b'x'; 18 << 20];
    client.write_raw(&huge).await;
    let response = client.next().await;
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .contains("bytes"),
        "{response}"
    );
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn invalid_task_params_are_rejected() {
    // A1-11, V1-ERR-1.
    let mut client = StdioClient::new().await;
    for (task, fine) in [
        (json!({}), true),
        (json!({ "ttl": null }), true),
        (json!({ "ttl": 0 }), true),
        (json!({ "ttl": 1500.5 }), true),
        (json!({ "ttl": -1 }), false),
        (json!({ "ttl": "long" }), false),
        (json!("yes"), false),
    ] {
        let response = client
            .call("tools/call", json!({ "name": "slow", "task": task }))
            .await;
        assert_eq!(response.get("result").is_some(), fine, "{task}: {response}");
        if !fine {
            assert_eq!(response["error"]["code"], -32602);
        }
    }
    let plain = client
        .call("tools/call", json!({ "name": "slow", "task": null }))
        .await;
    assert_eq!(plain["result"]["content"][0]["text"], "done");
    for id in [
        json!(""),
        json!(7),
        json!(null),
        json!("nonsense"),
        json!("00000000000000000000000000"),
    ] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let rejected = client.call(method, json!({ "taskId": id })).await;
            assert_eq!(rejected["error"]["code"], -32602, "{method} {id}");
        }
    }
    let unknown = client.call("resources/read", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn null_params_are_no_params() {
    let mut client = StdioClient::new().await;
    for method in ["ping", "tools/list", "tasks/list"] {
        let answer = client.call(method, Value::Null).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    }
    let refused = client.call("tools/call", Value::Null).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // A notification is never answered, and the next request is.
    client
        .notify("notifications/roots/list_changed", Value::Null)
        .await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}
