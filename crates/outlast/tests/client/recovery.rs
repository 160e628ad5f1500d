//! Tasks that are resumed after a restart of the client.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{
    Client, ClientOptions, OutcomeError, ReferenceInUse, ReferenceStore, TaskReference,
};
use outlast::store::{MemoryStore, Store};
use serde_json::json;

use crate::harness::{capabilities, raw, result_text, target, task, text};

fn options(store: &Arc<dyn Store>) -> (ReferenceStore, ClientOptions) {
    let references = ReferenceStore::new(store.clone());
    let options = crate::harness::options().with_references(references.clone());
    (references, options)
}

#[tokio::test(start_paused = true)]
async fn a_task_is_resumed_from_its_reference_after_a_crash() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (references, first_life) = options(&store);
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target.clone(), first_life));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client
        .call_tool("slow", Some(raw(json!({ "n": 1 }))))
        .ttl(Duration::from_secs(60));
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    // The reference is stored before the task is reported.
    assert_eq!(call.task().await.as_deref(), Some("t1"));
    let stored = references.all(Some("test")).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(
        (stored[0].task.as_str(), stored[0].tool.as_str()),
        ("t1", "slow")
    );
    assert_eq!(stored[0].arguments, Some(raw(json!({ "n": 1 }))));
    assert!(references.all(Some("elsewhere")).await.unwrap().is_empty());
    // Only one execution can follow a task.
    assert_eq!(
        client.resume(stored[0].clone()).unwrap_err(),
        ReferenceInUse("t1".into())
    );
    drop((call, client, server, references));

    let (references, second_life) = options(&store);
    let connecting = tokio::spawn(Client::connect(target, second_life));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let stored = references.all(None).await.unwrap().remove(0);
    let call = client.resume(stored.clone()).unwrap();
    // It polls at once, because the stored status is old.
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    assert!(references.all(None).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reference_is_free_after_its_execution_is_dropped() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (references, life) = options(&store);
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, life));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    call.task().await;
    let mut updates = call.updates();
    call.detach().await;
    while updates
        .next()
        .await
        .is_some_and(|view| view.ended.is_none())
    {}
    let stored = references.all(None).await.unwrap().remove(0);
    let call = client.resume(stored).unwrap();
    // A lost task keeps its reference, because the server may return.
    for _ in 0..4 {
        let look = server.expect_request("tasks/get").await;
        server.refuse(&look, -32602, "not found").await;
    }
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Lost { .. })
    ));
    assert_eq!(references.all(None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn task_ids_of_two_servers_do_not_collide() {
    // S4-35.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (_, options) = options(&store);
    let (client, mut server) = crate::harness::connected_with(options, capabilities()).await;
    let here = TaskReference::known_by_id("here", "t1");
    let _first = client.resume(here.clone()).unwrap();
    // It polls after its reference is stored.
    server.expect_request("tasks/get").await;
    assert!(client.resume(here).is_err());
    let there = TaskReference::known_by_id("there", "t1");
    let _second = client.resume(there).unwrap();
    server.expect_request("tasks/get").await;
}
