//! The client of rmcp 3.8, which is not part of this project, on stdio.

use std::sync::Arc;

use outlast::server::McpServer;
use outlast_testkit::wait_for;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, GetTaskParams, Implementation,
    ProtocolVersion, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{
    ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use tokio::io::BufReader;

use crate::harness::{Harness, name_response};

/// A client whose user always gives the same name.
struct NamingUser;

impl ClientHandler for NamingUser {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder()
            .enable_elicitation()
            .enable_tasks()
            .build();
        ClientConfig::new(can, Implementation::new("peer", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }
}

async fn connect(mcp_server: Arc<McpServer>) -> RunningService<RoleClient, NamingUser> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(async move {
        outlast::transport::stdio::serve_on(mcp_server, BufReader::new(read), write).await
    });
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    serve_client_with_lifecycle(NamingUser, ours, mode)
        .await
        .unwrap()
}

async fn task(client: &RunningService<RoleClient, NamingUser>, tool: &'static str) -> String {
    match client
        .call_tool_once(CallToolRequestParams::new(tool))
        .await
    {
        Ok(CallToolResponse::Task(created)) => created.task.task_id,
        other => panic!("{other:?} is no task"),
    }
}

async fn until(
    client: &RunningService<RoleClient, NamingUser>,
    id: &str,
    status: TaskStatus,
) -> TaskPayload {
    wait_for("the status of a task", async || {
        let got = client.peer().get_task(GetTaskParams::new(id)).await;
        let task = got.unwrap().task;
        (task.status() == status).then_some(task.payload)
    })
    .await
}

#[tokio::test]
async fn rmcp_sees_a_task_from_creation_to_result() {
    let harness = Harness::new().await;
    let client = connect(harness.server.clone()).await;
    assert!(client.list_all_tools().await.unwrap().len() > 5);
    let id = task(&client, "gated").await;
    until(&client, &id, TaskStatus::Working).await;
    harness.open_gate();
    match until(&client, &id, TaskStatus::Completed).await {
        TaskPayload::Completed { result } => assert_eq!(result["content"][0]["text"], "through"),
        other => panic!("{other:?}"),
    }
    let id = task(&client, "broken").await;
    match until(&client, &id, TaskStatus::Failed).await {
        TaskPayload::Failed { error } => assert_eq!(error["message"], "it broke"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rmcp_responds_to_a_task_and_cancels_one() {
    let harness = Harness::new().await;
    let client = connect(harness.server.clone()).await;
    let id = task(&client, "ask").await;
    let TaskPayload::InputRequired { input_requests } =
        until(&client, &id, TaskStatus::InputRequired).await
    else {
        panic!("it asks");
    };
    let key = input_requests.keys().next().unwrap().clone();
    let responses = [(key, name_response("Ada"))].into();
    client
        .peer()
        .update_task(UpdateTaskParams::new(id.clone(), responses))
        .await
        .unwrap();
    until(&client, &id, TaskStatus::Completed).await;
    let id = task(&client, "gated").await;
    client
        .peer()
        .cancel_task(CancelTaskParams::new(id.clone()))
        .await
        .unwrap();
    until(&client, &id, TaskStatus::Cancelled).await;
}

#[tokio::test]
async fn rmcp_retries_a_call_with_input_requests() {
    let harness = Harness::new().await;
    let client = connect(harness.server.clone()).await;
    let received = client
        .call_tool(CallToolRequestParams::new("plain"))
        .await
        .unwrap();
    assert_eq!(
        received.content[0].as_text().unwrap().text,
        "Hello, \"Ada\"!"
    );
    assert_eq!(harness.started_calls(), 1);
}
