//! The peer: an rmcp 3.8 server with its V2 tasks, configured for speed: no sessions, JSON
//! responses, no macros.

use std::sync::Arc;

use axum::Router;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult,
    GetTaskParams, GetTaskResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskFuture, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::TEXT;
use crate::BenchResult;

/// Serves with this number of ended tasks.
pub(super) async fn serve(retained: usize) -> BenchResult<()> {
    let peer = Peer(TaskManager::new());
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
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(peer.clone()), sessions, config);
    super::serve_router(Router::new().route_service("/mcp", service)).await
}

#[derive(Clone)]
struct Peer(TaskManager);

impl Peer {
    fn spawn(&self) -> rmcp::model::Task {
        // Without a TTL, its sweep over all tasks in every call has the least to do.
        let options = TaskOptions::new().with_ttl_ms(None);
        let work = |_| -> TaskFuture { Box::pin(async { Ok(result()) }) };
        self.0.spawn(options, work)
    }
}

impl rmcp::ServerHandler for Peer {
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
