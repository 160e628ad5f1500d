//! Input responses that a V1 server at a URL rejects after a restart of the gateway.

use std::sync::Arc;
use std::time::Duration;

use outlast::store::{MemoryStore, Store};
use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind};
use outlast_testkit::mcp::{EventStream, ScriptedHttpServer, ScriptedRequest};
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::caller::connect;
use crate::harness::{gateway_on_store, quick};
use crate::scripted::task;

/// How the server treats the session of the first run of the gateway.
#[derive(Clone, Copy, Debug)]
enum ScriptedSession {
    /// It knows the session, and rejects the response with this status.
    Refuses(u16),
    /// It does not know the session.
    Forgotten,
}

#[tokio::test]
async fn a_refused_answer_after_a_restart_ends_the_task() {
    // V1-INPUT-9.
    for session in [
        ScriptedSession::Refuses(400),
        ScriptedSession::Refuses(404),
        ScriptedSession::Forgotten,
    ] {
        let mut server = ScriptedHttpServer::listen().await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let url = server.url.clone();
        let (engine, mcp_server) = gateway_on_store(&url, quick(), &store).await;
        let connecting =
            tokio::spawn(async move { (connect(ClientKind::V2, &mcp_server).await, mcp_server) });
        let (listening, _) = server.welcome(Some("first")).await;
        let stream = listening.stream().await;
        let (mut caller, mcp_server) = connecting.await.unwrap();
        let begun = asked_input(&mut server, stream, &mut caller).await;
        let task = json!({ "taskId": begun["result"]["taskId"] });
        open_request(&mut caller, &task).await;
        engine.shutdown(Duration::ZERO).await.unwrap();
        drop((caller, mcp_server));

        let serving = tokio::spawn(serve(server, session));
        let (engine, mcp_server) = gateway_on_store(&url, quick(), &store).await;
        let mut caller = connect(ClientKind::V2, &mcp_server).await;
        open_request(&mut caller, &task).await;
        let ended = caller.finish(json!({}), begun);
        let ended = within("the end of the task", ended).await;
        let CallEnd::Error(-32603, why) = ended else {
            panic!("{session:?}: {ended:?}");
        };
        assert!(why.contains("input response"), "{session:?}: {why}");
        assert!(why.contains("call the tool again"), "{session:?}: {why}");
        // BR-ID-1: no error contains a session id.
        for id in ["first", "second"] {
            assert!(!why.contains(id), "{session:?}: {why}");
        }
        engine.shutdown(Duration::ZERO).await.unwrap();
        assert!(
            !serving.is_finished(),
            "the server met something unexpected"
        );
        serving.abort();
    }
}

/// Creates a task for a call and sends an input request for it. Returns the response to the call.
async fn asked_input(
    server: &mut ScriptedHttpServer,
    mut stream: EventStream,
    caller: &mut Caller,
) -> Value {
    let making = async {
        let list = server.next("POST", "tools/list").await;
        let tool = json!({ "name": "slow", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } });
        list.reply(json!({ "tools": [tool] })).await;
        let call = server.next("POST", "tools/call").await;
        call.reply(json!({ "task": task("working", 100) })).await;
        // The state that resumes the task is stored before the first poll.
        let poll = server.next("POST", "tasks/get").await;
        poll.reply(task("working", 60_000)).await;
        let params = json!({
            "message": "Who?", "requestedSchema": { "type": "object" },
            "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t1" } },
        });
        let request = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
        stream.send(&format!("data: {request}\n\n")).await;
    };
    let (begun, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    begun
}

/// Waits until the task shows an input request or has ended.
async fn open_request(caller: &mut Caller, task: &Value) {
    let shown = async {
        loop {
            let got = caller.request("tasks/get", task.clone()).await;
            if got["result"]["status"] != "working" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("an input request", shown).await;
}

/// The server during the second run of the gateway. A response must arrive in the session of the
/// first run.
async fn serve(mut server: ScriptedHttpServer, session: ScriptedSession) {
    let mut open = Vec::new();
    loop {
        let request = server.any().await;
        let method = request.body["method"].as_str().unwrap_or("").to_owned();
        let is_first = request.header("mcp-session-id") == "first";
        match (&*request.method, &*method) {
            _ if is_first && matches!(session, ScriptedSession::Forgotten) => {
                request.plain(404).await;
            }
            ("POST", "initialize") => welcome(request).await,
            ("POST", "tasks/get") => request.reply(task("input_required", 100)).await,
            // It waits for the answer.
            ("POST", "tasks/result") => open.push(request),
            ("POST", "") => refuse(request, session).await,
            ("POST", _) => request.plain(202).await,
            ("GET", _) => open.push(request),
            _ => request.plain(405).await,
        }
    }
}

async fn welcome(request: ScriptedRequest) {
    let body = request.response(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": crate::scripted::capabilities(),
        "serverInfo": { "name": "scripted", "version": "1" },
    }));
    let session = "Mcp-ScriptedSession-Id: second\r\n";
    request.json(200, session, &body).await;
}

async fn refuse(request: ScriptedRequest, session: ScriptedSession) {
    let ScriptedSession::Refuses(status) = session else {
        panic!("an answer in another session: {}", request.body);
    };
    assert_eq!(request.body["id"], "q");
    assert_eq!(request.body["result"]["action"], "accept");
    let error = json!({ "code": -32600, "message": "no request q in session first" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    request.json(status, "", &body.to_string()).await;
}
