//! Our own server in the modern era: in this process, over HTTP, and as a process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Client, ClientOptions, Era, Target, TaskPreference};
use outlast::server::TaskPolicy;
use outlast::store::open_store;
use outlast::task::Outcome;
use outlast::tools::Hints;
use outlast::transport::child::ChildOptions;
use outlast::transport::http::{HttpOptions, serve};
use outlast::transport::http_client::HttpClientOptions;
use outlast::{Server, ServerHandle, TaskSupport, Tool, text};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::{raw, result_text, with_inbox};
use crate::own_server::server;

/// Every outcome, over the connection of `target`.
async fn every_outcome(target: Target) {
    let (inbox, options) = with_inbox();
    let options = options.with_era(Era::Auto);
    let client = Client::connect(target, options).await.unwrap();
    // BD-21: the server supports both eras.
    assert!(client.server().await.unwrap().is_modern());
    for preference in [TaskPreference::Require, TaskPreference::Forbid] {
        let begin = |tool: &str| client.call_tool(tool, ()).task(preference);
        let call = begin("slow").await.unwrap();
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
        assert_eq!(call.status().progress.unwrap().total, Some(3.0));
        let call = begin("fail").await.unwrap();
        assert!(
            matches!(call.outcome().await, Ok(Outcome::ToolError(_, Some(why))) if why.contains("it broke"))
        );
        // The input request is the same in a task and in a retry.
        let call = begin("ask").await.unwrap();
        let item = inbox.first().await;
        assert_eq!(
            item.request.task.is_some(),
            preference == TaskPreference::Require
        );
        let name = json!({ "action": "accept", "content": { "name": "Ann" } });
        inbox.respond(item.id, raw(name)).unwrap();
        assert_eq!(
            result_text(&call.outcome().await.unwrap()),
            r#""accept" "Ann""#
        );
        let call = begin("endless").await.unwrap();
        if preference == TaskPreference::Require {
            call.task().await.unwrap();
        }
        assert_eq!(call.cancel().await, Ok(()));
        assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    }
    let call = client.call_tool("nonsense", ()).await.unwrap();
    assert!(matches!(call.outcome().await, Ok(Outcome::Error(_, code, _)) if code.0 == -32602));
    client.close().await;
}

async fn within_time_limit(work: impl Future<Output = ()>) {
    let done = tokio::time::timeout(Duration::from_secs(60), work).await;
    done.expect("it ends in time");
}

#[tokio::test]
async fn every_outcome_of_our_server_in_this_process() {
    within_time_limit(Box::pin(async {
        every_outcome(Target::in_process(server().await)).await;
    }))
    .await;
}

#[tokio::test]
async fn every_outcome_of_our_server_over_http() {
    within_time_limit(Box::pin(async {
        let server = serve(server().await, HttpOptions::default()).await.unwrap();
        every_outcome(Target::http(HttpClientOptions::new(server.url()))).await;
    }))
    .await;
}

#[tokio::test]
async fn every_outcome_of_our_server_as_a_process() {
    within_time_limit(Box::pin(async {
        let program = outlast_testkit::example("test_tasks");
        let target = Target::child(ChildOptions::new(program));
        let client = Client::connect(target, ClientOptions::default());
        let client = client.await.unwrap();
        assert!(client.server().await.unwrap().is_modern());
        let arguments = Some(raw(json!({ "duration": 0.2 })));
        let call = client.call_tool("long_running_task", arguments).await;
        let call = call.unwrap();
        assert!(call.task().await.is_some());
        let outcome = call.outcome().await.unwrap();
        assert_eq!(result_text(&outcome), "Completed after 0.2s");
        // V2-CAP-9: it runs only as a task.
        let arguments = Some(raw(json!({ "duration": 0.2 })));
        let call = client.call_tool("long_running_task", arguments);
        let call = call.task(TaskPreference::Forbid).await.unwrap();
        assert!(matches!(call.outcome().await, Ok(Outcome::Error(_, code, _)) if code.0 == -32021));
        client.close().await;
    }))
    .await;
}

#[tokio::test]
async fn a_task_is_resumed_by_another_client() {
    // V2-STATE-2, V2-GET-11.
    within_time_limit(Box::pin(async {
        let server = serve(server().await, HttpOptions::default()).await.unwrap();
        let target = || Target::http(HttpClientOptions::new(server.url()));
        let (inbox, options) = with_inbox();
        let options = options.with_era(Era::Auto);
        let one = Client::connect(target(), options.clone()).await.unwrap();
        let call = one.call_tool("ask", ()).await.unwrap();
        call.task().await.unwrap();
        let reference = call.status().reference.unwrap();
        call.detach().await;
        one.close().await;
        let kept = serde_json::to_string(&*reference).unwrap();
        let other = Client::connect(target(), options).await.unwrap();
        let call = other.resume(serde_json::from_str(&kept).unwrap()).unwrap();
        let item = inbox.first().await;
        inbox.decline(item.id).unwrap();
        assert_eq!(
            result_text(&call.outcome().await.unwrap()),
            r#""decline" null"#
        );
    }))
    .await;
}

/// A server on a file. Its only tool waits at the gate and can be re-run after a crash.
async fn gated(file: &Path, bind: SocketAddr, gate: &Arc<Semaphore>) -> ServerHandle {
    let gate = gate.clone();
    let wait = Tool::new("wait", "waits at the gate", move |_, _| {
        let gate = gate.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(text("through"))
        }
    });
    let wait = wait.task(TaskSupport::Optional).hints(Hints::READ_ONLY);
    let url = file.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    let server = Server::builder("gated", "1")
        .tool(wait.task_policy(TaskPolicy::Always))
        .store(store)
        .build();
    server.serve_http(&bind.to_string()).await.unwrap()
}

#[tokio::test]
async fn a_task_is_followed_across_a_server_crash() {
    // V2-GET-10, V2-STATE-2, V2-HTTP-8.
    within_time_limit(Box::pin(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.db");
        let gate = Arc::new(Semaphore::new(0));
        let anywhere = (Ipv4Addr::LOCALHOST, 0).into();
        let server = gated(&file, anywhere, &gate).await;
        let url = server.url();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let address: SocketAddr = address.parse().unwrap();
        let target = Target::http(HttpClientOptions::new(&url));
        let client = Client::connect(target, ClientOptions::default());
        let client = client.await.unwrap();
        let call = client.call_tool("wait", ()).await.unwrap();
        let task = call.task().await.unwrap();
        server.shutdown().await.unwrap();
        let _server = gated(&file, address, &gate).await;
        gate.add_permits(1);
        assert_eq!(result_text(&call.outcome().await.unwrap()), "through");
        assert_eq!(call.task().await, Some(task));
    }))
    .await;
}
