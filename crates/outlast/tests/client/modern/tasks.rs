//! V2 tasks as the client follows them.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{
    self, CallError, CancelError, Client, ClientOptions, Execution, OutcomeError, ReferenceStore,
    TaskPreference, TaskReference,
};
use outlast::store::{MemoryStore, Store};
use outlast::task::{ErrorCode, Outcome};
use outlast::wire::Status;
use serde_json::{Value, json};

use super::{connected, connected_with, created, rejects_subscriptions, task_result};
use crate::harness::{TestServer, raw, result_text, text};

/// A call that has become a task.
async fn start_task(client: &Client, server: &mut TestServer, seed: Value) -> Execution {
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, seed).await;
    assert_eq!(call.task().await.as_deref(), Some("t1"));
    call
}

#[tokio::test(start_paused = true)]
async fn a_call_may_become_a_task_or_not() {
    // V2-CAP-4, V2-CAP-7, V2-CREATE-10, V2-CREATE-11.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = client
        .call_tool("slow", ())
        .task(TaskPreference::Require)
        .await
        .unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, text("at once")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "at once");
    assert!(call.status().task.is_none());
    let call = start_task(&client, &mut server, created("working", 100)).await;
    rejects_subscriptions(&mut server).await;
    let look = server.expect_request("tasks/get").await;
    assert_eq!(look["params"]["taskId"], "t1");
    server
        .reply(&look, task_result("working", 100, json!({})))
        .await;
    let look = server.expect_request("tasks/get").await;
    let result = json!({ "content": [], "resultType": "complete" });
    let ended = task_result("completed", 100, json!({ "result": result }));
    server.reply(&look, ended).await;
    // BR-RES-2: the result is the same as without a task.
    let expected = raw(json!({ "content": [] }));
    assert_eq!(call.outcome().await, Ok(Outcome::Result(expected)));
    assert_eq!(call.status().task.unwrap().status, Status::Completed);
    assert!(!server.has_received("tasks/result"));
    // V2-EXT-2: no task is requested from a server without tasks.
    let (client, _server) = connected_with(ClientOptions::default(), json!({ "tools": {} })).await;
    let refused = client
        .call_tool("slow", ())
        .task(TaskPreference::Require)
        .await;
    assert!(matches!(refused, Err(CallError::ServerWithoutTasks(_))));
}

#[tokio::test(start_paused = true)]
async fn every_end_is_an_outcome() {
    // V2-LIFE-2, V2-LIFE-3, V2-LIFE-4, V2-GET-3, V2-GET-4, V2-GET-5, A2-1.
    let error = json!({ "code": -32099, "message": "it broke", "data": { "x": [1.0] } });
    let flagged = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
    for (status, brings, expected) in [
        (
            "completed",
            json!({ "result": text("done") }),
            Outcome::Result(raw(text("done"))),
        ),
        (
            "completed",
            json!({ "result": flagged }),
            Outcome::ToolError(raw(flagged.clone()), Some("no".into())),
        ),
        (
            "failed",
            json!({ "error": error, "statusMessage": "it broke" }),
            Outcome::Error(
                raw(error.clone()),
                ErrorCode(-32099),
                Some("it broke".into()),
            ),
        ),
        ("cancelled", json!({}), Outcome::Cancelled),
    ] {
        let (client, mut server) = connected(ClientOptions::default()).await;
        let call = start_task(&client, &mut server, created("working", 100)).await;
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task_result(status, 100, brings)).await;
        assert_eq!(call.outcome().await, Ok(expected), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn polls_follow_the_interval_of_the_server() {
    // V2-GET-8, V2-GET-10, V2-TTL-2, BD-19, A2-28.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let mut seed = created("working", 700);
    let call = start_task(&client, &mut server, seed.clone()).await;
    rejects_subscriptions(&mut server).await;
    let paces = [
        json!(300),
        json!(null),
        json!(0),
        json!(86_400_000),
        json!(700),
    ];
    for pace in &paces {
        let look = server.expect_request("tasks/get").await;
        let mut shown = task_result("working", 0, json!({}));
        shown["pollIntervalMs"] = pace.clone();
        server.reply(&look, shown).await;
    }
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    call.outcome().await.unwrap();
    let times = server.times("tasks/get");
    let apart: Vec<_> = times
        .windows(2)
        .map(|two| (two[1] - two[0]).as_millis())
        .collect();
    assert_eq!(apart, [300, 1_000, 100, 60_000, 700]);
    // Without an interval at creation: one second.
    seed["pollIntervalMs"] = json!(null);
    let call = start_task(&client, &mut server, seed).await;
    let before = tokio::time::Instant::now();
    server.expect_request("tasks/get").await;
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    call.detach().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_on_a_pipe_can_delay_polls() {
    // V2-GET-9, A2-29.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = start_task(&client, &mut server, created("working", 100)).await;
    rejects_subscriptions(&mut server).await;
    for _ in 0..8 {
        let look = server.expect_request("tasks/get").await;
        let data = json!({ "retryAfterMs": 3_000 });
        let error = json!({ "code": -32603, "message": "slowly", "data": data });
        let answer = json!({ "jsonrpc": "2.0", "id": look["id"], "error": error });
        server.write(answer).await;
    }
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    let times = server.times("tasks/get");
    let mut apart = times.windows(2).map(|two| two[1] - two[0]);
    assert!(apart.all(|apart| apart == Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn a_task_ending_at_creation_is_polled_for_its_outcome() {
    // V2-CREATE-3, V2-CREATE-4, A2-25.
    let (client, mut server) = connected(ClientOptions::default()).await;
    for status in ["completed", "failed"] {
        let began = tokio::time::Instant::now();
        let mut seed = created(status, 60_000);
        // Unexpected members are ignored.
        seed["result"] = text("wrong");
        let call = start_task(&client, &mut server, seed).await;
        let look = server.expect_request("tasks/get").await;
        assert!(began.elapsed() < Duration::from_secs(1));
        let brings = json!({ "result": text("done"), "error": { "code": 1, "message": "no" } });
        server.reply(&look, task_result(status, 100, brings)).await;
        let settled = call.outcome().await.unwrap();
        match status {
            "completed" => assert_eq!(result_text(&settled), "done"),
            _ => assert!(matches!(settled, Outcome::Error(_, ErrorCode(1), _))),
        }
    }
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, created("cancelled", 100)).await;
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn malformed_responses_lose_the_task() {
    // A2-2, A2-26.
    let mut labelled = task_result("working", 100, json!({}));
    labelled["resultType"] = json!("task");
    let mut other = task_result("working", 100, json!({}));
    other["taskId"] = json!("t2");
    let asks = json!({ "resultType": "input_required", "requestState": "s" });
    for answer in [
        labelled,
        other,
        task_result("completed", 100, json!({})),
        task_result("failed", 100, json!({ "error": 7 })),
        task_result("completed", 100, json!({ "result": asks })),
    ] {
        let (client, mut server) = connected(ClientOptions::default()).await;
        let call = start_task(&client, &mut server, created("working", 100)).await;
        rejects_subscriptions(&mut server).await;
        let playing = tokio::spawn(async move {
            loop {
                let look = server.expect_request("tasks/get").await;
                server.reply(&look, answer.clone()).await;
            }
        });
        let settled = call.outcome().await;
        assert!(
            matches!(
                &settled,
                Err(OutcomeError::Lost {
                    why: client::Error::Malformed(_),
                    ..
                })
            ),
            "{settled:?}"
        );
        playing.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_task_is_expired_or_lost() {
    // V2-GET-13, V2-TTL-3, V2-TTL-7.
    for (ttl, expired) in [(600_000, false), (50, true)] {
        let (client, mut server) = connected(ClientOptions::default()).await;
        let mut seed = created("working", 100);
        seed["ttlMs"] = json!(ttl);
        let call = start_task(&client, &mut server, seed).await;
        rejects_subscriptions(&mut server).await;
        let playing = tokio::spawn(async move {
            loop {
                let look = server.expect_request("tasks/get").await;
                server.refuse(&look, -32602, "task not found").await;
            }
        });
        match call.outcome().await {
            Err(OutcomeError::Expired(task)) if expired => assert_eq!(task, "t1"),
            Err(OutcomeError::Lost { task, why }) if !expired => {
                assert_eq!((&*task, why.code()), ("t1", Some(-32602)));
            }
            other => panic!("{other:?}"),
        }
        playing.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_followed_to_its_end() {
    // V2-CANCEL-1, V2-CANCEL-2, V2-CANCEL-4, V2-CANCEL-5, V2-STATE-3, V2-STATE-4.
    let (client, mut server) = connected(ClientOptions::default()).await;
    for (status, brings) in [
        ("cancelled", json!({})),
        ("completed", json!({ "result": text("done") })),
    ] {
        let call = start_task(&client, &mut server, created("working", 100)).await;
        let cancelling = tokio::spawn(async move { (call.cancel().await, call) });
        let cancel = server.expect_request("tasks/cancel").await;
        assert_eq!(cancel["params"]["taskId"], "t1");
        server
            .reply(&cancel, json!({ "resultType": "complete" }))
            .await;
        let (cancelled, call) = cancelling.await.unwrap();
        assert_eq!(cancelled, Ok(()));
        assert!(call.status().cancelling);
        let look = server.expect_request("tasks/get").await;
        server
            .reply(&look, task_result("working", 100, json!({})))
            .await;
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task_result(status, 100, brings)).await;
        match status {
            "cancelled" => assert_eq!(call.outcome().await, Ok(Outcome::Cancelled)),
            _ => assert_eq!(result_text(&call.outcome().await.unwrap()), "done"),
        }
    }
    assert!(!server.has_received("notifications/cancelled"));
    let call = start_task(&client, &mut server, created("working", 60_000)).await;
    let cancelling = tokio::spawn(async move { call.cancel().await });
    let cancel = server.expect_request("tasks/cancel").await;
    server.refuse(&cancel, -32602, "task not found").await;
    assert_eq!(cancelling.await.unwrap(), Err(CancelError::Finished));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_resumed_after_a_restart() {
    // V2-GET-11, V2-STATE-2.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = || ClientOptions::default().with_references(ReferenceStore::new(store.clone()));
    let (client, mut server) = connected(options()).await;
    let call = start_task(&client, &mut server, created("working", 100)).await;
    call.detach().await;
    client.close().await;
    let again = ReferenceStore::new(store.clone());
    let kept: Vec<TaskReference> = again.all(Some("test")).await.unwrap();
    assert_eq!(
        (kept[0].task.as_str(), kept[0].generation.as_str()),
        ("t1", "v2")
    );
    let (client, mut server) = connected(options()).await;
    let call = client.resume(kept[0].clone()).unwrap();
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    while !again.all(None).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_read_by_its_id() {
    // V2-GET-14: the TTL is not a cache lifetime.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let getting = tokio::spawn({
        let client = client.clone();
        async move { client.get_task("t1").await }
    });
    let look = server.expect_request("tasks/get").await;
    server
        .reply(&look, task_result("working", 100, json!({})))
        .await;
    let got = getting.await.unwrap().unwrap();
    assert_eq!((got.status, got.ttl_ms), (Status::Working, Some(600_000)));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.task_result("t1").await }
    });
    let look = server.expect_request("tasks/get").await;
    server
        .reply(&look, task_result("working", 100, json!({})))
        .await;
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    assert_eq!(waiting.await.unwrap().unwrap(), raw(text("done")));
    let cancelling = tokio::spawn({
        let client = client.clone();
        async move { client.cancel_task("t1").await }
    });
    let cancel = server.expect_request("tasks/cancel").await;
    server
        .reply(&cancel, json!({ "resultType": "complete" }))
        .await;
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    // V2-CANCEL-7, V2-CANCEL-8.
    assert_eq!(cancelling.await.unwrap().unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_on_one_connection_keep_their_interval() {
    // V2-GET-8, V2-STATE-4.
    let (client, mut server) = connected(ClientOptions::default()).await;
    // Keep the pipe open until all tasks are done.
    let _kept = client.clone();
    let calls = tokio::spawn(async move {
        let mut calls = Vec::new();
        for n in 0..1_000 {
            let arguments = raw(json!({ "n": n }));
            calls.push(client.call_tool("slow", Some(arguments)).await.unwrap());
        }
        for (n, call) in calls.iter().enumerate() {
            assert_eq!(
                result_text(&call.outcome().await.unwrap()),
                format!("done {n}")
            );
        }
    });
    let playing = tokio::spawn(async move {
        let mut looks = std::collections::BTreeMap::<String, Vec<tokio::time::Instant>>::new();
        loop {
            let request = server.next_request().await;
            let id = request["params"]["taskId"].as_str().unwrap_or_default();
            match request["method"].as_str().unwrap() {
                "tools/call" => {
                    let mut seed = created("working", 500);
                    seed["taskId"] = request["params"]["arguments"]["n"].to_string().into();
                    server.reply(&request, seed).await;
                }
                "tasks/get" => {
                    let seen = looks.entry(id.to_owned()).or_default();
                    seen.push(tokio::time::Instant::now());
                    let mut task = match seen.len() {
                        ..3 => task_result("working", 500, json!({})),
                        _ => {
                            let done = text(&format!("done {id}"));
                            task_result("completed", 500, json!({ "result": done }))
                        }
                    };
                    let apart = seen.windows(2).map(|two| two[1] - two[0]);
                    assert!(
                        apart
                            .min()
                            .is_none_or(|least| least >= Duration::from_millis(500))
                    );
                    task["taskId"] = json!(id);
                    server.reply(&request, task).await;
                }
                _ => server.refuse(&request, -32601, "no such method").await,
            }
        }
    });
    tokio::select! {
        done = calls => done.unwrap(),
        failed = playing => failed.unwrap(),
    }
}
