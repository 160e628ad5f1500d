//! Events that depend on time, transport or the caller's timing, in every cell.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::Target;
use outlast::gateway::Settings;
use outlast::server::McpServer;
use outlast::task::Policy;
use outlast::task::TtlPolicy;
use outlast::transport::duplex;
use outlast::transport::link::{Incoming, Link};
use outlast_testkit::mcp::caller::{self, CLIENT_KINDS, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::caller::connect;
use crate::cell::{SERVER_KINDS, ServerKind};
use crate::gate::Gate;
use crate::harness::{Harness, HarnessOptions, quick};

/// Starts a call that waits at the gate, and returns its task or ticket.
async fn task_of(caller: &mut Caller, gate: &Gate) -> Value {
    let begun = caller.begin(json!({ "name": "gated" })).await;
    gate.until_waiting(1).await;
    json!({ "taskId": task_in(&begun) })
}

/// The task in the first response to a call: a V1 or V2 task, or a ticket.
pub(crate) fn task_in(begun: &Value) -> &str {
    caller::task_in(begun).unwrap_or_else(|| panic!("{begun}"))
}

/// The params of a call of a ticket tool.
pub(crate) fn ticket_tool_params(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// A gateway whose clients without tasks get tickets after 200 ms.
pub(crate) fn with_tickets() -> Settings {
    quick().with_wait_budget(Duration::from_millis(200))
}

#[tokio::test]
async fn an_expired_task_does_not_exist_in_every_cell() {
    // A task that expired after its end is not found.
    let mut cells = JoinSet::new();
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            cells.spawn(check_expiry(kind, server));
        }
    }
    while let Some(cell) = cells.join_next().await {
        cell.unwrap();
    }
}

async fn check_expiry(kind: ClientKind, server: ServerKind) {
    let plan = HarnessOptions {
        settings: short_lived(),
        behind: outlast::gateway::policy(),
        ..HarnessOptions::default()
    };
    let harness = Harness::with_options(server, plan).await;
    let mut caller = connect(kind, &harness.mcp_server).await;
    expires_after_its_ttl(
        &mut caller,
        &harness.gate,
        &format!("{kind:?} → {server:?}"),
    )
    .await;
}

/// A gateway with a short TTL.
pub(crate) fn short_lived() -> Settings {
    let mut settings = with_tickets();
    settings.tool_defaults.ttl = Some(Duration::from_secs(3));
    settings
}

/// Calls a tool at a gateway with [`short_lived`] settings, fetches the result, and finds no task
/// after the TTL.
pub(crate) async fn expires_after_its_ttl(caller: &mut Caller, gate: &Gate, cell: &str) {
    let kind = caller.kind;
    let task = task_of(caller, gate).await;
    // BR-TTL-3: a running task does not expire.
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    gate.until_waiting(1).await;
    gate.add_permits(1);
    let fetched = match kind {
        ClientKind::V1 => caller.request("tasks/result", task.clone()).await,
        ClientKind::V2 => until_completed(caller, &task).await,
        _ => match caller.wait(&task).await {
            CallEnd::Result(result) => result,
            other => panic!("{cell}: {other:?}"),
        },
    };
    assert!(fetched.to_string().contains("through"), "{cell}: {fetched}");
    tokio::time::sleep(Duration::from_millis(4_000)).await;
    let methods: &[&str] = match kind {
        ClientKind::V1 => &["tasks/get", "tasks/result", "tasks/cancel"],
        ClientKind::V2 => &["tasks/get", "tasks/update", "tasks/cancel"],
        _ => &["task_status", "task_wait", "task_cancel"],
    };
    for method in methods {
        let gone = match kind {
            ClientKind::V1 => caller.request(method, task.clone()).await,
            ClientKind::V2 => {
                let mut params = task.clone();
                params["inputResponses"] = json!({});
                caller.request(method, params).await
            }
            _ => {
                caller
                    .request("tools/call", ticket_tool_params(method, &task))
                    .await
            }
        };
        assert_eq!(gone["error"]["code"], -32602, "{cell}: {method}: {gone}");
    }
}

async fn until_completed(caller: &mut Caller, task: &Value) -> Value {
    let completed = |now: &Value| now["status"] == "completed";
    caller.until(task, completed).await
}

#[tokio::test]
async fn a_task_expired_at_its_server_fails_in_every_cell() {
    // BR-TTL-3: the upstream does not find its task before it has an outcome.
    for server in [ServerKind::V1, ServerKind::V2] {
        for kind in CLIENT_KINDS {
            let plan = HarnessOptions {
                behind: Policy::default()
                    .with_ttl_policy(TtlPolicy::Strict)
                    .with_default_ttl(Duration::from_millis(500))
                    .with_max_ttl(Duration::from_millis(500))
                    .with_poll_interval(Duration::from_millis(100)),
                ..HarnessOptions::default()
            };
            let harness = Harness::with_options(server, plan).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let call = caller.call("keeps", json!({}));
            let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
            let ended = ended.unwrap();
            let CallEnd::Error(-32603, why) = ended else {
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
async fn a_caller_that_waits_at_expiry_gets_the_expiry_error() {
    // BR-TTL-5, V1-ERR-8: whatever the upstream sends at that moment.
    let strict = || {
        Policy::default()
            .with_ttl_policy(TtlPolicy::Strict)
            .with_poll_interval(Duration::from_millis(100))
    };
    for server in SERVER_KINDS {
        let plan = HarnessOptions {
            behind: strict(),
            policy: strict(),
            ..HarnessOptions::default()
        };
        let harness = Harness::with_options(server, plan).await;
        let mut caller = connect(ClientKind::V1, &harness.mcp_server).await;
        let call = json!({ "name": "gated", "task": { "ttl": 1_500 } });
        let begun = caller.request("tools/call", call).await;
        let task = json!({ "taskId": task_in(&begun) });
        let waited = caller.request("tasks/result", task.clone()).await;
        assert_eq!(waited["error"]["code"], -32602, "{server:?}: {waited}");
        let got = caller.request("tasks/get", task).await;
        assert_eq!(got["error"]["code"], -32602, "{server:?}: {got}");
    }
}

/// A target that loses all notifications of the server.
fn target_without_notifications(mcp_server: Arc<McpServer>) -> Target {
    Target::other("lossy", move || {
        Ok(without_notifications(duplex::to_server(mcp_server.clone())))
    })
}

/// The connection without notifications of the server.
pub(crate) fn without_notifications(mut link: Link) -> Link {
    let (sender, incoming) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(said) = link.incoming.recv().await {
            let is_notification = match &said {
                Incoming::Message { line, .. } => {
                    let message: Value = serde_json::from_slice(line).unwrap();
                    message.get("id").is_none()
                }
                Incoming::Failed { .. } | Incoming::Closed(_) => false,
            };
            if !is_notification && sender.send(said).await.is_err() {
                return;
            }
        }
    });
    Link::new(link.outgoing, incoming)
}

#[tokio::test(start_paused = true)]
async fn no_notification_is_needed_in_any_cell() {
    // V1-NOTIF-2: polling is sufficient when notifications are lost. The clients here
    // have no streams.
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            let plan = HarnessOptions {
                way: target_without_notifications,
                ..HarnessOptions::default()
            };
            let harness = Harness::with_options(server, plan).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let gate = harness.gate.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(7)).await;
                gate.add_permits(1);
            });
            for (tool, expected) in [("gated", "through"), ("late", "Ada/Still there?")] {
                let ended = caller.call(tool, json!({})).await;
                let CallEnd::Result(result) = ended else {
                    panic!("{kind:?} → {server:?}: {ended:?}");
                };
                let said = result["content"][0]["text"].as_str().unwrap();
                assert!(said.contains(expected), "{kind:?} → {server:?}: {said}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn duplicate_polls_return_the_same_in_every_cell() {
    // BR-GEN-8.
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            let harness = Harness::with(server, with_tickets()).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let cell = format!("{kind:?} → {server:?}");
            three_polls_return_the_same(&mut caller, &harness.gate, &cell).await;
        }
    }
}

/// Calls a tool at a gateway [`with_tickets`] and polls three times concurrently.
pub(crate) async fn three_polls_return_the_same(caller: &mut Caller, gate: &Gate, cell: &str) {
    let kind = caller.kind;
    let task = task_of(caller, gate).await;
    let (method, params) = match kind {
        ClientKind::V1 => ("tasks/result", task.clone()),
        ClientKind::V2 => ("tasks/get", task.clone()),
        _ => ("tools/call", ticket_tool_params("task_wait", &task)),
    };
    // Concurrently, and before the call ends.
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(caller.send(method, params.clone()).await);
    }
    gate.add_permits(3);
    let mut answers = Vec::new();
    if kind == ClientKind::V2 {
        until_completed(caller, &task).await;
        for _ in 0..3 {
            ids.push(caller.send(method, params.clone()).await);
        }
    }
    for id in ids {
        let mut answer = caller.response_to(id).await;
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
