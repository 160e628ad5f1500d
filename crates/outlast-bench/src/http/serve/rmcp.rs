//! The peer: an rmcp 3.8 server with its V2 tasks and without macros. As a peer of our server it is
//! configured for speed: no sessions, JSON responses. Behind a gateway it has its default settings:
//! sessions for legacy clients, and streams as responses.

use std::sync::Arc;

use axum::Router;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult,
    GetTaskParams, GetTaskResult, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskFuture, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::TEXT;
use crate::BenchResult;

/// Serves with this number of ended tasks.
pub(super) async fn serve(retained: usize) -> BenchResult<()> {
    let peer = RmcpServer(TaskManager::new());
    for made in 0..retained {
        peer.spawn();
        if made % 128 == 0 {
            // Lets the spawned tasks end.
            tokio::task::yield_now().await;
        }
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    serve_with(peer, config).await
}

/// Serves with the default settings.
pub(super) async fn serve_default() -> BenchResult<()> {
    serve_with(
        RmcpServer(TaskManager::new()),
        StreamableHttpServerConfig::default(),
    )
    .await
}

async fn serve_with(peer: RmcpServer, config: StreamableHttpServerConfig) -> BenchResult<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(peer.clone()), sessions, config);
    super::serve_router(Router::new().route_service("/mcp", service)).await
}

#[derive(Clone)]
struct RmcpServer(TaskManager);

impl RmcpServer {
    fn spawn(&self) -> rmcp::model::Task {
        // Without a TTL, its sweep over all tasks in every call has the least to do.
        let options = TaskOptions::new().with_ttl_ms(None);
        let work = |_| -> TaskFuture { Box::pin(async { Ok(result()) }) };
        self.0.spawn(options, work)
    }
}

impl rmcp::ServerHandler for RmcpServer {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = JsonObject::from_iter([("type".into(), "object".into())]);
        let schema = Arc::new(schema);
        let tool = |name| Tool::new(name, "returns immediately", schema.clone());
        Ok(ListToolsResult::with_all_items(vec![
            tool("plain"),
            tool("nothing"),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match &*request.name {
            "plain" => result().into(),
            _ => CallToolResponse::Task(CreateTaskResult::new(self.spawn())),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.get_task(&request.task_id)?))
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tasks()
                .build(),
        )
    }
}

fn result() -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(TEXT)])
}
