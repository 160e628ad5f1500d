//! Our server with its usual setup. Only the limits on the number of tasks are raised.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::{Engine, NewCall};
use outlast::server::{McpServer, TaskPolicy};
use outlast::store::{MemoryStore, Store};
use outlast::task::{InputKinds, Owner, Policy, Quota, Scope};
use outlast::transport::http::{self, HttpOptions};
use outlast::wire::Raw;
use outlast::{Server, TaskSupport, Tool, Tools, text};
use outlast_store::{Sqlite, SqliteOptions};
use tokio::task::JoinSet;

use super::{ARGUMENTS, TEXT};
use crate::BenchResult;
use crate::store::Lifecycle;

/// An engine whose tools return immediately.
#[derive(Clone)]
pub(crate) struct OutlastServer {
    mcp: Arc<McpServer>,
    engine: Engine,
    store: Arc<dyn Store>,
    tools: Tools,
}

impl OutlastServer {
    pub(crate) fn memory() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    pub(crate) async fn sqlite(path: &Path) -> BenchResult<Arc<dyn Store>> {
        let store = Sqlite::open(path, SqliteOptions::default()).await?;
        Ok(Arc::new(store))
    }

    pub(crate) async fn open(store: Arc<dyn Store>) -> BenchResult<Self> {
        let tool = |name| Tool::new(name, "does nothing", |_, _| async { Ok(text(TEXT)) });
        let task = tool("nothing").task(TaskSupport::Optional);
        let tools = Tools::new()
            .with(tool("plain"))
            .with(task.task_policy(TaskPolicy::Always));
        let policy = Policy::default().with_quota(
            Quota::default()
                .with_owner_open(u32::MAX)
                .with_owner_retained(u32::MAX)
                .with_open(u64::MAX)
                .with_retained(u64::MAX),
        );
        let server = Server::builder("bench", "1")
            .tools(tools.clone())
            .store(store.clone())
            .policy(policy)
            .build()
            .start()
            .await?;
        Ok(Self {
            mcp: server.mcp().clone(),
            engine: server.engine().clone(),
            store,
            tools,
        })
    }

    /// Creates this number of ended tasks, then serves until standard input ends.
    pub(super) async fn serve(self, retained: usize) -> BenchResult<()> {
        self.fill(retained).await?;
        // The load comes from one address.
        let options = HttpOptions::default()
            .with_max_requests_per_second(None)
            .with_max_sessions_per_owner(usize::MAX);
        let server = http::serve(self.mcp.clone(), options).await?;
        super::until_stdin_ends(server.local_addr()).await?;
        server.shutdown().await;
        self.close().await
    }

    pub(crate) async fn close(self) -> BenchResult<()> {
        self.engine.shutdown(Duration::from_secs(1)).await?;
        Ok(self.store.close().await?)
    }

    async fn fill(&self, retained: usize) -> BenchResult<()> {
        let mut callers = JoinSet::new();
        for caller in 0..FILL_CALLERS {
            let ours = self.clone();
            let each = retained / FILL_CALLERS + usize::from(caller < retained % FILL_CALLERS);
            callers.spawn(async move {
                for _ in 0..each {
                    ours.lifecycle().await?;
                }
                BenchResult::Ok(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(())
    }
}

impl Lifecycle for OutlastServer {
    async fn lifecycle(&self) -> BenchResult<()> {
        let owner = Owner::principal("bench");
        let params = format!(r#"{{"name":"nothing","arguments":{ARGUMENTS}}}"#);
        let params = Raw::parse(params)?;
        let origin = self.tools.origin("nothing", params, InputKinds::NONE);
        let call = NewCall::new(owner.clone(), origin);
        let created = self.engine.create(call).await?;
        let scope = Scope::OwnedBy(owner);
        self.engine.wait(&scope, created.task().id).await?;
        Ok(())
    }
}

const FILL_CALLERS: usize = 256;
