//! Scenarios of a call in one cell. Each has its own deployment and panics on failure.

use std::time::Duration;

use outlast::task::Policy;
use outlast::task::TtlPolicy;
use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind, Responder, accepting, declining};
use outlast_testkit::mcp::endpoint::Transport;
use outlast_testkit::within;
use serde_json::{Value, json};

use super::deployment::{Deployment, DeploymentOptions};
use crate::caller::connect;
use crate::cell::{Cell, Recovery};
use crate::events::{
    expires_after_its_ttl, short_lived, task_in, three_polls_return_the_same, ticket_tool_params,
    with_tickets,
};
use crate::scenario::Scenario;

/// The result is the same as without the gateway.
pub(super) async fn outcome(cell: Cell, tool: &str, answers: Responder) {
    let deployment = Deployment::new(cell).await;
    let mut direct = connect(ClientKind::PlainLegacy, &deployment.direct()).await;
    direct.responder = answers;
    let expected = direct.call(tool, json!({ "say": "x" })).await;
    let mut caller = deployment.caller().await;
    caller.responder = answers;
    assert_eq!(caller.call(tool, json!({ "say": "x" })).await, expected);
}

/// A tool that runs only as a task (BR-CREATE-7).
pub(super) async fn only_as_a_task(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    assert_says(caller.call("must", json!({})).await, "done");
}

pub(super) async fn slow(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    deployment.opens_later();
    assert_says(caller.call("gated", json!({})).await, "through");
    assert_eq!(deployment.gate.runs(), 1);
}

/// No notification of the server arrives.
pub(super) async fn notifications_lost(cell: Cell) {
    let plan = DeploymentOptions {
        lossy: true,
        ..DeploymentOptions::default()
    };
    let deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    deployment.opens_later();
    assert_says(caller.call("gated", json!({})).await, "through");
    assert_says(caller.call("late", json!({})).await, "Ada/Still there?");
}

pub(super) async fn polls_twice(cell: Cell) {
    let plan = DeploymentOptions {
        settings: with_tickets(),
        ..DeploymentOptions::default()
    };
    let deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    three_polls_return_the_same(&mut caller, &deployment.gate, "").await;
    assert_eq!(deployment.gate.runs(), 1);
}

/// Cancelled as soon as the client can.
pub(super) async fn cancelled_at_once(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let id = caller.send("tools/call", call_params(cell, "gated")).await;
    if (cell.client, cell.client_transport) == (ClientKind::PlainLegacy, Transport::Http) {
        // Two requests on two connections are not ordered.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    caller.cancel(id).await;
    // Long enough for a call to start that was not cancelled.
    tokio::time::sleep(Duration::from_millis(500)).await;
    deployment.gate.until_waiting(0).await;
}

pub(super) async fn cancelled_under_way(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let id = caller.send("tools/call", call_params(cell, "gated")).await;
    deployment.gate.until_waiting(1).await;
    caller.cancel(id).await;
    deployment.gate.until_waiting(0).await;
}

/// Cancelled after its end: nothing changes (BR-CAN-3, BR-CAN-10).
pub(super) async fn cancelled_too_late(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let id = caller.send("tools/call", call_params(cell, "gated")).await;
    deployment.gate.until_waiting(1).await;
    if !cell.client.has_tasks() {
        deployment.gate.open();
        let answer = caller.response_to(id).await;
        if (cell.client, cell.client_transport) != (ClientKind::PlainModern, Transport::Http) {
            let cancelled = json!({ "requestId": id, "reason": "too late" });
            caller.notify("notifications/cancelled", cancelled).await;
        }
        return assert_says(caller.finish(json!({}), answer).await, "through");
    }
    let begun = caller.response_to(id).await;
    deployment.gate.open();
    let task = json!({ "taskId": task_in(&begun) });
    assert_says(caller.finish(json!({}), begun).await, "through");
    let late = caller.request("tasks/cancel", task.clone()).await;
    match cell.client {
        ClientKind::V1 => assert_eq!(late["error"]["code"], -32602, "{late}"),
        _ => assert!(late.get("error").is_none(), "{late}"),
    }
    let got = caller.request("tasks/get", task).await;
    assert_eq!(got["result"]["status"], "completed", "{got}");
}

/// Expired tasks do not exist.
pub(super) async fn expired(cell: Cell) {
    let plan = DeploymentOptions {
        settings: short_lived(),
        behind: outlast::gateway::policy(),
        ..DeploymentOptions::default()
    };
    let deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    expires_after_its_ttl(&mut caller, &deployment.gate, "").await;
}

/// The server's task expires before its end (BR-TTL-3).
pub(super) async fn expired_at_the_server(cell: Cell) {
    let plan = DeploymentOptions {
        behind: Policy::default()
            .with_ttl_policy(TtlPolicy::Strict)
            .with_default_ttl(Duration::from_millis(2_000))
            .with_max_ttl(Duration::from_millis(2_000))
            .with_poll_interval(Duration::from_millis(100)),
        ..DeploymentOptions::default()
    };
    let deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    assert_fails(caller.call("keeps", json!({})).await, "lost upstream");
}

/// The server crashes during a call that cannot be repeated (BR-GEN-7).
pub(super) async fn server_dies(cell: Cell) {
    let mut deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let calling = tokio::spawn(async move { caller.call("gated", json!({})).await });
    deployment.gate.until_waiting(1).await;
    // The call may or may not be a task by then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    deployment.crash_server().await;
    deployment.gate.open();
    let ended = calling.await.unwrap();
    let CallEnd::Error(-32603, why) = &ended else {
        panic!("{ended:?}");
    };
    let honest = why.contains("unknown") || why.contains("lost upstream");
    assert!(honest, "{why}");
    assert_eq!(deployment.gate.runs(), 1);
}

/// The server crashes during a read-only call.
pub(super) async fn server_dies_reading(cell: Cell) {
    let mut deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let calling = tokio::spawn(async move { caller.call("reads", json!({ "wait": 1 })).await });
    deployment.gate.until_waiting(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    deployment.crash_server().await;
    deployment.gate.open();
    assert_says(calling.await.unwrap(), "read");
    assert_eq!(deployment.gate.runs(), 2);
}

/// The client disconnects while its call runs, and reconnects.
pub(super) async fn client_leaves(cell: Cell) {
    let deployment = Deployment::new(cell).await;
    let mut caller = deployment.caller().await;
    let id = caller.send("tools/call", call_params(cell, "gated")).await;
    let begun = if cell.client.has_tasks() {
        caller.response_to(id).await
    } else {
        Value::Null
    };
    deployment.gate.until_waiting(1).await;
    if cell.is_task_of_the_server() {
        deployment.gate.until_polled(1).await;
    }
    if cell.client != ClientKind::PlainModern {
        deployment.until_stored().await;
    }
    caller.disconnect();
    if cell.client == ClientKind::PlainModern {
        // BR-CAN-7: closing its stream cancels the call.
        return deployment.gate.until_waiting(0).await;
    }
    // BR-CAN-8.
    tokio::time::sleep(Duration::from_millis(300)).await;
    deployment.gate.until_waiting(1).await;
    deployment.gate.add_permits(1);
    caller.reconnect(&deployment.endpoint).await;
    let ended = match cell.client {
        ClientKind::PlainLegacy => {
            let task = only_task(&mut caller).await;
            caller.wait(&task).await
        }
        _ => caller.finish(json!({}), begun).await,
    };
    assert_says(ended, "through");
    assert_eq!(deployment.gate.runs(), 1);
}

/// The gateway restarts while a call runs.
pub(super) async fn gateway_restarts(cell: Cell, tool: &str, may_repeat: bool) {
    let plan = DeploymentOptions {
        settings: with_tickets(),
        ..DeploymentOptions::default()
    };
    let mut deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    let params = json!({ "name": tool, "arguments": { "wait": 1 } });
    let begun = caller.begin(params).await;
    deployment.gate.until_waiting(1).await;
    let recovery = cell.recovery(may_repeat);
    if recovery == Recovery::Resumed {
        deployment.until_attached(task_in(&begun)).await;
    }
    caller.disconnect();
    deployment.restart_gateway().await;
    caller.reconnect(&deployment.endpoint).await;
    deployment.gate.open();
    let ended = ending_of(&mut caller, begun).await;
    let (expected, runs) = match recovery {
        Recovery::Resumed => (Some(tool), 1),
        Recovery::RunsAgain => (Some(tool), 2),
        Recovery::Unknown => (None, 1),
    };
    match expected {
        Some("gated") => assert_says(ended, "through"),
        Some(_) => assert_says(ended, "read"),
        None => assert_fails(ended, "unknown"),
    }
    assert_eq!(deployment.gate.runs(), runs);
}

/// The gateway restarts after a call has ended.
pub(super) async fn gateway_restarts_later(cell: Cell) {
    let plan = DeploymentOptions {
        settings: with_tickets(),
        ..DeploymentOptions::default()
    };
    let mut deployment = Deployment::with_options(cell, plan).await;
    let mut caller = deployment.caller().await;
    let begun = caller.begin(json!({ "name": "gated" })).await;
    deployment.gate.open();
    has_ended(&mut caller, &json!({ "taskId": task_in(&begun) })).await;
    caller.disconnect();
    deployment.restart_gateway().await;
    caller.reconnect(&deployment.endpoint).await;
    assert_says(ending_of(&mut caller, begun).await, "through");
    assert_eq!(deployment.gate.runs(), 1);
}

impl Deployment {
    /// Lets one call continue after a delay.
    fn opens_later(&self) {
        let gate = self.gate.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            gate.add_permits(1);
        });
    }
}

/// The params with which a client of that kind calls a tool.
fn call_params(cell: Cell, tool: &str) -> Value {
    let mut params = json!({ "name": tool });
    if cell.client == ClientKind::V1 {
        params["task"] = json!({});
    }
    params
}

/// Drives a call to its end from its first response, which is a task or a ticket.
async fn ending_of(caller: &mut Caller, begun: Value) -> CallEnd {
    if caller.kind.has_tasks() {
        caller.finish(json!({}), begun).await
    } else {
        let task = json!({ "taskId": task_in(&begun) });
        caller.wait(&task).await
    }
}

/// The only task, for a client that did not get its id.
async fn only_task(caller: &mut Caller) -> Value {
    let status = ticket_tool_params("task_status", &json!({}));
    let all = caller.request("tools/call", status).await;
    let tasks = all["result"]["structuredContent"]["tasks"].as_array();
    let [task] = &tasks.unwrap_or_else(|| panic!("{all}"))[..] else {
        panic!("{all}");
    };
    json!({ "taskId": task["taskId"] })
}

/// Polls until a task has ended, without fetching its result if that is a separate request.
async fn has_ended(caller: &mut Caller, task: &Value) {
    let ended = async {
        loop {
            let got = if caller.kind.has_tasks() {
                caller.request("tasks/get", task.clone()).await
            } else {
                let status = ticket_tool_params("task_status", task);
                caller.request("tools/call", status).await
            };
            if got.to_string().contains("completed") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the end of a task", ended).await;
}

fn assert_says(ended: CallEnd, expected: &str) {
    let CallEnd::Result(result) = &ended else {
        panic!("{ended:?}");
    };
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains(expected), "{said}");
}

fn assert_fails(ended: CallEnd, expected: &str) {
    let CallEnd::Error(-32603, why) = &ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains(expected), "{why}");
}

/// An event, the cells in which it is possible, and its scenario.
pub(super) struct ScenarioEvent {
    pub(super) name: &'static str,
    pub(super) is_possible: fn(Cell) -> bool,
    pub(super) scenario: ScenarioFn,
}

/// A scenario in a cell.
type ScenarioFn = fn(Cell) -> Scenario;

const fn event(name: &'static str, scenario: ScenarioFn) -> ScenarioEvent {
    ScenarioEvent {
        name,
        is_possible: |_| true,
        scenario,
    }
}

/// An event for servers with tasks.
const fn event_of_tasks(name: &'static str, scenario: ScenarioFn) -> ScenarioEvent {
    ScenarioEvent {
        is_possible: |cell| cell.server.has_tasks(),
        ..event(name, scenario)
    }
}

pub(super) const EVENTS: [ScenarioEvent; 26] = [
    event("completed", |cell| {
        Box::pin(outcome(cell, "echo", accepting))
    }),
    event("tool error", |cell| {
        Box::pin(outcome(cell, "fails", accepting))
    }),
    event("protocol error", |cell| {
        Box::pin(outcome(cell, "broken", accepting))
    }),
    event("one input", |cell| {
        Box::pin(outcome(cell, "ask", accepting))
    }),
    event("input before the work", |cell| {
        Box::pin(outcome(cell, "first", accepting))
    }),
    event("two parallel inputs", |cell| {
        Box::pin(outcome(cell, "two", accepting))
    }),
    event("input after a while", |cell| {
        Box::pin(outcome(cell, "late", accepting))
    }),
    event("input refused", |cell| {
        Box::pin(outcome(cell, "ask", declining))
    }),
    event("sampling", |cell| {
        Box::pin(outcome(cell, "think", accepting))
    }),
    event("roots", |cell| Box::pin(outcome(cell, "roots", accepting))),
    event("read-only", |cell| {
        Box::pin(outcome(cell, "reads", accepting))
    }),
    event_of_tasks("tool that runs only as a task", |cell| {
        Box::pin(only_as_a_task(cell))
    }),
    event("slow server", |cell| Box::pin(slow(cell))),
    event("cancel at once", |cell| Box::pin(cancelled_at_once(cell))),
    event("cancel under way", |cell| {
        Box::pin(cancelled_under_way(cell))
    }),
    event("cancel after the end", |cell| {
        Box::pin(cancelled_too_late(cell))
    }),
    event("expiry", |cell| Box::pin(expired(cell))),
    event_of_tasks("expiry at the server", |cell| {
        Box::pin(expired_at_the_server(cell))
    }),
    event("server crash", |cell| Box::pin(server_dies(cell))),
    event("server crash, read-only", |cell| {
        Box::pin(server_dies_reading(cell))
    }),
    event("client disconnect", |cell| Box::pin(client_leaves(cell))),
    event("gateway restart", |cell| {
        Box::pin(gateway_restarts(cell, "gated", false))
    }),
    event("gateway restart, read-only", |cell| {
        Box::pin(gateway_restarts(cell, "reads", true))
    }),
    event("gateway restart after the end", |cell| {
        Box::pin(gateway_restarts_later(cell))
    }),
    event("duplicate polls", |cell| Box::pin(polls_twice(cell))),
    event("lost notifications", |cell| {
        Box::pin(notifications_lost(cell))
    }),
];
