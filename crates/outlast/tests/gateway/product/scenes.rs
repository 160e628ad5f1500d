//! What can happen to a call, played in one cell: each scene makes a place of its own and panics where something is not as it
//! should be.

use std::time::Duration;

use outlast::engine::Policy;
use outlast::engine::task::TtlPolicy;
use outlast_testkit::mcp::caller::{Answers, Caller, Ending, Kind, accepting, declining};
use outlast_testkit::mcp::entrance::Way;
use outlast_testkit::within;
use serde_json::{Value, json};

use super::place::{Place, Plan};
use crate::caller::connect;
use crate::cell::{Cell, Fate};
use crate::events::{
    finds_the_same_three_times, helper, is_gone_after_its_time, short_lived, task_in, with_tickets,
};
use crate::playing::Scene;

/// The result is the one that a caller without a gateway gets.
pub(super) async fn outcome(cell: Cell, tool: &str, answers: Answers) {
    let place = Place::new(cell).await;
    let mut direct = connect(Kind::PlainLegacy, &place.direct()).await;
    direct.answers = answers;
    let expected = direct.call(tool, json!({ "say": "x" })).await;
    let mut caller = place.caller().await;
    caller.answers = answers;
    assert_eq!(caller.call(tool, json!({ "say": "x" })).await, expected);
}

/// A tool that runs only as a task (BR-CREATE-7).
pub(super) async fn only_as_a_task(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    assert_says(caller.call("must", json!({})).await, "done");
}

pub(super) async fn slow(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    place.opens_later();
    assert_says(caller.call("gated", json!({})).await, "through");
    assert_eq!(place.gate.runs(), 1);
}

/// Nothing that the server says without being asked arrives.
pub(super) async fn notifications_lost(cell: Cell) {
    let plan = Plan {
        lossy: true,
        ..Plan::default()
    };
    let place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    place.opens_later();
    assert_says(caller.call("gated", json!({})).await, "through");
    assert_says(caller.call("late", json!({})).await, "Ada/Still there?");
}

pub(super) async fn polls_twice(cell: Cell) {
    let plan = Plan {
        settings: with_tickets(),
        ..Plan::default()
    };
    let place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    finds_the_same_three_times(&mut caller, &place.gate, "").await;
    assert_eq!(place.gate.runs(), 1);
}

/// Cancelled as soon as the client can.
pub(super) async fn cancelled_at_once(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let id = caller.send("tools/call", called(cell, "gated")).await;
    if (cell.client, cell.front) == (Kind::PlainLegacy, Way::Http) {
        // Two requests on two connections have no order.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    caller.cancel(id).await;
    // Long enough for a call that nobody stopped to begin.
    tokio::time::sleep(Duration::from_millis(500)).await;
    place.gate.until_waiting(0).await;
}

pub(super) async fn cancelled_under_way(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let id = caller.send("tools/call", called(cell, "gated")).await;
    place.gate.until_waiting(1).await;
    caller.cancel(id).await;
    place.gate.until_waiting(0).await;
}

/// Cancelled when it has ended: that changes nothing (BR-CAN-3, BR-CAN-10).
pub(super) async fn cancelled_too_late(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let id = caller.send("tools/call", called(cell, "gated")).await;
    place.gate.until_waiting(1).await;
    if !cell.client.has_tasks() {
        place.gate.open();
        let answer = caller.answer_to(id).await;
        if (cell.client, cell.front) != (Kind::PlainModern, Way::Http) {
            let cancelled = json!({ "requestId": id, "reason": "too late" });
            caller.notify("notifications/cancelled", cancelled).await;
        }
        return assert_says(caller.finish(json!({}), answer).await, "through");
    }
    let begun = caller.answer_to(id).await;
    place.gate.open();
    let task = json!({ "taskId": task_in(&begun) });
    assert_says(caller.finish(json!({}), begun).await, "through");
    let late = caller.request("tasks/cancel", task.clone()).await;
    match cell.client {
        Kind::V1 => assert_eq!(late["error"]["code"], -32602, "{late}"),
        _ => assert!(late.get("error").is_none(), "{late}"),
    }
    let got = caller.request("tasks/get", task).await;
    assert_eq!(got["result"]["status"], "completed", "{got}");
}

/// Tasks whose time is over are gone.
pub(super) async fn expired(cell: Cell) {
    let plan = Plan {
        settings: short_lived(),
        behind: outlast::gateway::policy(),
        ..Plan::default()
    };
    let place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    is_gone_after_its_time(&mut caller, &place.gate, "").await;
}

/// The server forgets its task before it has ended (BR-TTL-3).
pub(super) async fn expired_at_the_server(cell: Cell) {
    let plan = Plan {
        behind: Policy {
            ttl_policy: TtlPolicy::Strict,
            default_ttl_ms: 2_000,
            max_ttl_ms: 2_000,
            poll_interval_ms: 100,
            ..Policy::default()
        },
        ..Plan::default()
    };
    let place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    assert_fails(caller.call("keeps", json!({})).await, "lost upstream");
}

/// The server dies under a call that may not be repeated (BR-GEN-7).
pub(super) async fn server_dies(cell: Cell) {
    let mut place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let calling = tokio::spawn(async move { caller.call("gated", json!({})).await });
    place.gate.until_waiting(1).await;
    // The call may have become a task by then, or not yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    place.crash_server().await;
    place.gate.open();
    let ended = calling.await.unwrap();
    let Ending::Error(-32603, why) = &ended else {
        panic!("{ended:?}");
    };
    let honest = why.contains("unknown") || why.contains("lost upstream");
    assert!(honest, "{why}");
    assert_eq!(place.gate.runs(), 1);
}

/// The server dies under a call that only reads.
pub(super) async fn server_dies_reading(cell: Cell) {
    let mut place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let calling = tokio::spawn(async move { caller.call("reads", json!({ "wait": 1 })).await });
    place.gate.until_waiting(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    place.crash_server().await;
    place.gate.open();
    assert_says(calling.await.unwrap(), "read");
    assert_eq!(place.gate.runs(), 2);
}

/// The client loses its way while its call runs, and comes back.
pub(super) async fn client_leaves(cell: Cell) {
    let place = Place::new(cell).await;
    let mut caller = place.caller().await;
    let id = caller.send("tools/call", called(cell, "gated")).await;
    let begun = if cell.client.has_tasks() {
        caller.answer_to(id).await
    } else {
        Value::Null
    };
    place.gate.until_waiting(1).await;
    // Long enough to be stored, and for a server that makes tasks of its own to have made one.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    caller.fall_silent();
    if cell.client == Kind::PlainModern {
        // BR-CAN-7: its stream was all it had.
        return place.gate.until_waiting(0).await;
    }
    // BR-CAN-8.
    tokio::time::sleep(Duration::from_millis(300)).await;
    place.gate.until_waiting(1).await;
    place.gate.add_permits(1);
    caller.come_back(&place.entrance).await;
    let ended = match cell.client {
        Kind::PlainLegacy => {
            let task = found(&mut caller).await;
            caller.wait(&task).await
        }
        _ => caller.finish(json!({}), begun).await,
    };
    assert_says(ended, "through");
    assert_eq!(place.gate.runs(), 1);
}

/// The gateway ends while a call runs, and begins again.
pub(super) async fn gateway_restarts(cell: Cell, tool: &str, may_repeat: bool) {
    let plan = Plan {
        settings: with_tickets(),
        ..Plan::default()
    };
    let mut place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    let params = json!({ "name": tool, "arguments": { "wait": 1 } });
    let begun = caller.begin(params).await;
    place.gate.until_waiting(1).await;
    let fate = cell.fate(may_repeat);
    if fate == Fate::GoesOn {
        place.until_attached(task_in(&begun)).await;
    }
    caller.fall_silent();
    place.restart_gateway().await;
    caller.come_back(&place.entrance).await;
    place.gate.open();
    let ended = ending_of(&mut caller, begun).await;
    let (expected, runs) = match fate {
        Fate::GoesOn => (Some(tool), 1),
        Fate::RunsAgain => (Some(tool), 2),
        Fate::Unknown => (None, 1),
    };
    match expected {
        Some("gated") => assert_says(ended, "through"),
        Some(_) => assert_says(ended, "read"),
        None => assert_fails(ended, "unknown"),
    }
    assert_eq!(place.gate.runs(), runs);
}

/// The gateway ends after a call has.
pub(super) async fn gateway_restarts_later(cell: Cell) {
    let plan = Plan {
        settings: with_tickets(),
        ..Plan::default()
    };
    let mut place = Place::planned(cell, plan).await;
    let mut caller = place.caller().await;
    let begun = caller.begin(json!({ "name": "gated" })).await;
    place.gate.open();
    has_ended(&mut caller, &json!({ "taskId": task_in(&begun) })).await;
    caller.fall_silent();
    place.restart_gateway().await;
    caller.come_back(&place.entrance).await;
    assert_says(ending_of(&mut caller, begun).await, "through");
    assert_eq!(place.gate.runs(), 1);
}

impl Place {
    /// Lets one call go on after a while.
    fn opens_later(&self) {
        let gate = self.gate.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            gate.add_permits(1);
        });
    }
}

/// What a client of that kind calls a tool with.
fn called(cell: Cell, tool: &str) -> Value {
    let mut params = json!({ "name": tool });
    if cell.client == Kind::V1 {
        params["task"] = json!({});
    }
    params
}

/// Drives a call to its end from its first answer, which names a task or is a ticket.
async fn ending_of(caller: &mut Caller, begun: Value) -> Ending {
    if caller.kind.has_tasks() {
        caller.finish(json!({}), begun).await
    } else {
        let task = json!({ "taskId": task_in(&begun) });
        caller.wait(&task).await
    }
}

/// The only task there is, as a client finds it that was told of none.
async fn found(caller: &mut Caller) -> Value {
    let status = helper("task_status", &json!({}));
    let all = caller.request("tools/call", status).await;
    let tasks = all["result"]["structuredContent"]["tasks"].as_array();
    let [task] = &tasks.unwrap_or_else(|| panic!("{all}"))[..] else {
        panic!("{all}");
    };
    json!({ "taskId": task["taskId"] })
}

/// Looks until a task has ended, without fetching its result where that is another request.
async fn has_ended(caller: &mut Caller, task: &Value) {
    let ended = async {
        loop {
            let got = if caller.kind.has_tasks() {
                caller.request("tasks/get", task.clone()).await
            } else {
                let status = helper("task_status", task);
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

fn assert_says(ended: Ending, expected: &str) {
    let Ending::Result(result) = &ended else {
        panic!("{ended:?}");
    };
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains(expected), "{said}");
}

fn assert_fails(ended: Ending, expected: &str) {
    let Ending::Error(-32603, why) = &ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains(expected), "{why}");
}

/// What happens, where it can, and the scene in which it does.
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) can_happen: fn(Cell) -> bool,
    pub(super) scene: In,
}

/// A scene in a cell.
type In = fn(Cell) -> Scene;

const fn event(name: &'static str, scene: In) -> Event {
    Event {
        name,
        can_happen: |_| true,
        scene,
    }
}

/// The same for servers that have tasks.
const fn event_of_tasks(name: &'static str, scene: In) -> Event {
    Event {
        can_happen: |cell| cell.server.has_tasks(),
        ..event(name, scene)
    }
}

pub(super) const EVENTS: [Event; 26] = [
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
