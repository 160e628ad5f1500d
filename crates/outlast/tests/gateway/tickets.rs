//! Slow tools for clients without tasks: the gateway waits, sends progress or returns a ticket, and
//! never loses the result.

use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind};
use serde_json::json;
use std::time::Duration;

use crate::caller::{connect, connect_as};
use crate::cell::{SERVER_KINDS, ServerKind};
use crate::harness::{Harness, quick};

const PLAIN: [ClientKind; 2] = [ClientKind::PlainLegacy, ClientKind::PlainModern];

/// Calls a tool that waits at the gate until the caller gets a ticket, and returns its task.
async fn ticket(caller: &mut Caller, tool: &str) -> String {
    ticket_task(&caller.call(tool, json!({ "wait": true })).await)
}

fn ticket_task(ended: &CallEnd) -> String {
    let CallEnd::Result(result) = ended else {
        panic!("{ended:?}");
    };
    let ticket = &result["structuredContent"]["ticket"];
    assert_eq!(ticket["status"], "working", "{result}");
    let task = ticket["taskId"].as_str().unwrap().to_owned();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("task_wait") && text.contains(&task), "{text}");
    task
}

fn text(ended: &CallEnd) -> String {
    match ended {
        CallEnd::Result(result) => result["content"][0]["text"].as_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_wait_gives_a_ticket_and_the_result() {
    for kind in PLAIN {
        let harness = Harness::new(ServerKind::PlainLegacy).await;
        let mut caller = connect(kind, &harness.mcp_server).await;
        let task = ticket(&mut caller, "gated").await;
        let id = json!({ "taskId": task });
        // It still runs: another ticket, after the requested time.
        let again = caller.call("task_wait", json!({ "taskId": task, "seconds": 1 }));
        assert_eq!(ticket_task(&again.await), task);
        let all = caller.call("task_status", json!({})).await;
        assert!(text(&all).contains(&task) && text(&all).contains("working"));
        harness.gate.add_permits(1);
        let result = caller.call("task_wait", id.clone()).await;
        assert_eq!(text(&result), "through", "{kind:?}");
        let one = caller.call("task_status", id).await;
        assert!(text(&one).contains("completed"), "{one:?}");
        // The list shows the call of each task, also of ended ones.
        assert!(text(&one).contains("(gated {"), "{one:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_cancelled_by_its_ticket() {
    for kind in PLAIN {
        let harness = Harness::new(ServerKind::PlainLegacy).await;
        let mut caller = connect(kind, &harness.mcp_server).await;
        let task = ticket(&mut caller, "gated").await;
        let id = json!({ "taskId": task });
        caller.call("task_cancel", id.clone()).await;
        harness.until_waiting(0).await;
        let ended = caller.call("task_wait", id).await;
        assert_eq!(ended, CallEnd::Cancelled);
        let unknown = caller
            .call("task_wait", json!({ "taskId": "unknown" }))
            .await;
        assert!(matches!(unknown, CallEnd::Error(-32602, _)), "{unknown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_timeout_resets_gets_regular_progress() {
    let harness = Harness::new(ServerKind::PlainLegacy).await;
    let mut caller = connect_as(ClientKind::PlainLegacy, &harness.mcp_server, "opencode").await;
    let params = json!({ "name": "gated", "_meta": { "progressToken": 7 } });
    let id = caller.send("tools/call", params).await;
    let mut last = 0.0;
    for _ in 0..30 {
        let notification = caller.wait_for_notification("notifications/progress").await;
        let now = notification["params"]["progress"].as_f64().unwrap();
        // V1-PRG-3.
        assert!(now > last, "{now} after {last}");
        last = now;
    }
    harness.gate.add_permits(1);
    let answer = caller.response_to(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "through");
}

#[tokio::test(start_paused = true)]
async fn clients_with_tasks_or_without_tickets_wait_for_the_result() {
    // BR-CREATE-4.
    let no_tickets = quick().with_tickets(false);
    for (kind, name, settings) in [
        (ClientKind::V1, "by-hand", quick()),
        (ClientKind::PlainLegacy, "Visual Studio Code", quick()),
        (ClientKind::PlainLegacy, "by-hand", no_tickets.clone()),
        (ClientKind::PlainModern, "by-hand", no_tickets),
    ] {
        let harness = Harness::with(ServerKind::PlainLegacy, settings).await;
        let mut caller = connect_as(kind, &harness.mcp_server, name).await;
        let listed = caller.request("tools/list", json!({})).await;
        assert!(!listed.to_string().contains("task_wait"), "{kind:?} {name}");
        let id = caller.send("tools/call", json!({ "name": "gated" })).await;
        tokio::time::sleep(Duration::from_secs(500)).await;
        harness.gate.add_permits(1);
        let answer = caller.response_to(id).await;
        let said = &answer["result"]["content"][0]["text"];
        assert_eq!(*said, "through", "{kind:?} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_joins_the_running_one_only_if_repeatable() {
    let harness = Harness::new(ServerKind::PlainLegacy).await;
    let mut caller = connect(ClientKind::PlainLegacy, &harness.mcp_server).await;
    let first = ticket(&mut caller, "reads").await;
    assert_eq!(ticket(&mut caller, "reads").await, first);
    harness.until_waiting(1).await;
    let other = json!({ "wait": true, "of": "another" });
    assert_ne!(ticket_task(&caller.call("reads", other).await), first);
    harness.gate.add_permits(2);
    let read = caller.call("task_wait", json!({ "taskId": first })).await;
    assert_eq!(text(&read), "read");
    harness.until_waiting(0).await;
    let once = ticket(&mut caller, "gated").await;
    assert_ne!(ticket(&mut caller, "gated").await, once);
    harness.until_waiting(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_continues_after_its_client_disconnects() {
    // BR-CAN-8: the client disconnects.
    let harness = Harness::new(ServerKind::PlainLegacy).await;
    let mut caller = connect(ClientKind::PlainLegacy, &harness.mcp_server).await;
    let task = ticket(&mut caller, "gated").await;
    drop(caller);
    harness.gate.add_permits(1);
    harness.until_waiting(0).await;
    let mut caller = connect(ClientKind::PlainLegacy, &harness.mcp_server).await;
    let result = caller.call("task_wait", json!({ "taskId": task })).await;
    assert_eq!(text(&result), "through");
    let listed = caller.call("task_status", json!({})).await;
    assert!(text(&listed).contains(&task));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_by_ticket_gets_the_input_requests() {
    // The call already has its response, the ticket.
    let settings = quick().with_wait_budget(Duration::from_millis(350));
    for server in SERVER_KINDS {
        for kind in [ClientKind::PlainLegacy, ClientKind::PlainModern] {
            let harness = Harness::with(server, settings.clone()).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let task = ticket_task(&caller.call("late", json!({})).await);
            assert!(caller.input_requests.is_empty(), "{kind:?} → {server:?}");
            let ended = caller.wait(&json!({ "taskId": task })).await;
            assert!(text(&ended).contains("Ada/Still there?"), "{ended:?}");
            assert_eq!(caller.input_requests.len(), 1, "{kind:?} → {server:?}");
        }
    }
}
