//! Several connections in one hub, and the tasks that are followed on them (seed 004).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::client::{ConnectionName, Hub, HubCall, HubCallOptions, HubError};
use outlast::wire::Id;
use outlast::wire::Status;
use outlast_testkit::{eventually, within};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{TestServer, connected, task, text};

fn start(hub: &Hub, name: &ConnectionName, options: HubCallOptions) -> JoinHandle<HubCall> {
    let (hub, name) = (hub.clone(), name.clone());
    tokio::spawn(async move {
        let call = hub.call_tool_as_task(&name, "slow", (), options);
        call.await.unwrap()
    })
}

async fn connect(hub: &Hub, server: &str, source: &str) -> (ConnectionName, TestServer) {
    let (client, scripted) = connected().await;
    let name = ConnectionName::new(server, source);
    hub.add(name.clone(), client).unwrap();
    (name, scripted)
}

/// Reports the task as completed, and its result.
async fn complete(server: &mut TestServer, result: Value) {
    let poll = server.expect_request("tasks/get").await;
    server.reply(&poll, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, result).await;
}

#[tokio::test]
async fn tasks_are_found_by_server_source_and_id() {
    // S4-28, S4-35, S4-36, S4-42, S4-43, S4-53, S4-84, S4-95, S4-96: both servers use the id `t1`.
    let hub = Hub::new();
    let (one, mut first) = connect(&hub, "files", "global").await;
    let (two, mut second) = connect(&hub, "files", "project").await;
    assert_eq!(hub.connections(), [one.clone(), two.clone()]);
    let calls = [&one, &two].map(|name| {
        let options = HubCallOptions::default().with_ttl(Duration::from_secs(60));
        start(&hub, name, options)
    });
    for server in [&mut first, &mut second] {
        let call = server.make_task("working", 100).await;
        assert_eq!(call["params"]["task"], json!({ "ttl": 60_000 }));
    }
    for call in calls {
        assert_eq!(call.await.unwrap().task.as_deref(), Some("t1"));
    }
    let active = hub.active_tasks();
    let names: Vec<_> = active.iter().map(|task| task.connection.clone()).collect();
    assert_eq!(names, [one.clone(), two.clone()]);
    for active in &active {
        assert_eq!((active.method, &*active.tool), ("tools/call", "slow"));
        assert_eq!(active.task.ttl_ms, Some(60_000));
        assert!(active.task.created.is_some() && active.task.updated.is_some());
    }
    complete(&mut second, text("second")).await;
    let result = within("the result", hub.get_task_result(&two, "t1")).await;
    assert!(result.unwrap().as_str().contains("second"));
    let left: Vec<_> = hub
        .active_tasks()
        .into_iter()
        .map(|task| task.connection)
        .collect();
    assert_eq!(left, [one]);
}

#[tokio::test]
async fn a_given_progress_token_is_sent_even_if_empty() {
    // S4-48.
    for (token, sent) in [(Id::from(0), json!(0)), (Id::text(""), json!(""))] {
        let hub = Hub::new();
        let (name, mut server) = connect(&hub, "s", "global").await;
        let options = HubCallOptions::default().with_progress_token(token.clone());
        let call = start(&hub, &name, options);
        let request = server.make_task("working", 100).await;
        assert_eq!(request["params"]["_meta"]["progressToken"], sent);
        call.await.unwrap();
        assert_eq!(hub.active_tasks()[0].progress_token, Some(token));
    }
}

#[tokio::test]
async fn every_update_names_its_server_and_source() {
    // S4-32, S4-56.
    let hub = Hub::new();
    let (name, mut server) = connect(&hub, "files", "project").await;
    let mut updates = hub.updates();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = seen.clone();
    let options = HubCallOptions::default()
        .with_progress_token(Id::from(0))
        .with_on_status(move |update| record.lock().unwrap().push(update.clone()));
    let call = start(&hub, &name, options);
    server.make_task("working", 100).await;
    call.await.unwrap();
    let created = within("the first update", updates.recv()).await.unwrap();
    assert_eq!((&created.connection, &*created.task), (&name, "t1"));
    assert_eq!(created.status, Status::Working);
    let progress = json!({ "progressToken": 0, "progress": 1, "total": 2 });
    server.notify("notifications/progress", progress).await;
    let progress = within("the progress", updates.recv()).await.unwrap();
    assert_eq!((progress.progress, progress.total), (Some(1.0), Some(2.0)));
    complete(&mut server, text("done")).await;
    eventually("the end is reported", async || {
        let seen = seen.lock().unwrap();
        seen.last()
            .is_some_and(|update| update.status == Status::Completed)
    })
    .await;
    // It is followed until its result was fetched.
    assert_eq!(hub.active_tasks().len(), 1);
}

#[tokio::test]
async fn a_task_is_forgotten_after_a_confirmed_cancel() {
    // S4-55, S4-96.
    let hub = Hub::new();
    let (name, mut server) = connect(&hub, "s", "global").await;
    let call = start(&hub, &name, HubCallOptions::default());
    server.make_task("working", 600_000).await;
    call.await.unwrap();
    let cancel = |hub: Hub, name: ConnectionName| {
        tokio::spawn(async move { hub.cancel_task(&name, "t1").await })
    };
    let refused = cancel(hub.clone(), name.clone());
    let request = server.expect_request("tasks/cancel").await;
    server.refuse(&request, -32602, "Cannot cancel task").await;
    let refused = refused.await.unwrap().unwrap_err();
    assert_eq!(refused, HubError::AlreadyFinished("t1".into()));
    assert_eq!(hub.active_tasks().len(), 1);
    let confirmed = cancel(hub.clone(), name.clone());
    let request = server.expect_request("tasks/cancel").await;
    server.reply(&request, task("cancelled", 100)).await;
    let confirmed = confirmed.await.unwrap().unwrap();
    assert_eq!(confirmed.status, Status::Cancelled);
    assert!(hub.active_tasks().is_empty());
}

#[tokio::test]
async fn tasks_are_listed_by_cursor() {
    // S4-54.
    let hub = Hub::new();
    let (name, mut server) = connect(&hub, "s", "global").await;
    let listing = tokio::spawn({
        let (hub, name) = (hub.clone(), name.clone());
        async move { hub.list_tasks(&name, Some("page-2")).await }
    });
    let request = server.expect_request("tasks/list").await;
    assert_eq!(request["params"]["cursor"], "page-2");
    let page = json!({ "tasks": [task("working", 100)], "nextCursor": "page-3" });
    server.reply(&request, page).await;
    let page = listing.await.unwrap().unwrap();
    assert_eq!(page.tasks.len(), 1);
    assert_eq!(page.next_cursor.as_deref(), Some("page-3"));
}

#[tokio::test]
async fn an_unknown_connection_is_named_in_the_error() {
    // S4-44.
    let hub = Hub::new();
    let name = ConnectionName::new("nowhere", "global");
    let error = hub.get_task(&name, "t1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection to server nowhere from global"
    );
    let (name, _server) = connect(&hub, "s", "global").await;
    let client = hub.client(&name).unwrap();
    assert!(matches!(
        hub.add(name.clone(), client),
        Err(HubError::NameInUse(_))
    ));
    assert!(hub.remove(&name).is_some());
    assert!(hub.connections().is_empty());
}

#[tokio::test]
async fn an_execution_of_another_call_is_followed_until_its_end() {
    let hub = Hub::new();
    let (name, mut server) = connect(&hub, "files", "global").await;
    let mut updates = hub.updates();
    let call = hub.client(&name).unwrap().call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.list(&[("slow", "optional")]).await;
    let execution = hub.follow(&name, call.await.unwrap());
    assert!(hub.active_tasks().is_empty(), "it is not a task yet");
    let request = server.expect_request("tools/call").await;
    let created = json!({ "task": task("working", 100) });
    server.reply(&request, created).await;
    let created = within("the first update", updates.recv()).await.unwrap();
    assert_eq!(
        (created.connection, created.status),
        (name.clone(), Status::Working)
    );
    assert_eq!(hub.active_tasks()[0].task.id, "t1");
    complete(&mut server, text("done")).await;
    within("the outcome", execution.outcome()).await.unwrap();
    eventually("the task is forgotten", async || {
        hub.active_tasks().is_empty()
    })
    .await;
    let mut last = created.task;
    while let Ok(update) = updates.try_recv() {
        last = update.status.to_string();
    }
    assert_eq!(last, "completed");
}
