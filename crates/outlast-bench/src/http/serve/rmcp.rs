//! The peer: an rmcp 3.8 server with its V2 tasks, set up for speed: no sessions, JSON answers, no macros.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult,
    GetTaskParams, GetTaskResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::Done;

pub(super) async fn serve(retained: usize) -> Done<()> {
    let peer = Peer {
        tasks: Arc::new(Tasks::new(retained).await),
    };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(peer.clone()), sessions, config);
    super::serve_router(Router::new().route_service("/mcp", service)).await
}

#[derive(Clone)]
struct Peer {
    tasks: Arc<Tasks>,
}

/// The tasks of the peer.
///
/// Its sweep walks over all tasks in every call. Where nothing is to be retained, a manager is replaced after
/// a number of creations, so that there is next to nothing to walk over; the one before it still answers.
struct Tasks {
    managers: Mutex<[TaskManager; 2]>,
    created: AtomicUsize,
    replaced_after: Option<usize>,
}

impl Tasks {
    async fn new(retained: usize) -> Self {
        let tasks = Self {
            managers: Mutex::default(),
            created: AtomicUsize::new(0),
            replaced_after: (retained == 0).then_some(GENERATION),
        };
        for made in 0..retained {
            tasks.spawn();
            if made % GENERATION == 0 {
                // Those that were spawned end.
                tokio::task::yield_now().await;
            }
        }
        tasks
    }

    fn spawn(&self) -> rmcp::model::Task {
        let created = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        if self
            .replaced_after
            .is_some_and(|after| created.is_multiple_of(after))
        {
            let mut managers = self.lock();
            managers.swap(0, 1);
            managers[0] = TaskManager::new();
        }
        let manager = self.lock()[0].clone();
        // Without a TTL its sweep has least to do.
        let options = TaskOptions::new().with_ttl_ms(None);
        manager.spawn(options, |_| Box::pin(async { Ok(result()) }))
    }

    fn get(&self, id: &str) -> Result<rmcp::model::DetailedTask, ErrorData> {
        let [this, last] = self.lock().clone();
        this.get_task(id).or_else(|_| last.get_task(id))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [TaskManager; 2]> {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl rmcp::ServerHandler for Peer {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "plain" => Ok(result().into()),
            _ => {
                let created = CreateTaskResult::new(self.tasks.spawn());
                Ok(CallToolResponse::Task(created))
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get(&request.task_id)?))
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

/// After how many creations a manager is replaced: more than can be on their way at once.
const GENERATION: usize = 128;

/// What every tool says, here and there: about 200 bytes with what is around it.
pub(super) const TEXT: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
);
