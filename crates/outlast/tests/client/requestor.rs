//! Tasks at a server: created, polled, fetched, cancelled (requestor rows of V1, and seed 004).

use std::time::Duration;

use outlast::client::{CallError, OutcomeError, TaskPreference};
use outlast::task::Outcome;
use outlast::wire::Status;
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{
    Synchronize, calling, capabilities, connected, connected_with, raw, result_text, task, text,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_at_the_servers_pace() {
    // S4-8, S4-9, S4-13, S4-76, V1-GET-2, V1-GET-3.
    let (client, mut server) = connected().await;
    let arguments = raw(json!({ "n": 1 }));
    let call = client
        .call_tool("slow", Some(arguments))
        .ttl(Duration::from_secs(60));
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    assert_eq!(request["params"]["task"], json!({ "ttl": 60_000 }));
    assert_eq!(request["params"]["arguments"], json!({ "n": 1 }));
    assert!(request["params"]["_meta"]["progressToken"].is_string());
    server
        .reply(&request, json!({ "task": task("working", 500) }))
        .await;
    let call = call.await.unwrap();
    assert_eq!(call.task().await.as_deref(), Some("t1"));
    // Every response can change the interval.
    let made = Instant::now();
    for interval in [500, 1_500, 100, 100] {
        let look = server.expect_request("tasks/get").await;
        assert_eq!(look["params"], json!({ "taskId": "t1" }));
        server.reply(&look, task("working", interval)).await;
    }
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    // V1-META-4.
    assert_eq!(fetch["params"], json!({ "taskId": "t1" }));
    let mut result = text("done");
    result["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    server.reply(&fetch, result).await;
    let outcome = call.outcome().await.unwrap();
    assert_eq!(outcome, Outcome::Result(raw(text("done"))));
    let looks = server.times("tasks/get");
    let gaps: Vec<_> = looks.iter().map(|at| (*at - made).as_millis()).collect();
    assert_eq!(gaps, [500, 1_000, 2_500, 2_600, 2_700]);
}

#[tokio::test(start_paused = true)]
async fn the_poll_interval_has_a_default_and_a_minimum() {
    // S4-37.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "required")]).await;
    let request = server.expect_request("tools/call").await;
    // S4-94.
    assert_eq!(request["params"]["task"], json!({}));
    let mut made = task("working", 0);
    made.as_object_mut().unwrap().remove("pollInterval");
    server.reply(&request, json!({ "task": made })).await;
    let _call = call.await.unwrap();
    let made = Instant::now();
    let look = server.expect_request("tasks/get").await;
    assert_eq!((Instant::now() - made).as_millis(), 5_000);
    server.reply(&look, task("working", 1)).await;
    server.expect_request("tasks/get").await;
    assert_eq!((Instant::now() - made).as_millis(), 5_100);
    // The next poll waits for the response to the last one.
    server.silence(MS(5_000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_notification_is_followed_by_the_result_at_once() {
    // S4-24, S4-38, S4-73.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    call.task().await;
    let made = Instant::now();
    server
        .notify("notifications/tasks/status", task("working", 60_000))
        .await;
    server
        .notify("notifications/tasks/status", task("completed", 60_000))
        .await;
    let fetch = server.expect_request("tasks/result").await;
    assert_eq!(Instant::now(), made);
    // V1-NOTIF-7: a terminal status does not change.
    server
        .notify("notifications/tasks/status", task("working", 60_000))
        .await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    assert_eq!(call.status().task.unwrap().status, Status::Completed);
    assert!(!server.has_received("tasks/get"));
}

#[tokio::test(start_paused = true)]
async fn other_notifications_postpone_the_next_poll_but_never_replace_it() {
    // S4-24, V1-NOTIF-4.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 1_000).await;
    let _call = call.await.unwrap();
    _call.task().await;
    let made = Instant::now();
    for _ in 0..5 {
        tokio::time::sleep(MS(500)).await;
        server
            .notify("notifications/tasks/status", task("working", 1_000))
            .await;
    }
    server.expect_request("tasks/get").await;
    assert_eq!((server.times("tasks/get")[0] - made).as_millis(), 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_notification_before_the_create_result_is_kept() {
    // A1-27.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    server
        .notify("notifications/tasks/status", task("completed", 60_000))
        .await;
    server
        .reply(&request, json!({ "task": task("working", 60_000) }))
        .await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn the_payload_of_a_failed_task_is_fetched() {
    // A1-2, S4-20.
    for (answer, is_error) in [(true, false), (false, true)] {
        let (_client, mut server, call) = calling().await;
        server.make_task("working", 100).await;
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task("failed", 100)).await;
        let fetch = server.expect_request("tasks/result").await;
        if answer {
            let mut result = text("it broke");
            result["isError"] = json!(true);
            server.reply(&fetch, result).await;
        } else {
            server.refuse(&fetch, -32050, "it broke badly").await;
        }
        match call.await.unwrap().outcome().await.unwrap() {
            Outcome::ToolError(_, message) => {
                assert!(!is_error);
                assert_eq!(message.as_deref(), Some("it broke"));
            }
            Outcome::Error(_, code, _) => {
                assert!(is_error);
                assert_eq!(code.0, -32050);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_result_is_sent_when_input_is_required() {
    // S4-21, V1-INPUT-3, V1-RES-9.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("input_required", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    for _ in 0..3 {
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task("working", 100)).await;
    }
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
    // Never two at once.
    assert_eq!(server.times("tasks/result").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_until_the_end_of_the_task() {
    // S4-26, V1-PROG-3, A1-21.
    let (client, mut server, call) = calling().await;
    let request = server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    let token = &request["params"]["_meta"]["progressToken"];
    let mut updates = call.updates();
    for progress in [1, 2] {
        let params =
            json!({ "progressToken": token, "progress": progress, "total": 2, "message": "m" });
        server.notify("notifications/progress", params).await;
        loop {
            let view = updates.next().await.unwrap();
            if let Some(progress_update) = view
                .progress
                .filter(|progress_update| progress_update.progress == f64::from(progress))
            {
                assert_eq!(
                    (progress_update.total, progress_update.message.as_deref()),
                    (Some(2.0), Some("m"))
                );
                break;
            }
        }
    }
    // Unknown tokens and malformed progress are ignored.
    server
        .notify(
            "notifications/progress",
            json!({ "progressToken": "x", "progress": 9 }),
        )
        .await;
    server
        .notify("notifications/progress", json!({ "progress": 9 }))
        .await;
    client.synchronize(&mut server).await;
    assert_eq!(call.status().progress.unwrap().progress, 2.0);
}

#[tokio::test(start_paused = true)]
async fn the_immediate_response_is_available() {
    // S4-50, V1-CREATE-11.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    let meta = json!({ "io.modelcontextprotocol/model-immediate-response": "It has begun." });
    server
        .reply(
            &request,
            json!({ "task": task("working", 100), "_meta": meta }),
        )
        .await;
    let call = call.await.unwrap();
    call.task().await;
    assert_eq!(
        call.status().immediate_response.as_deref(),
        Some("It has begun.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_direct_result_replaces_the_requested_task() {
    // A1-6, S4-49.
    let (client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    server.reply(&request, text("at once")).await;
    let call = call.await.unwrap();
    assert_eq!(result_text(&call.outcome().await.unwrap()), "at once");
    assert_eq!(call.task().await, None);
    // A call is not repeated after an error.
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server
        .refuse(&request, -32602, "Invalid task creation result")
        .await;
    assert!(matches!(call.outcome().await, Ok(Outcome::Error(_, code, _)) if code.0 == -32602));
    assert_eq!(server.times("tools/call").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_requested_only_where_server_and_tool_allow() {
    // V1-CAP-5, V1-CAP-6, V1-TOOL-1, V1-TOOL-2, V1-TOOL-10, S4-45, S4-46, S4-47.
    let (client, mut server) = connected().await;
    let calling = {
        let client = client.clone();
        tokio::spawn(async move { client.call_tool("later", ()).await })
    };
    server
        .list(&[
            ("must", "required"),
            ("later", "some day"),
            ("not", "forbidden"),
        ])
        .await;
    let call = calling.await.unwrap().unwrap();
    let request = server.expect_request("tools/call").await;
    assert!(request["params"].get("task").is_none());
    server.reply(&request, text("plain")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "plain");
    let refused = client
        .call_tool("not", ())
        .task(TaskPreference::Require)
        .await;
    assert_eq!(
        refused.unwrap_err(),
        CallError::ToolWithoutTasks("not".into())
    );
    let refused = client
        .call_tool("must", ())
        .task(TaskPreference::Forbid)
        .await;
    assert_eq!(refused.unwrap_err(), CallError::TaskRequired("must".into()));

    let (client, mut server) =
        connected_with(crate::harness::options(), json!({ "tools": {} })).await;
    let refused = client
        .call_tool("slow", ())
        .task(TaskPreference::Require)
        .await;
    assert_eq!(
        refused.unwrap_err(),
        CallError::ServerWithoutTasks("test".into())
    );
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    assert!(request["params"].get("task").is_none());
    server.reply(&request, text("plain")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "plain");
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_list_is_read_again() {
    // V1-TOOL-9, V1-PAGE-1, V1-PAGE-2.
    let (client, mut server) = connected().await;
    let tools = {
        let client = client.clone();
        tokio::spawn(async move { client.tools().await })
    };
    let first = server.expect_request("tools/list").await;
    server
        .reply(
            &first,
            json!({ "tools": [{ "name": "a" }, { "noName": 1 }], "nextCursor": "\u{1f4c4}" }),
        )
        .await;
    let second = server.expect_request("tools/list").await;
    assert_eq!(second["params"]["cursor"], "\u{1f4c4}");
    server
        .reply(&second, json!({ "tools": [{ "name": "b" }] }))
        .await;
    let tools = tools.await.unwrap().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(client.tools().await.unwrap(), tools);
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    client.synchronize(&mut server).await;
    let tools = {
        let client = client.clone();
        tokio::spawn(async move { client.tools().await })
    };
    server.list(&[("c", "optional")]).await;
    assert_eq!(tools.await.unwrap().unwrap().len(), 1);
    // A list with a cycle of cursors is not followed.
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    client.synchronize(&mut server).await;
    let tools = tokio::spawn(async move { client.tools().await });
    for _ in 0..2 {
        let page = server.expect_request("tools/list").await;
        server
            .reply(&page, json!({ "tools": [], "nextCursor": "same" }))
            .await;
    }
    assert!(tools.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_detached_task_is_not_polled_and_continues() {
    // S4-42, S4-74.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    assert_eq!(call.detach().await.as_deref(), Some("t1"));
    server.silence(MS(60_000)).await;
    assert!(!server.has_received("tasks/cancel"));
}

#[tokio::test(start_paused = true)]
async fn the_caller_is_warned_before_a_task_expires() {
    // S4-29, S4-91.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 10_000).await;
    let call = call.await.unwrap();
    call.task().await;
    let made = Instant::now();
    let mut updates = call.updates();
    let warned = tokio::spawn(async move {
        while let Some(view) = updates.next().await {
            if view.expiring {
                return Instant::now();
            }
        }
        panic!("never warned");
    });
    loop {
        let look = server.expect_request("tasks/get").await;
        if Instant::now() - made < MS(60_000) {
            server.reply(&look, task("working", 10_000)).await;
        } else {
            server.refuse(&look, -32602, "task not found").await;
            break;
        }
    }
    assert_eq!(
        call.outcome().await,
        Err(OutcomeError::Expired("t1".into()))
    );
    assert_eq!((warned.await.unwrap() - made).as_secs(), 48);
}

#[tokio::test(start_paused = true)]
async fn a_missing_task_is_lost_after_some_polls() {
    // A1-15.
    let (client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    for _ in 0..4 {
        let look = server.expect_request("tasks/get").await;
        server.refuse(&look, -32602, "no such task").await;
    }
    let settled = call.outcome().await;
    assert!(
        matches!(settled, Err(OutcomeError::Lost { task, why }) if task == "t1" && why.code() == Some(-32602))
    );
    // A task that reappears is not lost.
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server
        .reply(&request, json!({ "task": task("working", 100) }))
        .await;
    for _ in 0..5 {
        for _ in 0..3 {
            let look = server.expect_request("tasks/get").await;
            server.refuse(&look, -32603, "the store is down").await;
        }
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task("working", 100)).await;
    }
    assert!(call.status().ended.is_none());
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_polled_and_cancelled_by_id() {
    // S4-22, S4-52, S4-53, S4-54, S4-77, V1-LIST-3.
    let (client, mut server) = connected().await;
    let listing = {
        let client = client.clone();
        tokio::spawn(async move { client.list_tasks().await })
    };
    let page = server.expect_request("tasks/list").await;
    server
        .reply(
            &page,
            json!({ "tasks": [task("working", 1)], "nextCursor": " {\"a\":1} " }),
        )
        .await;
    let page = server.expect_request("tasks/list").await;
    assert_eq!(page["params"]["cursor"], " {\"a\":1} ");
    server
        .reply(&page, json!({ "tasks": [task("completed", 1)] }))
        .await;
    let statuses: Vec<_> = listing
        .await
        .unwrap()
        .unwrap()
        .iter()
        .map(|task| task.status)
        .collect();
    assert_eq!(statuses, [Status::Working, Status::Completed]);
    let fetching = {
        let client = client.clone();
        tokio::spawn(async move { client.task_result("t1").await })
    };
    let fetch = server.expect_request("tasks/result").await;
    server.silence(MS(100_000)).await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(fetching.await.unwrap().unwrap(), raw(text("done")));
    let (mut without, mut server) = (capabilities(), server);
    without["tasks"] = json!({ "requests": { "tools": { "call": {} } } });
    let cancelling = tokio::spawn(async move { client.cancel_task("t1").await });
    let cancel = server.expect_request("tasks/cancel").await;
    server.reply(&cancel, task("cancelled", 1)).await;
    assert_eq!(cancelling.await.unwrap().unwrap().status, Status::Cancelled);
    let (client, _server) = connected_with(crate::harness::options(), without).await;
    assert!(client.list_tasks().await.is_err());
    assert!(client.cancel_task("t1").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_executions_on_one_connection_keep_their_interval() {
    // S4-8, S4-27, V1-GET-2, V1-PRG-1.
    let (client, mut server) = connected().await;
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("slow", ()).await.unwrap().outcome().await })
        })
        .collect();
    let mut looks = std::collections::HashMap::<String, (usize, Instant)>::new();
    let mut tokens = std::collections::BTreeSet::new();
    let mut made = 0;
    let mut settled = 0;
    while settled < 1_000 {
        let message = server.next_request().await;
        match message["method"].as_str().unwrap() {
            "tools/list" => {
                let tool = json!({ "name": "slow", "inputSchema": {}, "execution": { "taskSupport": "required" } });
                server.reply(&message, json!({ "tools": [tool] })).await;
            }
            "tools/call" => {
                let token = &message["params"]["_meta"]["progressToken"];
                assert!(tokens.insert(token.to_string()), "{token} is used twice");
                let mut task = task("working", 500);
                task["taskId"] = format!("t{made}").into();
                looks.insert(format!("t{made}"), (0, Instant::now()));
                made += 1;
                server.reply(&message, json!({ "task": task })).await;
            }
            "tasks/get" => {
                let id = message["params"]["taskId"].as_str().unwrap().to_owned();
                let (count, last) = looks.get_mut(&id).unwrap();
                assert!(Instant::now() - *last >= MS(500), "{id}");
                (*count, *last) = (*count + 1, Instant::now());
                let status = if *count == 3 { "completed" } else { "working" };
                let mut task = task(status, 500);
                task["taskId"] = id.into();
                server.reply(&message, task).await;
            }
            "tasks/result" => {
                settled += 1;
                server.reply(&message, text("done")).await;
            }
            other => panic!("{other}"),
        }
    }
    for call in calls {
        assert_eq!(result_text(&call.await.unwrap().unwrap()), "done");
    }
}
