//! Detection of the era of a server (V2-ERA).

use std::time::Duration;

use outlast::client::{self, Client, ClientOptions, Era, Generation, Target};
use outlast::transport::child::ChildOptions;
use outlast::transport::http_client::HttpClientOptions;
use outlast::transport::link::TransportError;
use outlast_testkit::mcp::ScriptedHttpServer;
use serde_json::json;
use tokio::time::Instant;

use super::{CAPABILITIES, EXTENSION, INFO, VERSION, capabilities, connected, discovered};
use crate::harness::{self, target};

fn auto() -> ClientOptions {
    ClientOptions::default()
}

#[tokio::test(start_paused = true)]
async fn a_server_with_server_discover_is_modern() {
    // V2-ERA-1, V2-ERA-2, V2-META-1, V2-META-2, V2-CAP-2, BD-21.
    let (client, mut server) = connected(auto()).await;
    let request = &server.log()[0].1;
    assert_eq!(request["method"], "server/discover");
    let said = &request["params"]["_meta"];
    assert_eq!(said[VERSION], "2026-07-28");
    assert_eq!(said[CAPABILITIES], json!({}));
    assert_eq!(said[INFO]["name"], "outlast");
    server.silence(Duration::from_secs(60)).await;
    let server_info = client.server().await.unwrap();
    assert_eq!(
        (&*server_info.name, &*server_info.version),
        ("scripted", "2026-07-28")
    );
    assert_eq!(server_info.generation, Generation::V2);
    assert_eq!(server_info.instructions.as_deref(), Some("Be kind."));
    assert!(server_info.is_modern());
}

#[tokio::test(start_paused = true)]
async fn any_other_response_means_a_legacy_server() {
    // V2-ERA-2, V2-ERA-3, A3-3.
    for code in [-32601, -32602, -32600, -32700, -32603, -32000, -1] {
        let (target, mut servers) = target();
        let connecting = tokio::spawn(Client::connect(target, auto()));
        let mut server = servers.next().await;
        let request = server.expect_request("server/discover").await;
        server.refuse(&request, code, "what?").await;
        server.welcome("2025-11-25", harness::capabilities()).await;
        let client = connecting.await.unwrap().unwrap();
        let server_info = client.server().await.unwrap();
        assert!(!server_info.is_modern());
        assert!(
            matches!(server_info.generation, Generation::V1(_)),
            "{code}"
        );
    }
    // A server that returns a result for every request.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let mut server = servers.next().await;
    let request = server.expect_request("server/discover").await;
    server.reply(&request, json!({})).await;
    server.welcome("2025-11-25", json!({})).await;
    connecting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_gets_initialize_after_the_probe_timeout() {
    // V2-ERA-2, A3-1.
    let (target, mut servers) = target();
    let began = Instant::now();
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", harness::capabilities()).await;
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited <= Duration::from_secs(5));
    let client = connecting.await.unwrap().unwrap();
    assert!(!client.server().await.unwrap().is_modern());
    // A late response changes nothing.
    let request = server.expect_request("server/discover").await;
    server.reply(&request, discovered(json!({}))).await;
    use crate::harness::Synchronize;
    client.synchronize(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_does_not_change_the_era() {
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let mut server = servers.next().await;
    let hello = server.expect_request("initialize").await;
    let request = server.expect_request("server/discover").await;
    server.reply(&request, discovered(capabilities())).await;
    server.refuse(&hello, -32601, "no such method").await;
    let client = connecting.await.unwrap().unwrap();
    assert!(client.server().await.unwrap().is_modern());
    assert!(!server.has_received("notifications/initialized"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out() {
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let _server = servers.next().await;
    let failed = connecting.await.unwrap().err();
    assert!(
        matches!(failed, Some(client::Error::TimedOut(_))),
        "{failed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn another_version_is_negotiated_or_reported() {
    // V2-ERA-2, V2-VER-2, A3-2.
    for in_error in [true, false] {
        for (versions, common) in [
            (json!(["2025-06-18", "2024-11-05"]), Some("2025-06-18")),
            (json!(["2099-01-01"]), None),
        ] {
            let (target, mut servers) = target();
            let connecting = tokio::spawn(Client::connect(target, auto()));
            let mut server = servers.next().await;
            let request = server.expect_request("server/discover").await;
            let id = &request["id"];
            let answer = if in_error {
                let data = json!({ "supported": versions, "requested": "2026-07-28" });
                let error = json!({ "code": -32022, "message": "no", "data": data });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            } else {
                let mut result = discovered(json!({}));
                result["supportedVersions"] = versions;
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            };
            server.write(answer).await;
            match common {
                Some(version) => {
                    let hello = server.welcome(version, json!({})).await;
                    assert_eq!(hello["params"]["protocolVersion"], version);
                    connecting.await.unwrap().unwrap();
                }
                None => {
                    let failed = connecting.await.unwrap().err().unwrap();
                    assert!(
                        matches!(failed, client::Error::Unsupported(_)),
                        "{failed:?}"
                    );
                    assert!(failed.to_string().contains("2099-01-01"), "{failed}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_rejected_but_supported_is_tried_again() {
    // V2-VER-2.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let mut server = servers.next().await;
    let data = json!({ "supported": ["2026-07-28"], "requested": "2026-07-28" });
    let error = json!({ "code": -32022, "message": "no", "data": data });
    let refuse = |request: &serde_json::Value| json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
    let request = server.expect_request("server/discover").await;
    server.write(refuse(&request)).await;
    let again = server.expect_request("server/discover").await;
    assert_ne!(again["id"], request["id"]);
    server.reply(&again, discovered(capabilities())).await;
    let client = connecting.await.unwrap().unwrap();
    let asking = tokio::spawn(async move { client.request("prompts/list", None).await });
    let request = server.expect_request("prompts/list").await;
    server.write(refuse(&request)).await;
    let again = server.expect_request("prompts/list").await;
    server.reply(&again, json!({})).await;
    asking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_era_decides_the_generation() {
    // V2-ERA-12, V2-EXT-2, V2-CAP-3.
    let v1 = harness::capabilities();
    let mut both = capabilities();
    both["tasks"] = v1["tasks"].clone();
    for (declared, expected) in [
        (capabilities(), Generation::V2),
        (both.clone(), Generation::V2),
        (
            json!({ "extensions": { EXTENSION: { "unheard": 1 } } }),
            Generation::V2,
        ),
        (v1, Generation::None),
        (
            json!({ "extensions": { EXTENSION: true } }),
            Generation::None,
        ),
        (json!({}), Generation::None),
    ] {
        let (client, _server) = super::connected_with(auto(), declared.clone()).await;
        let server_info = client.server().await.unwrap();
        assert_eq!(server_info.generation, expected, "{declared}");
    }
    // A2-9: the extension has no meaning in the legacy era.
    for (version, tasks) in [("2025-11-25", true), ("2025-06-18", false)] {
        let (target, mut servers) = target();
        let connecting = tokio::spawn(Client::connect(target, harness::options()));
        let mut server = servers.next().await;
        server.welcome(version, both.clone()).await;
        let client = connecting.await.unwrap().unwrap();
        let server_info = client.server().await.unwrap();
        assert_eq!(matches!(server_info.generation, Generation::V1(_)), tasks);
        assert!(tasks || server_info.generation == Generation::None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_era_is_cached_until_it_proves_wrong() {
    // V2-ERA-7.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target.clone(), auto()));
    let mut server = servers.next().await;
    let request = server.expect_request("server/discover").await;
    server.refuse(&request, -32601, "what?").await;
    server.welcome("2025-11-25", json!({})).await;
    connecting.await.unwrap().unwrap();
    let connecting = tokio::spawn(Client::connect(target.clone(), auto()));
    let mut server = servers.next().await;
    let first = server.next_request().await;
    assert_eq!(first["method"], "initialize");
    // The server has been replaced.
    server.refuse(&first, -32601, "what?").await;
    let request = server.expect_request("server/discover").await;
    server.reply(&request, discovered(capabilities())).await;
    let client = connecting.await.unwrap().unwrap();
    assert!(client.server().await.unwrap().is_modern());
    let _connecting = tokio::spawn(Client::connect(target, auto()));
    let first = servers.next().await.next_request().await;
    assert_eq!(first["method"], "server/discover");
}

#[tokio::test(start_paused = true)]
async fn a_client_of_one_era_uses_no_other() {
    // V2-ERA-4, V2-ERA-11.
    for lenient in [true, false] {
        let (target, mut servers) = target();
        let options = auto().with_era(Era::Modern);
        let connecting = tokio::spawn(Client::connect(target, options));
        let mut server = servers.next().await;
        let request = server.next_request().await;
        assert_eq!(request["method"], "server/discover");
        if lenient {
            server.reply(&request, json!({})).await;
        } else {
            server.refuse(&request, -32601, "what?").await;
        }
        let failed = connecting.await.unwrap().err().unwrap();
        assert!(
            matches!(failed, client::Error::Unsupported(_)),
            "{failed:?}"
        );
        assert!(failed.to_string().contains("2026-07-28"), "{failed}");
        server.until_closed().await;
        assert_eq!(server.log().len(), 1);
    }
    let (target, mut servers) = target();
    let _connecting = tokio::spawn(Client::connect(target, harness::options()));
    let first = servers.next().await.next_request().await;
    assert_eq!(first["method"], "initialize");
}

#[tokio::test]
async fn a_process_ending_on_the_probe_restarts_with_initialize() {
    let script = r#"
        read -r line
        case "$line" in *'"initialize"'*) ;; *) exit 1 ;; esac
        echo '{"jsonrpc":"2.0","id":'$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\).*/\1/')',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
        cat > /dev/null
    "#;
    let target = Target::child(ChildOptions::new("sh").args(["-c", script]));
    let connecting = Client::connect(target, auto());
    let client = tokio::time::timeout(Duration::from_secs(30), connecting);
    let client = client.await.unwrap().unwrap();
    assert!(!client.server().await.unwrap().is_modern());
    client.close().await;
}

#[tokio::test]
async fn an_http_error_without_modern_body_means_legacy_server() {
    // V2-ERA-5, V2-ERA-6, A3-4.
    let plain = |status: u16| format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
    let body = |status: u16, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let other = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for answer in [
        plain(400),
        plain(404),
        plain(405),
        plain(406),
        plain(415),
        body(400, other),
        body(400, "{}"),
        body(200, "[]"),
    ] {
        let mut wire = ScriptedHttpServer::listen().await;
        let target = Target::http(HttpClientOptions::new(&wire.url));
        let connecting = tokio::spawn(Client::connect(target, auto()));
        let request = wire.next("POST", "server/discover").await;
        request.raw(&answer).await;
        let (_listening, _) = wire.welcome(None).await;
        let client = connecting.await.unwrap().unwrap();
        assert!(!client.server().await.unwrap().is_modern(), "{answer}");
    }
    for status in [401, 403] {
        let mut wire = ScriptedHttpServer::listen().await;
        let target = Target::http(HttpClientOptions::new(&wire.url));
        let connecting = tokio::spawn(Client::connect(target, auto()));
        let request = wire.next("POST", "server/discover").await;
        request.raw(&plain(status)).await;
        let failed = connecting.await.unwrap().err().unwrap();
        assert!(
            matches!(&failed, client::Error::Transport(TransportError::Refused { status: said, .. }) if *said == status),
            "{failed:?}"
        );
    }
    // The response of an overloaded server does not show its era, whatever the body is.
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let request = wire.next("POST", "server/discover").await;
    let error = json!({ "code": -32000, "message": "overloaded" });
    let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
    request.json(503, "", &body.to_string()).await;
    let failed = connecting.await.unwrap().err().unwrap();
    assert_eq!(failed.code(), Some(-32000), "{failed:?}");
    // After a modern error no other era is tried.
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, auto()));
    let request = wire.next("POST", "server/discover").await;
    let error = json!({ "code": -32020, "message": "header" });
    let error = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
    request.json(400, "", &error.to_string()).await;
    let failed = connecting.await.unwrap().err().unwrap();
    assert_eq!(failed.code(), Some(-32020));
}
