//! A workspace with real servers in this process, and with a scripted one where a server must
//! create tasks at its client.

use std::sync::Arc;

use outlast::client::{Answer, ConnectionName, Target};
use outlast::transport::duplex;
use outlast::wire::{Raw, Status};
use outlast::{Server, TaskSupport, Tool, text};
use outlast_testkit::mcp::{Line, ScriptedServer};
use outlast_testkit::{wait_for, within};
use serde_json::json;
use tokio::sync::Notify;

use super::*;

/// A server with tools that wait for `gate`, ask, and are quick.
async fn server(gate: &Arc<Notify>) -> Target {
    let gate = gate.clone();
    let gated = Tool::new("gated", "waits", move |_, cx| {
        let gate = gate.clone();
        async move {
            cx.progress(1.0, 2.0);
            gate.notified().await;
            Ok(text("open"))
        }
    });
    let quick = Tool::new("quick", "is quick", |_, _| async move { Ok(text("done")) });
    let fails = Tool::new(
        "fails",
        "fails",
        |_, _| async move { Err("it broke".into()) },
    );
    let ask = Tool::new("ask", "asks", |_, cx| async move {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let answer = cx.elicit_raw(form).await?;
        Ok(text(answer["action"].to_string()))
    });
    let tools = [gated, quick, fails, ask].map(|tool| tool.task(TaskSupport::Optional));
    let server = Server::builder("ours", "1").tools(tools).build();
    Target::in_process(server.start().await.unwrap().mcp().clone())
}

fn name() -> ConnectionName {
    ConnectionName::new("ours", "test")
}

async fn connected(target: Target) -> Workspace {
    let workspace = Workspace::new();
    let address = Address::Other("in this process".into(), target);
    workspace.add(ConnectionSpec::new(name(), address)).unwrap();
    is_open(&workspace).await;
    workspace
}

async fn is_open(workspace: &Workspace) {
    wait_for("the connection is open", async || {
        let view = workspace.connection_view(&name()).unwrap();
        (view.health == ConnectionHealth::Open).then_some(())
    })
    .await;
}

fn request(tool: &str, placement: Placement, key: &str) -> CallRequest {
    CallRequest {
        connection: name(),
        tool: tool.into(),
        arguments: Raw::empty_object(),
        placement,
        key: key.into(),
    }
}

const TASK: Placement = Placement::Task { ttl_ms: None };

async fn until(workspace: &Workspace, id: CallId, wanted: Status) -> CallView {
    wait_for("the call has the status", async || {
        let call = workspace.call_view(id).unwrap();
        (call.status == wanted).then_some(call)
    })
    .await
}

#[tokio::test]
async fn calls_run_inline_and_as_tasks_at_the_same_time() {
    // A running task never blocks another call.
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let long = workspace.call(request("gated", TASK, "")).unwrap();
    wait_for("the task exists", async || {
        workspace.call_view(long).unwrap().task.map(drop)
    })
    .await;
    let inline = workspace
        .call(request("quick", Placement::Inline, ""))
        .unwrap();
    let done = until(&workspace, inline, Status::Completed).await;
    assert!(done.task.is_none(), "{done:?}");
    assert!(matches!(done.outcome, Some(CallOutcome::Result(_))));
    let failed = workspace.call(request("fails", TASK, "")).unwrap();
    let failed = until(&workspace, failed, Status::Failed).await;
    assert!(matches!(failed.outcome, Some(CallOutcome::ToolError(_))));
    assert_eq!(workspace.call_view(long).unwrap().status, Status::Working);
    gate.notify_one();
    let done = until(&workspace, long, Status::Completed).await;
    assert_eq!(done.task.unwrap().status, Status::Completed);
    assert_eq!(workspace.calls().len(), 3);
    workspace.clear_calls(&name(), "quick");
    assert_eq!(workspace.calls().len(), 2);
}

#[tokio::test]
async fn a_double_click_makes_one_task() {
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let first = workspace.call(request("gated", TASK, "key")).unwrap();
    let second = workspace.call(request("gated", TASK, "key")).unwrap();
    assert_eq!(first, second);
    assert_eq!(workspace.calls().len(), 1);
    let other = workspace.call(request("gated", TASK, "other")).unwrap();
    assert_ne!(first, other);
}

#[tokio::test]
async fn a_cancelled_call_stays_cancelled() {
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let id = workspace.call(request("gated", TASK, "")).unwrap();
    let task = wait_for("the task exists", async || {
        workspace.call_view(id).unwrap().task
    })
    .await;
    let mut events = workspace.events();
    workspace.cancel_task(&name(), &task.id).await.unwrap();
    until(&workspace, id, Status::Cancelled).await;
    // No later event brings the task back.
    let mut has_ended = false;
    while let Ok(event) = events.try_recv() {
        if let WorkspaceEvent::TaskStatus(status) = event {
            has_ended |= status.status == "cancelled";
            assert!(!has_ended || status.status == "cancelled", "{status:?}");
        }
    }
    assert!(workspace.cancel_call(id).await.is_err());
}

#[tokio::test]
async fn an_elicitation_belongs_to_its_call_and_accepts_one_response() {
    // S1-8, S1-9, S1-88.
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let mut events = workspace.events();
    let id = workspace.call(request("ask", TASK, "")).unwrap();
    let item = wait_for("an item waits", async || {
        workspace.pending().into_iter().next()
    })
    .await;
    assert_eq!(item.call, Some(id), "{item:?}");
    assert!(!item.is_sampling());
    assert_eq!(
        workspace.call_view(id).unwrap().status,
        Status::InputRequired
    );
    let arrived = within("the event", async {
        loop {
            match events.recv().await {
                Ok(WorkspaceEvent::NewPendingElicitation(id)) => return id,
                other => drop(other.unwrap()),
            }
        }
    })
    .await;
    assert_eq!(arrived, item.id);
    assert_eq!(item.id.to_string().parse::<PendingId>().unwrap(), item.id);
    workspace
        .answer(item.id, Answer::Decline, Some("ada".into()))
        .unwrap();
    let late = workspace.answer(item.id, Answer::Cancel, Some("bob".into()));
    assert_eq!(
        late.unwrap_err().to_string(),
        "your answer was not sent: the request was already declined by ada"
    );
    let done = until(&workspace, id, Status::Completed).await;
    let Some(CallOutcome::Result(result)) = done.outcome else {
        panic!("{done:?}");
    };
    assert!(result.as_str().contains("decline"), "{result:?}");
    assert!(workspace.pending().is_empty());
    assert_eq!(workspace.departed(10).len(), 1);
    assert!(workspace.pending_item(item.id).unwrap().left.is_some());
}

#[tokio::test]
async fn an_input_request_does_not_outlive_its_call() {
    // S1-87: no loop of requests that nothing waits for.
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let id = workspace.call(request("ask", TASK, "")).unwrap();
    wait_for("an item waits", async || {
        workspace.pending().into_iter().next()
    })
    .await;
    workspace.cancel_call(id).await.unwrap();
    until(&workspace, id, Status::Cancelled).await;
    wait_for("no item waits", async || {
        workspace.pending().is_empty().then_some(())
    })
    .await;
    let left = workspace.departed(1).remove(0).left.unwrap();
    assert!(!removal_text(&left.0).is_empty());
}

#[tokio::test]
async fn calls_survive_a_reconnect() {
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let id = workspace.call(request("gated", TASK, "")).unwrap();
    wait_for("the task exists", async || {
        workspace.call_view(id).unwrap().task.map(drop)
    })
    .await;
    workspace.reconnect(&name(), None).unwrap();
    is_open(&workspace).await;
    assert_eq!(workspace.tools(&name()).await.unwrap().len(), 4);
    assert_eq!(workspace.call_view(id).unwrap().status, Status::Working);
    gate.notify_one();
    until(&workspace, id, Status::Completed).await;
}

#[tokio::test]
async fn modes_choose_era_and_tasks() {
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    for (mode, era, generation) in [
        (Mode::V1, "legacy", "v1"),
        (Mode::V2, "modern", "v2"),
        (Mode::Plain, "modern", "v2"),
    ] {
        workspace.reconnect(&name(), Some(mode)).unwrap();
        is_open(&workspace).await;
        let view = workspace.connection_view(&name()).unwrap();
        let server = view.server.unwrap();
        assert_eq!((server.era, server.generation.word()), (era, generation));
        assert!(view.declared.unwrap().as_str().contains("elicitation"));
        let id = workspace.call(request("quick", TASK, "")).unwrap();
        until(&workspace, id, Status::Completed).await;
    }
    assert!(workspace.ping(&name()).await.is_ok());
    assert!(workspace.connection_view(&name()).unwrap().ping.is_some());
}

#[tokio::test]
async fn a_connection_that_fails_says_why_and_what_to_do() {
    let workspace = Workspace::new();
    let command = Address::command("outlast-no-such-command --x").unwrap();
    workspace
        .add(ConnectionSpec::new(name(), command.clone()))
        .unwrap();
    let health = wait_for("the connection has failed", async || {
        let health = workspace.connection_view(&name()).unwrap().health;
        (health.word() == "failed").then_some(health)
    })
    .await;
    let ConnectionHealth::Failed { why, next } = health else {
        panic!("{health:?}");
    };
    assert!(why.contains("outlast-no-such-command"), "{why}");
    assert!(next.contains("spelling"), "{next}");
    let refused = workspace.call(request("x", TASK, "")).unwrap_err();
    assert!(
        refused.to_string().contains("is not connected"),
        "{refused}"
    );
    assert!(matches!(
        workspace.add(ConnectionSpec::new(name(), command)),
        Err(WorkspaceError::NameInUse(_))
    ));
    workspace.remove(&name()).unwrap();
    assert!(workspace.connections().is_empty());
}

#[tokio::test]
async fn messages_of_a_call_are_in_the_traffic() {
    let gate = Arc::new(Notify::new());
    let workspace = connected(server(&gate).await).await;
    let id = workspace.call(request("quick", TASK, "")).unwrap();
    until(&workspace, id, Status::Completed).await;
    let filter = crate::traffic::TrafficFilter {
        method: "tools/call".into(),
        ..Default::default()
    };
    let call = workspace.traffic().page(&filter, None, 10);
    assert_eq!(call.len(), 2, "{call:?}");
    assert!(
        call.iter()
            .all(|entry| entry.pair.is_some() && entry.version.is_some())
    );
}

/// A server that creates tasks at its client.
async fn scripted() -> (Workspace, ScriptedServer) {
    let (sender, mut servers) = tokio::sync::mpsc::unbounded_channel();
    let target = Target::other("scripted", move || {
        let (line, theirs) = Line::pair();
        let _ = sender.send(ScriptedServer::new(line));
        let (read, write) = tokio::io::split(theirs);
        Ok(duplex::over(read, write))
    });
    let workspace = Workspace::new();
    let mut spec = ConnectionSpec::new(name(), Address::Other("scripted".into(), target));
    spec.mode = Mode::V1;
    workspace.add(spec).unwrap();
    let mut server = within("a connection", servers.recv()).await.unwrap();
    server.welcome("2025-11-25", json!({})).await;
    is_open(&workspace).await;
    (workspace, server)
}

fn form() -> serde_json::Value {
    json!({ "message": "Who?", "requestedSchema": {}, "task": {} })
}

#[tokio::test]
async fn tasks_of_servers_are_hosted_unless_switched_off() {
    // S1-60, S1-61.
    let (workspace, mut server) = scripted().await;
    workspace.settings().set_task_ttl_ms(90_000);
    for (fails, status) in [(false, "completed"), (true, "failed")] {
        workspace.settings().set_decline_fails(fails);
        server
            .request(&"1".into(), "elicitation/create", form())
            .await;
        let task = server.response_to(&"1".into()).await["result"]["task"].clone();
        assert_eq!(task["ttl"], 90_000);
        let item = wait_for("an item waits", async || {
            workspace.pending().into_iter().next()
        })
        .await;
        let id = task["taskId"].as_str().unwrap();
        assert_eq!(item.request.hosted_task.as_deref(), Some(id));
        let hosted = workspace.hosted_tasks().await;
        let of_task: Vec<_> = hosted
            .iter()
            .filter(|hosted| hosted.task.id == id)
            .collect();
        assert_eq!(of_task[0].method, Some("elicitation/create"));
        workspace.answer(item.id, Answer::Decline, None).unwrap();
        let ended = wait_for("the task has ended", async || {
            let hosted = workspace.hosted_tasks().await;
            let found = hosted.into_iter().find(|hosted| hosted.task.id == id)?;
            found.task.status.is_terminal().then_some(found.task.status)
        })
        .await;
        assert_eq!(ended.as_str(), status);
    }
}

#[tokio::test]
async fn an_item_shows_a_cancelled_task_or_ended_connection() {
    let (workspace, mut server) = scripted().await;
    server
        .request(&"1".into(), "elicitation/create", form())
        .await;
    let task = server.response_to(&"1".into()).await["result"]["task"]["taskId"].clone();
    wait_for("an item waits", async || {
        workspace.pending().into_iter().next()
    })
    .await;
    workspace
        .cancel_task(&name(), task.as_str().unwrap())
        .await
        .unwrap();
    wait_for("no item waits", async || {
        workspace.pending().is_empty().then_some(())
    })
    .await;
    let why =
        |workspace: &Workspace| removal_text(&workspace.departed(1).remove(0).left.unwrap().0);
    assert_eq!(why(&workspace), "its task was cancelled");
    server
        .request(&"2".into(), "elicitation/create", form())
        .await;
    wait_for("an item waits", async || {
        workspace.pending().into_iter().next()
    })
    .await;
    drop(server);
    wait_for("no item waits", async || {
        workspace.pending().is_empty().then_some(())
    })
    .await;
    assert_eq!(why(&workspace), "the connection to the server ended");
}
