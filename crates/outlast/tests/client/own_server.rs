//! Our server in this process with our client: every outcome, and an input request.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Client, Target, TaskPreference};
use outlast::server::McpServer;
use outlast::task::Outcome;
use outlast::wire::Status;
use outlast::{Server, TaskSupport, Tool, text};
use serde_json::json;

use crate::harness::{raw, result_text, with_inbox};

pub(crate) async fn server() -> Arc<McpServer> {
    let slow = Tool::new("slow", "takes its time", |_, cx| async move {
        for step in 1..=3 {
            cx.progress(step.into(), 3.0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(text("done"))
    });
    let fail = Tool::new(
        "fail",
        "fails",
        |_, _| async move { Err("it broke".into()) },
    );
    let endless = Tool::new("endless", "never ends", |_, _| std::future::pending());
    let ask = Tool::new("ask", "asks for a name", |_, cx| async move {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let answer = cx.elicit_raw(form).await?;
        Ok(text(format!(
            "{} {}",
            answer["action"], answer["content"]["name"]
        )))
    });
    let tools = [slow, fail, endless, ask].map(|tool| tool.task(TaskSupport::Optional));
    let server = Server::builder("ours", "1").tools(tools).build();
    server.start().await.unwrap().mcp().clone()
}

/// Every outcome, over the connection of `target`.
pub(crate) async fn every_outcome(target: Target) {
    let (inbox, options) = with_inbox();
    let client = Client::connect(target, options.with_server_name("ours"))
        .await
        .unwrap();
    for preference in [TaskPreference::Require, TaskPreference::Forbid] {
        let call = client.call_tool("slow", ()).task(preference).await.unwrap();
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
        assert_eq!(call.status().progress.unwrap().total, Some(3.0));
        assert_eq!(
            call.status().task.is_some(),
            preference == TaskPreference::Require
        );
        let call = client.call_tool("fail", ()).task(preference).await.unwrap();
        assert!(
            matches!(call.outcome().await, Ok(Outcome::ToolError(_, Some(why))) if why.contains("it broke"))
        );
        let call = client.call_tool("ask", ()).task(preference).await.unwrap();
        let item = inbox.first().await;
        assert_eq!(
            item.request.task.is_some(),
            preference == TaskPreference::Require
        );
        let name = json!({ "action": "accept", "content": { "name": "Ann" } });
        inbox.respond(item.id, raw(name)).unwrap();
        assert_eq!(
            result_text(&call.outcome().await.unwrap()),
            r#""accept" "Ann""#
        );
        let call = client
            .call_tool("endless", ())
            .task(preference)
            .await
            .unwrap();
        if preference == TaskPreference::Require {
            call.task().await.unwrap();
        }
        assert_eq!(call.cancel().await, Ok(()));
        assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    }
    let call = client.call_tool("nonsense", ()).await.unwrap();
    assert!(matches!(call.outcome().await, Ok(Outcome::Error(_, code, _)) if code.0 == -32602));
    let tasks = client.list_tasks().await.unwrap();
    let count = |status| tasks.iter().filter(|task| task.status == status).count();
    assert_eq!(
        (
            count(Status::Completed),
            count(Status::Failed),
            count(Status::Cancelled)
        ),
        (2, 1, 1)
    );
    client.close().await;
}

#[tokio::test]
async fn every_outcome_of_our_server_in_this_process() {
    every_outcome(Target::in_process(server().await)).await;
}
