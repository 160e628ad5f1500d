//! Events of bridge §17 in which time, the way or the caller's haste plays a part, in every cell.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::Target;
use outlast::engine::Policy;
use outlast::engine::task::TtlPolicy;
use outlast::gateway::Settings;
use outlast::server::McpServer;
use outlast::transport::duplex;
use outlast::transport::link::{Incoming, Link};
use outlast_testkit::mcp::caller::{self, Caller, Ending, KINDS, Kind};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::caller::connect;
use crate::cell::{SERVERS, Server};
use crate::gate::Gate;
use crate::upstream::{Plan, Stage, quick};

/// Begins a call that waits at the gate, as the client does when it does not wait itself: a task, or a ticket.
async fn task_of(caller: &mut Caller, gate: &Gate) -> Value {
    let begun = caller.begin(json!({ "name": "gated" })).await;
    gate.until_waiting(1).await;
    json!({ "taskId": task_in(&begun) })
}

/// The task that the first answer to a call names, as a client of either generation or in a ticket.
pub(crate) fn task_in(begun: &Value) -> &str {
    caller::task_in(begun).unwrap_or_else(|| panic!("{begun}"))
}

/// What a client without tasks is told by one of the helper tools.
pub(crate) fn helper(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// A gateway whose clients without tasks get their tickets soon.
pub(crate) fn with_tickets() -> Settings {
    Settings {
        budget: Some(Duration::from_millis(200)),
        ..quick()
    }
}

#[tokio::test]
async fn a_task_whose_time_is_over_is_not_there_any_more_in_every_cell() {
    // Bridge §17: TTL expiry, after the end; bridge §12: expired is unknown.
    let mut cells = JoinSet::new();
    for server in SERVERS {
        for kind in KINDS {
            cells.spawn(expires(kind, server));
        }
    }
    while let Some(cell) = cells.join_next().await {
        cell.unwrap();
    }
}

async fn expires(kind: Kind, server: Server) {
    let plan = Plan {
        settings: short_lived(),
        behind: outlast::gateway::policy(),
        ..Plan::default()
    };
    let stage = Stage::planned(server, plan).await;
    let mut caller = connect(kind, &stage.front).await;
    is_gone_after_its_time(&mut caller, &stage.gate, &format!("{kind:?} → {server:?}")).await;
}

/// A gateway that keeps tasks for a moment only.
pub(crate) fn short_lived() -> Settings {
    let mut settings = with_tickets();
    settings.every_tool.ttl = Some(3_000);
    settings
}

/// Calls a tool at a gateway that is [`short_lived`], fetches the result, and finds nothing later.
pub(crate) async fn is_gone_after_its_time(caller: &mut Caller, gate: &Gate, cell: &str) {
    let kind = caller.kind;
    let task = task_of(caller, gate).await;
    // BR-TTL-3: it is kept while it runs.
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    gate.until_waiting(1).await;
    gate.add_permits(1);
    let fetched = match kind {
        Kind::V1 => caller.request("tasks/result", task.clone()).await,
        Kind::V2 => until_completed(caller, &task).await,
        _ => match caller.wait(&task).await {
            Ending::Result(result) => result,
            other => panic!("{cell}: {other:?}"),
        },
    };
    assert!(fetched.to_string().contains("through"), "{cell}: {fetched}");
    tokio::time::sleep(Duration::from_millis(4_000)).await;
    let asked: &[&str] = match kind {
        Kind::V1 => &["tasks/get", "tasks/result", "tasks/cancel"],
        Kind::V2 => &["tasks/get", "tasks/update", "tasks/cancel"],
        _ => &["task_status", "task_wait", "task_cancel"],
    };
    for method in asked {
        let gone = match kind {
            Kind::V1 => caller.request(method, task.clone()).await,
            Kind::V2 => {
                let mut params = task.clone();
                params["inputResponses"] = json!({});
                caller.request(method, params).await
            }
            _ => caller.request("tools/call", helper(method, &task)).await,
        };
        assert_eq!(gone["error"]["code"], -32602, "{cell}: {method}: {gone}");
    }
}

async fn until_completed(caller: &mut Caller, task: &Value) -> Value {
    let completed = |now: &Value| now["status"] == "completed";
    caller.until(task, completed).await
}

#[tokio::test]
async fn a_call_whose_task_expires_at_its_server_has_failed_in_every_cell() {
    // Bridge §17: TTL expiry; bridge §6: "not found / expired before an outcome", BR-TTL-3.
    for server in [Server::V1, Server::V2] {
        for kind in KINDS {
            let plan = Plan {
                behind: Policy {
                    ttl_policy: TtlPolicy::Strict,
                    default_ttl_ms: 500,
                    max_ttl_ms: 500,
                    poll_interval_ms: 100,
                    ..Policy::default()
                },
                ..Plan::default()
            };
            let stage = Stage::planned(server, plan).await;
            let mut caller = connect(kind, &stage.front).await;
            let call = caller.call("keeps", json!({}));
            let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
            let ended = ended.unwrap();
            let Ending::Error(-32603, why) = ended else {
                panic!("{kind:?} → {server:?}: {ended:?}");
            };
            assert!(
                why.contains("lost upstream"),
                "{kind:?} → {server:?}: {why}"
            );
        }
    }
}

#[tokio::test]
async fn a_caller_that_waits_at_expiry_is_told_that_the_task_expired() {
    // BR-TTL-5, V1-ERR-8: whatever the server behind says at that moment.
    let strict = || Policy {
        ttl_policy: TtlPolicy::Strict,
        poll_interval_ms: 100,
        ..Policy::default()
    };
    for server in SERVERS {
        let plan = Plan {
            behind: strict(),
            policy: strict(),
            ..Plan::default()
        };
        let stage = Stage::planned(server, plan).await;
        let mut caller = connect(Kind::V1, &stage.front).await;
        let call = json!({ "name": "gated", "task": { "ttl": 1_500 } });
        let begun = caller.request("tools/call", call).await;
        let task = json!({ "taskId": task_in(&begun) });
        let waited = caller.request("tasks/result", task.clone()).await;
        assert_eq!(waited["error"]["code"], -32602, "{server:?}: {waited}");
        let got = caller.request("tasks/get", task).await;
        assert_eq!(got["error"]["code"], -32602, "{server:?}: {got}");
    }
}

/// A way on which whatever a server says without being asked is lost.
fn lossy(front: Arc<McpServer>) -> Target {
    Target::other("lossy", move || Ok(deaf(duplex::to_front(front.clone()))))
}

/// The same connection, without notifications of the server.
pub(crate) fn deaf(mut link: Link) -> Link {
    let (tell, incoming) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(said) = link.incoming.recv().await {
            let is_notification = match &said {
                Incoming::Message { line, .. } => {
                    let message: Value = serde_json::from_slice(line).unwrap();
                    message.get("id").is_none()
                }
                Incoming::Failed { .. } | Incoming::Closed(_) => false,
            };
            if !is_notification && tell.send(said).await.is_err() {
                return;
            }
        }
    });
    Link::new(link.outgoing, incoming)
}

#[tokio::test(start_paused = true)]
async fn no_notification_is_needed_in_any_cell() {
    // Bridge §17: notification loss; V1-NOTIF-2, V2-NOTIF: polls find everything. The callers here never listen.
    for server in SERVERS {
        for kind in KINDS {
            let plan = Plan {
                way: lossy,
                ..Plan::default()
            };
            let stage = Stage::planned(server, plan).await;
            let mut caller = connect(kind, &stage.front).await;
            let gate = stage.gate.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(7)).await;
                gate.add_permits(1);
            });
            for (tool, expected) in [("gated", "through"), ("late", "Ada/Still there?")] {
                let ended = caller.call(tool, json!({})).await;
                let Ending::Result(result) = ended else {
                    panic!("{kind:?} → {server:?}: {ended:?}");
                };
                let said = result["content"][0]["text"].as_str().unwrap();
                assert!(said.contains(expected), "{kind:?} → {server:?}: {said}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn polls_that_come_twice_find_the_same_and_run_nothing_twice_in_every_cell() {
    // Bridge §17: duplicate polls; BR-GEN-8.
    for server in SERVERS {
        for kind in KINDS {
            let stage = Stage::with(server, with_tickets()).await;
            let mut caller = connect(kind, &stage.front).await;
            let cell = format!("{kind:?} → {server:?}");
            finds_the_same_three_times(&mut caller, &stage.gate, &cell).await;
        }
    }
}

/// Calls a tool at a gateway [`with_tickets`] and asks three times at once how it ended.
pub(crate) async fn finds_the_same_three_times(caller: &mut Caller, gate: &Gate, cell: &str) {
    let kind = caller.kind;
    let task = task_of(caller, gate).await;
    let (method, params) = match kind {
        Kind::V1 => ("tasks/result", task.clone()),
        Kind::V2 => ("tasks/get", task.clone()),
        _ => ("tools/call", helper("task_wait", &task)),
    };
    // All at once, and before anything has happened.
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(caller.send(method, params.clone()).await);
    }
    gate.add_permits(3);
    let mut answers = Vec::new();
    if kind == Kind::V2 {
        until_completed(caller, &task).await;
        for _ in 0..3 {
            ids.push(caller.send(method, params.clone()).await);
        }
    }
    for id in ids {
        let mut answer = caller.answer_to(id).await;
        answer.as_object_mut().unwrap().remove("id");
        answers.push(answer);
    }
    let last = answers.split_off(answers.len() - 3);
    assert!(
        last.iter().all(|answer| *answer == last[0]),
        "{cell}: {last:?}"
    );
    assert!(last[0].to_string().contains("through"), "{cell}: {last:?}");
    gate.until_waiting(0).await;
    assert_eq!(gate.available_permits(), 2, "{cell}: it ran once");
}
