//! A server over Streamable HTTP.

use std::time::Duration;

use outlast::client::{self, Client, OutcomeError, ReceiverOptions, Target};
use outlast::transport::http::{BearerTokens, HttpOptions, Token, serve};
use outlast::transport::http_client::HttpClientOptions;
use outlast::transport::link::TransportError;
use outlast_testkit::mcp::{EventStream, ScriptedHttpServer, ScriptedRequest};
use serde_json::json;

use crate::harness::{result_text, task, text, with_inbox};
use crate::own_server::{every_outcome, server};

async fn connected(wire: &mut ScriptedHttpServer) -> (Client, EventStream) {
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let (listening, _) = wire.welcome(Some("s1")).await;
    (connecting.await.unwrap().unwrap(), listening.stream().await)
}

#[tokio::test]
async fn every_outcome_of_our_server_over_http() {
    let server = serve(server().await, HttpOptions::default()).await.unwrap();
    let url = server.url();
    every_outcome(Target::http(HttpClientOptions::new(url))).await;
}

#[tokio::test]
async fn only_the_right_token_is_accepted() {
    let options = HttpOptions::default()
        .with_authenticate(BearerTokens::shared(vec![Token::new("ann", "secret")]));
    let server = serve(server().await, options).await.unwrap();
    let target = HttpClientOptions::new(server.url());
    for (target, right) in [
        (target.clone().bearer("secret"), true),
        (target.clone().bearer("guess"), false),
        (target.clone(), false),
    ] {
        let shown = format!("{target:?}");
        assert!(!shown.contains("secret"), "{shown}");
        let connected = Client::connect(Target::http(target), crate::harness::options()).await;
        match (connected, right) {
            (Ok(client), true) => client.ping().await.unwrap(),
            (Err(client::Error::Transport(TransportError::Refused { status: 401, .. })), false) => {
            }
            (other, _) => panic!("{:?}", other.err()),
        }
    }
}

#[tokio::test]
async fn every_request_has_the_required_headers() {
    // V1-HTTP-4, V1-HTTP-5, V1-HTTP-10, V1-SESS-2, V1-SESS-6, V1-INPUT-5.
    let mut wire = ScriptedHttpServer::listen().await;
    let mut options = HttpClientOptions::new(&wire.url).bearer("secret");
    options.headers = vec![("X-Mine".into(), "yes".into())];
    let (inbox, client_options) = with_inbox();
    let connecting = tokio::spawn(Client::connect(Target::http(options), client_options));
    let (listening, sessions) = wire.welcome(Some("s1")).await;
    assert_eq!(sessions, ["", "s1"]);
    assert_eq!(listening.header("accept"), "text/event-stream");
    assert_eq!(listening.header("mcp-session-id"), "s1");
    assert_eq!(listening.header("mcp-protocol-version"), "2025-11-25");
    let mut listening = listening.stream().await;
    let client = connecting.await.unwrap().unwrap();
    let pinging = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    let ping = wire.next("POST", "ping").await;
    assert_eq!(ping.path, "/mcp");
    assert_eq!(ping.header("accept"), "application/json, text/event-stream");
    assert_eq!(ping.header("content-type"), "application/json");
    assert_eq!(ping.header("mcp-session-id"), "s1");
    assert_eq!(ping.header("mcp-protocol-version"), "2025-11-25");
    assert_eq!(ping.header("authorization"), "Bearer secret");
    assert_eq!(ping.header("x-mine"), "yes");
    ping.reply(json!({})).await;
    pinging.await.unwrap().unwrap();
    // A request on the general stream is answered by a separate POST.
    let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "?", "requestedSchema": {} } });
    listening.send(&format!("data: {ask}\n\n")).await;
    inbox.decline(inbox.first().await.id).unwrap();
    let answered = wire.next("POST", "").await;
    assert_eq!(answered.body["result"]["action"], "decline");
    answered.plain(202).await;
    let closing = tokio::spawn(async move { client.close().await });
    let goodbye = wire.next("DELETE", "").await;
    assert_eq!(goodbye.header("mcp-session-id"), "s1");
    assert_eq!(goodbye.header("mcp-protocol-version"), "2025-11-25");
    goodbye.plain(405).await;
    closing.await.unwrap();
}

#[tokio::test]
async fn a_lost_session_is_reopened_and_the_call_repeated() {
    // V1-SESS-5.
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("x", ()).await.unwrap().outcome().await }
    });
    let list = wire.next("POST", "tools/list").await;
    list.reply(json!({ "tools": [] })).await;
    wire.next("POST", "tools/call").await.plain(404).await;
    let (listening, sessions) = wire.welcome(Some("s2")).await;
    assert_eq!(sessions, ["", "s2"]);
    let _listening = listening.stream().await;
    let call = wire.next("POST", "tools/call").await;
    assert_eq!(call.header("mcp-session-id"), "s2");
    call.reply(text("done")).await;
    assert_eq!(result_text(&calling.await.unwrap().unwrap()), "done");
}

#[tokio::test]
async fn a_running_call_is_not_repeated_after_session_loss() {
    // BR-GEN-7: only a call whose own request got 404 is repeated.
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let call = |tool: &'static str| {
        let client = client.clone();
        tokio::spawn(async move { client.call_tool(tool, ()).await.unwrap().outcome().await })
    };
    let runs = call("runs");
    let list = wire.next("POST", "tools/list").await;
    list.reply(json!({ "tools": [] })).await;
    let taken = wire.next("POST", "tools/call").await;
    assert_eq!(taken.body["params"]["name"], "runs");
    let mut stream = taken.stream().await;
    stream.send("id: e1\ndata:\n\n").await;
    let refused = call("refused");
    wire.next("POST", "tools/call").await.plain(404).await;
    let (listening, _) = wire.welcome(Some("s2")).await;
    let _listening = listening.stream().await;
    let again = wire.next("POST", "tools/call").await;
    assert_eq!(again.body["params"]["name"], "refused");
    again.reply(text("done")).await;
    assert_eq!(result_text(&refused.await.unwrap().unwrap()), "done");
    let lost = runs.await.unwrap();
    assert!(
        matches!(
            lost,
            Err(OutcomeError::Request(client::Error::Transport(
                TransportError::Broken(_)
            )))
        ),
        "{lost:?}"
    );
}

#[tokio::test]
async fn a_failed_resumption_does_not_repeat_the_call() {
    // BR-GEN-7.
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("x", ()).await.unwrap().outcome().await }
    });
    let list = wire.next("POST", "tools/list").await;
    list.reply(json!({ "tools": [] })).await;
    let mut stream = wire.next("POST", "tools/call").await.stream().await;
    stream.send("id: e1\nretry: 5\ndata:\n\n").await;
    drop(stream);
    wire.next("GET", "").await.plain(404).await;
    let lost = calling.await.unwrap();
    assert!(
        matches!(
            lost,
            Err(OutcomeError::Request(client::Error::Transport(
                TransportError::Broken(_)
            )))
        ),
        "{lost:?}"
    );
}

#[tokio::test]
async fn a_stream_that_breaks_is_resumed_where_it_broke() {
    // V1-SSE-2, V1-SSE-3, V1-RESUME-4.
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, listening) = connected(&mut wire).await;
    let pinging = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    let ping = wire.next("POST", "ping").await;
    let answer = ping.response(json!({}));
    let mut stream = ping.stream().await;
    stream.send("id: e1\nretry: 5\ndata:\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\nid: e3\ndata: {\"cut").await;
    drop(stream);
    let again = wire.next("GET", "").await;
    assert_eq!(again.header("last-event-id"), "e2");
    again.plain(503).await;
    let again = wire.next("GET", "").await;
    assert_eq!(again.header("last-event-id"), "e2");
    let mut stream = again.stream().await;
    stream.send(&format!("id: e4\ndata: {answer}\n\n")).await;
    pinging.await.unwrap().unwrap();
    // The general stream is resumed, too.
    let mut listening = listening;
    listening.send("id: g7\nretry: 5\ndata:\n\n").await;
    drop(listening);
    let again = wire.next("GET", "").await;
    assert_eq!(again.header("last-event-id"), "g7");
}

#[tokio::test]
async fn a_stream_without_a_response_fails_the_request() {
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let pinging = tokio::spawn(async move { client.ping().await });
    let ping = wire.next("POST", "ping").await;
    drop(ping.stream().await);
    let failed = pinging.await.unwrap();
    assert!(
        matches!(
            failed,
            Err(client::Error::Transport(TransportError::Broken(_)))
        ),
        "{failed:?}"
    );
}

#[tokio::test]
async fn redirects_are_followed_only_within_the_origin() {
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url).bearer("secret"));
    let connecting = tokio::spawn(Client::connect(target.clone(), crate::harness::options()));
    let hello = wire.next("POST", "initialize").await;
    hello
        .raw("HTTP/1.1 307 X\r\nLocation: /other?x=1\r\nContent-Length: 0\r\n\r\n")
        .await;
    let hello = wire.next("POST", "initialize").await;
    assert_eq!(hello.path, "/other?x=1");
    assert_eq!(hello.header("authorization"), "Bearer secret");
    hello
        .raw("HTTP/1.1 308 X\r\nLocation: http://127.0.0.2:9/mcp\r\nContent-Length: 0\r\n\r\n")
        .await;
    let failed = connecting.await.unwrap().err().unwrap();
    assert_eq!(
        failed,
        client::Error::Transport(TransportError::Redirected("http://127.0.0.2:9/mcp".into()))
    );
    // A redirect that changes the method is not followed.
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let hello = wire.next("POST", "initialize").await;
    hello
        .raw("HTTP/1.1 302 X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
        .await;
    let failed = connecting.await.unwrap().err().unwrap();
    assert!(
        matches!(
            failed,
            client::Error::Transport(TransportError::Redirected(_))
        ),
        "{failed}"
    );
}

#[tokio::test]
async fn a_json_rpc_error_counts_whatever_the_status() {
    // A2-30.
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let looking = tokio::spawn({
        let client = client.clone();
        async move { client.get_task("t1").await }
    });
    let look = wire.next("POST", "tasks/get").await;
    let body = json!({ "jsonrpc": "2.0", "id": look.body["id"], "error": { "code": -32602, "message": "no" } });
    look.json(400, "", &body.to_string()).await;
    assert_eq!(looking.await.unwrap().unwrap_err().code(), Some(-32602));
    let looking = tokio::spawn(async move { client.get_task("t1").await });
    let look = wire.next("POST", "tasks/get").await;
    look.json(400, "", r#"{"error":"nonsense"}"#).await;
    let failed = looking.await.unwrap();
    assert!(
        matches!(&failed, Err(client::Error::Transport(TransportError::Refused { status: 400, detail, .. })) if detail.contains("nonsense")),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_server_without_a_general_stream_is_polled() {
    // V1-HTTP-8, V1-NOTIF-2, S4-92.
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let (listening, _) = wire.welcome(None).await;
    listening.plain(405).await;
    let client = connecting.await.unwrap().unwrap();
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("slow", ()).await.unwrap().outcome().await }
    });
    let list = wire.next("POST", "tools/list").await;
    let tool =
        json!({ "name": "slow", "inputSchema": {}, "execution": { "taskSupport": "optional" } });
    list.reply(json!({ "tools": [tool] })).await;
    let call = wire.next("POST", "tools/call").await;
    assert_eq!(call.header("mcp-session-id"), "");
    call.reply(json!({ "task": task("working", 100) })).await;
    let look = wire.next("POST", "tasks/get").await;
    look.reply(task("completed", 100)).await;
    let fetch = wire.next("POST", "tasks/result").await;
    let answer = fetch.response(text("done"));
    let mut stream = fetch.stream().await;
    stream
        .send(&format!("event: message\ndata: {answer}\n\n"))
        .await;
    assert_eq!(result_text(&calling.await.unwrap().unwrap()), "done");
    // Without a session there is no DELETE.
    client.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    for url in [
        "http://127.0.0.1:9/mcp",
        "ftp://127.0.0.1/mcp",
        "nonsense",
        "https://127.0.0.1:9/mcp",
    ] {
        let target = Target::http(HttpClientOptions::new(url));
        let failed = Client::connect(target, crate::harness::options())
            .await
            .err()
            .unwrap();
        assert!(
            matches!(
                &failed,
                client::Error::Transport(TransportError::Unreachable(_))
            ),
            "{failed}"
        );
        assert!(failed.server_has_not_acted());
    }
}

#[tokio::test]
async fn no_request_is_sent_before_the_general_stream() {
    // V1-INPUT-5: some servers lose an input request that is sent while no stream is open.
    let mut wire = ScriptedHttpServer::listen().await;
    let options = HttpClientOptions::new(&wire.url).with_listen_timeout(Duration::from_secs(60));
    let connecting = Client::connect(Target::http(options), crate::harness::options());
    let connecting = tokio::spawn(connecting);
    let (listening, _) = wire.welcome(Some("s1")).await;
    let client = connecting.await.unwrap().unwrap();
    let pinging = tokio::spawn(async move { client.ping().await });
    let early = tokio::time::timeout(Duration::from_millis(50), wire.next("POST", "ping"));
    assert!(early.await.is_err());
    let _stream = listening.stream().await;
    let ping = wire.next("POST", "ping").await;
    ping.reply(json!({})).await;
    pinging.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_unsendable_status_does_not_affect_the_task() {
    // S0-69, S1-34.
    let mut wire = ScriptedHttpServer::listen().await;
    let (inbox, options) = with_inbox();
    let options = options.with_receiver_tasks(ReceiverOptions::default());
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, options));
    let (listening, _) = wire.welcome(Some("s1")).await;
    let mut stream = listening.stream().await;
    let _client = connecting.await.unwrap().unwrap();
    let ask = json!({ "message": "?", "requestedSchema": {}, "task": {} });
    let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ask });
    stream.send(&format!("data: {ask}\n\n")).await;
    let made = wire.next("POST", "").await;
    let task = made.body["result"]["task"]["taskId"].clone();
    made.plain(202).await;
    let notification = wire.next("POST", "notifications/tasks/status").await;
    notification.plain(500).await;
    inbox.decline(inbox.first().await.id).unwrap();
    let notification = wire.next("POST", "notifications/tasks/status").await;
    notification.plain(500).await;
    let fetch = json!({ "jsonrpc": "2.0", "id": "r", "method": "tasks/result", "params": { "taskId": task } });
    stream.send(&format!("data: {fetch}\n\n")).await;
    let answer = wire.next("POST", "").await;
    assert_eq!(answer.body["result"]["action"], "decline");
    answer.plain(202).await;
}

#[tokio::test]
async fn an_overloaded_server_loses_no_task_and_sets_the_pace() {
    // A2-29, A2-30: `Retry-After` counts, even if the body is a JSON-RPC error.
    let refuse = async |request: ScriptedRequest, status, headers: &str| {
        let error = json!({ "code": -32000, "message": "overloaded" });
        let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
        request.json(status, headers, &body.to_string()).await;
    };
    let mut wire = ScriptedHttpServer::listen().await;
    let (client, _listening) = connected(&mut wire).await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    let list = wire.next("POST", "tools/list").await;
    let tool =
        json!({ "name": "slow", "inputSchema": {}, "execution": { "taskSupport": "required" } });
    list.reply(json!({ "tools": [tool] })).await;
    // The call is sent again, because the server has not acted on it.
    let refused = wire.next("POST", "tools/call").await;
    let sent = std::time::Instant::now();
    refuse(refused, 429, "Retry-After: 1\r\n").await;
    let accepted = wire.next("POST", "tools/call").await;
    assert!(sent.elapsed() >= Duration::from_secs(1));
    accepted
        .reply(json!({ "task": task("working", 100) }))
        .await;
    let call = call.await.unwrap();
    for status in [429, 503, 429, 503] {
        let look = wire.next("POST", "tasks/get").await;
        refuse(look, status, "").await;
    }
    let look = wire.next("POST", "tasks/get").await;
    let sent = std::time::Instant::now();
    refuse(look, 503, "Retry-After: 2\r\n").await;
    let look = wire.next("POST", "tasks/get").await;
    assert!(sent.elapsed() >= Duration::from_secs(2));
    look.reply(task("completed", 100)).await;
    // A rejection of `tasks/result` is not the outcome of the task.
    let fetch = wire.next("POST", "tasks/result").await;
    refuse(fetch, 503, "Retry-After: 1\r\n").await;
    let look = wire.next("POST", "tasks/get").await;
    look.reply(task("completed", 100)).await;
    let fetch = wire.next("POST", "tasks/result").await;
    fetch.reply(text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test]
async fn an_event_that_does_not_end_fails_its_request() {
    let mut wire = ScriptedHttpServer::listen().await;
    let mut options = HttpClientOptions::new(&wire.url);
    options.max_message_bytes = 10_000;
    let target = Target::http(options);
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let (listening, _) = wire.welcome(Some("s1")).await;
    let client = connecting.await.unwrap().unwrap();
    let _listening = listening.stream().await;
    let pinging = tokio::spawn(async move { client.ping().await });
    let mut stream = wire.next("POST", "ping").await.stream().await;
    stream.send("data: ").await;
    // The stream stays open, and the line does not end.
    for _ in 0..100 {
        if !stream.try_send(&"x".repeat(10_000)).await {
            break;
        }
    }
    let failed = tokio::time::timeout(Duration::from_secs(60), pinging).await;
    let failed = failed.unwrap().unwrap();
    assert!(
        matches!(
            &failed,
            Err(client::Error::Transport(TransportError::TooLarge {
                is_whole: false,
                limit: 10_000,
                ..
            }))
        ),
        "{failed:?}"
    );
}

#[tokio::test]
async fn no_error_shows_the_session_id() {
    // The id of a session gives access.
    const SESSION: &str = "9d1c6f0a-secret";
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let (listening, _) = wire.welcome(Some(SESSION)).await;
    let _listening = listening.stream().await;
    let client = connecting.await.unwrap().unwrap();
    for (status, code) in [
        (200, Some(-32000)),
        (400, Some(-32000)),
        (503, Some(-32000)),
        (500, None),
    ] {
        let looking = tokio::spawn({
            let client = client.clone();
            async move { client.get_task("t1").await }
        });
        let look = wire.next("POST", "tasks/get").await;
        let said = format!("session {SESSION} has no such task");
        let error = json!({ "code": -32000, "message": said, "data": { "session": SESSION } });
        let body = match code {
            Some(_) => json!({ "jsonrpc": "2.0", "id": look.body["id"], "error": error }),
            None => json!(said),
        };
        look.json(status, "", &body.to_string()).await;
        let failed = looking.await.unwrap().unwrap_err();
        let shown = format!("{failed} {failed:?}");
        assert!(!shown.contains(SESSION), "{status}: {shown}");
        assert!(shown.contains("has no such task"), "{status}: {shown}");
        assert_eq!(failed.code(), code, "{status}");
    }
}
