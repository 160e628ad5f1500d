//! Cancellation of tasks at a server, in time and too late (requestor rows of V1, and seed 004).

use std::time::Duration;

use outlast::client::CancelError;
use outlast::task::Outcome;
use serde_json::json;

use crate::harness::{Synchronize, calling, capabilities, connected_with, result_text, task, text};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_by_its_own_method() {
    // S4-23, S4-78, V1-CANCEL-8.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 60_000).await;
    let call = std::sync::Arc::new(call.await.unwrap());
    call.task().await;
    let cancelling = {
        let call = call.clone();
        tokio::spawn(async move { call.cancel().await })
    };
    let cancel = server.expect_request("tasks/cancel").await;
    assert_eq!(cancel["params"], json!({ "taskId": "t1" }));
    assert!(call.status().cancelling);
    server.reply(&cancel, task("cancelled", 100)).await;
    assert_eq!(cancelling.await.unwrap(), Ok(()));
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    assert!(!server.has_received("notifications/cancelled"));
    assert_eq!(call.cancel().await, Err(CancelError::Finished));
}

#[tokio::test(start_paused = true)]
async fn a_late_cancellation_is_an_error_and_the_result_counts() {
    // S4-55, A1-14.
    for already in [true, false] {
        let (_client, mut server, call) = calling().await;
        server.make_task("working", 1_000).await;
        let call = std::sync::Arc::new(call.await.unwrap());
        call.task().await;
        let cancelling = {
            let call = call.clone();
            tokio::spawn(async move { call.cancel().await })
        };
        let cancel = server.expect_request("tasks/cancel").await;
        if already {
            server
                .refuse(
                    &cancel,
                    -32602,
                    "Cannot cancel task: already in terminal status",
                )
                .await;
            let look = server.expect_request("tasks/get").await;
            server.reply(&look, task("completed", 100)).await;
        } else {
            server.reply(&cancel, task("completed", 100)).await;
        }
        assert_eq!(cancelling.await.unwrap(), Err(CancelError::Finished));
        let fetch = server.expect_request("tasks/result").await;
        server.reply(&fetch, text("done")).await;
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn no_cancellation_is_sent_to_a_server_without_the_capability() {
    let mut without = capabilities();
    without["tasks"].as_object_mut().unwrap().remove("cancel");
    let (client, mut server) = connected_with(crate::harness::options(), without).await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    call.task().await;
    assert_eq!(call.cancel().await, Err(CancelError::Unsupported));
    server.silence(MS(1_000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_before_the_id_is_known_is_sent_later() {
    // A1-25, V1-CANC-2.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    let call = std::sync::Arc::new(call.await.unwrap());
    let cancelling = {
        let call = call.clone();
        tokio::spawn(async move { call.cancel().await })
    };
    server.silence(MS(1_000)).await;
    server
        .reply(&request, json!({ "task": task("working", 60_000) }))
        .await;
    let cancel = server.expect_request("tasks/cancel").await;
    server.reply(&cancel, task("cancelled", 100)).await;
    assert_eq!(cancelling.await.unwrap(), Ok(()));
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_without_an_id_is_cancelled_later() {
    // A1-25.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    drop(call.await.unwrap());
    server.silence(MS(1_000)).await;
    server
        .reply(&request, json!({ "task": task("working", 100) }))
        .await;
    let cancel = server.expect_request("tasks/cancel").await;
    server.reply(&cancel, task("cancelled", 100)).await;
    server.silence(MS(10_000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_task_is_cancelled_by_notification() {
    // S4-93, V1-CANC-1, V1-CANC-8.
    let (client, mut server) =
        connected_with(crate::harness::options(), json!({ "tools": {} })).await;
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    assert_eq!(call.cancel().await, Ok(()));
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], request["id"]);
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    // V1-CANC-5: a late response is ignored.
    server.reply(&request, text("late")).await;
    client.synchronize(&mut server).await;
}
