//! The peer: an rmcp 3.8 server with its V2 tasks, set up for speed: no sessions, JSON answers, no macros.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

use crate::Done;

/// What becomes of tasks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// They are forgotten soon.
    Nothing,
    /// They are kept, like so many from before.
    All { from: usize },
}

pub(super) async fn serve(keeps: Keeps) -> Done<()> {
    let peer = Peer {
        tasks: Arc::new(Tasks::new(keeps).await),
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
/// Its sweep walks over all tasks in every call. One that forgets has a manager for so many creations only, so
/// that there is next to nothing to walk over; the last few managers still answer.
struct Tasks {
    /// The newest first.
    managers: Mutex<VecDeque<TaskManager>>,
    created: AtomicUsize,
    forgets: bool,
}

impl Tasks {
    async fn new(keeps: Keeps) -> Self {
        let tasks = Self {
            managers: Mutex::new([TaskManager::new()].into()),
            created: AtomicUsize::new(0),
            forgets: keeps == Keeps::Nothing,
        };
        let Keeps::All { from } = keeps else {
            return tasks;
        };
        for made in 0..from {
            tasks.spawn();
            if made % GENERATION == 0 {
                // Those that were spawned end.
                tokio::task::yield_now().await;
            }
        }
        tasks
    }

    fn spawn(&self) -> rmcp::model::Task {
        self.spawn_with(|| Box::pin(async { Ok(result()) }))
    }

    /// Work that never ends.
    fn spawn_endless(&self) -> rmcp::model::Task {
        self.spawn_with(|| Box::pin(std::future::pending()))
    }

    fn spawn_with(&self, work: fn() -> TaskFuture) -> rmcp::model::Task {
        let created = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let manager = {
            let mut managers = self.lock();
            if self.forgets && created.is_multiple_of(GENERATION) {
                managers.push_front(TaskManager::new());
                managers.truncate(GENERATIONS);
            }
            managers[0].clone()
        };
        // Without a TTL its sweep has least to do.
        let options = TaskOptions::new().with_ttl_ms(None);
        manager.spawn(options, move |_| work())
    }

    fn get(&self, id: &str) -> Result<rmcp::model::DetailedTask, ErrorData> {
        let newest = self.lock()[0].clone();
        newest.get_task(id).or_else(|unknown| {
            let others: Vec<_> = self.lock().iter().skip(1).cloned().collect();
            let found = others.iter().find_map(|manager| manager.get_task(id).ok());
            found.ok_or(unknown)
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<TaskManager>> {
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
            name => {
                let task = match name {
                    "endless" => self.tasks.spawn_endless(),
                    _ => self.tasks.spawn(),
                };
                let created = CreateTaskResult::new(task);
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

/// After how many creations a manager is replaced.
const GENERATION: usize = 128;

/// How many managers there are at most: no client is so late that its task is in none of them.
const GENERATIONS: usize = 64;

/// What every tool says, here and there: about 200 bytes with what is around it.
pub(super) const TEXT: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
);
