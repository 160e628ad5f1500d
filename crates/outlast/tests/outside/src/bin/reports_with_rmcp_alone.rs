//! The same as `reports.rs` with rmcp alone. Its tasks are those of 2026-07-28, in memory.

use std::time::Duration;

use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, ContentBlock, CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, TaskPayload, Tool, UpdateTaskParams,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::{
    ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle, serve_server,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use rmcp::{ClientHandler, RoleClient, RoleServer, ServerHandler};
use serde::{Deserialize, Serialize};

type Failure = Box<dyn std::error::Error>;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Render {
    /// How many pages to draw.
    pages: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    total: u32,
}

#[derive(Clone, Default)]
struct Reports(TaskManager);

impl ServerHandler for Reports {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(can.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("render", "Draws pages", schema_for_type::<Render>()),
            Tool::new("count", "Counts pages", schema_for_type::<Render>())
                .with_output_schema::<Sum>(),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default().into();
        let args: Render = serde_json::from_value(arguments)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let work = move |cx: TaskContext| -> TaskFuture {
            Box::pin(async move {
                match &*request.name {
                    "render" => {
                        cx.set_status_message("drawing");
                        let text = ContentBlock::text(format!("{} pages", args.pages));
                        Ok(CallToolResult::success(vec![text]))
                    }
                    "count" => {
                        let sum = Sum { total: args.pages };
                        let sum = serde_json::to_value(sum).map_err(|error| {
                            TaskExit::Error(ErrorData::internal_error(error.to_string(), None))
                        })?;
                        Ok(CallToolResult::structured(sum))
                    }
                    _ => Err(TaskExit::Error(ErrorData::invalid_params("no such tool", None))),
                }
            })
        };
        let task = self.0.spawn(TaskOptions::new(), work);
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(&request.task_id)
    }
}

struct Caller;

impl ClientHandler for Caller {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder().enable_tasks().build();
        ClientConfig::new(can, Implementation::new("caller", "1.0"))
    }
}

async fn call(
    client: &RunningService<RoleClient, Caller>,
    tool: &'static str,
    arguments: JsonObject,
) -> Result<JsonObject, Failure> {
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let CallToolResponse::Task(created) = client.call_tool_once(params).await? else {
        return Err("the server made no task".into());
    };
    let id = created.task.task_id;
    let interval = Duration::from_millis(created.task.poll_interval_ms.unwrap_or(1_000));
    loop {
        match client.peer().get_task(GetTaskParams::new(id.clone())).await?.task.payload {
            TaskPayload::Completed { result } => return Ok(result),
            TaskPayload::Failed { error } => return Err(format!("{error:?}").into()),
            TaskPayload::Cancelled => return Err("the task was cancelled".into()),
            _ => tokio::time::sleep(interval).await,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        if let Ok(running) = serve_server(Reports::default(), theirs).await {
            let _ = running.waiting().await;
        }
    });
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let client = serve_client_with_lifecycle(Caller, ours, mode).await?;
    let arguments = JsonObject::from_iter([("pages".into(), 3.into())]);
    let result = call(&client, "render", arguments.clone()).await?;
    println!("{}", result["content"][0]["text"].as_str().unwrap_or_default());
    let mut result = call(&client, "count", arguments).await?;
    let sum: Sum = serde_json::from_value(result["structuredContent"].take())?;
    println!("{}", sum.total);
    client.cancel().await?;
    Ok(())
}
