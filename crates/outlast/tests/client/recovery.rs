//! A task is found again in another life of the program.

use std::sync::Arc;

use outlast::client::{
    Client, ClientOptions, OutcomeError, ReferenceInUse, ReferenceStore, TaskReference,
};
use outlast::engine::{MemoryStore, Store};
use serde_json::json;

use crate::stage::{capabilities, raw, said, target, task, text};

fn options(store: &Arc<dyn Store>) -> (ReferenceStore, ClientOptions) {
    let references = ReferenceStore::new(store.clone());
    let options = ClientOptions {
        references: Some(references.clone()),
        ..crate::stage::options()
    };
    (references, options)
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_left_by_a_crash_is_resumed_from_its_stored_reference() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (references, first_life) = options(&store);
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target.clone(), first_life));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client
        .call_tool("slow", Some(raw(json!({ "n": 1 }))))
        .ttl(60_000);
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    // Whoever knows of the task finds it stored.
    assert_eq!(call.task().await.as_deref(), Some("t1"));
    let stored = references.all(Some("test")).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(
        (stored[0].task.as_str(), stored[0].tool.as_str()),
        ("t1", "slow")
    );
    assert_eq!(stored[0].arguments, Some(raw(json!({ "n": 1 }))));
    assert!(references.all(Some("elsewhere")).await.unwrap().is_empty());
    // One owner at a time.
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
    // It looks at once: what is known is old.
    let look = server.asked("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.asked("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(said(&call.outcome().await.unwrap()), "done");
    assert!(references.all(None).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reference_is_free_again_when_its_execution_was_left() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (references, life) = options(&store);
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, life));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client.call_tool("slow", None);
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
    // Lost tasks keep their reference: there may be something to come back for.
    for _ in 0..4 {
        let look = server.asked("tasks/get").await;
        server.refuse(&look, -32602, "not found").await;
    }
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Lost { .. })
    ));
    assert_eq!(references.all(None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_its_servers_own() {
    // S4-35.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (_, options) = options(&store);
    let (client, mut server) = crate::stage::connected_with(options, capabilities()).await;
    let here = TaskReference::known_by_id("here", "t1");
    let _first = client.resume(here.clone()).unwrap();
    // It looks when its reference is kept.
    server.asked("tasks/get").await;
    assert!(client.resume(here).is_err());
    let there = TaskReference::known_by_id("there", "t1");
    let _second = client.resume(there).unwrap();
    server.asked("tasks/get").await;
}
