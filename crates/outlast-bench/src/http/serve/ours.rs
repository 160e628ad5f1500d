//! Ours, as its users set it up; only the limits on the number of tasks are out of the way.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast::engine::engine::NewCall;
use outlast::engine::{Accepts, Engine, MemoryStore, Owner, Policy, Quota, Scope, Store};
use outlast::front::{About, Delivery, Front, RUNNER};
use outlast::transport::http::{self, HttpOptions};
use outlast::wire::Raw;
use outlast::{TaskSupport, Tool, Tools, text};
use outlast_store::{Sqlite, SqliteOptions};

use super::rmcp::TEXT;
use crate::Done;

pub(super) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

pub(super) async fn sqlite(path: &Path) -> Done<Arc<dyn Store>> {
    Ok(Arc::new(
        Sqlite::open(path, SqliteOptions::default()).await?,
    ))
}

pub(super) async fn serve(store: Arc<dyn Store>, retained: usize) -> Done<()> {
    let tools = Tools::new()
        .with(Tool::new("plain", "does nothing", |_, _| async {
            Ok(text(TEXT))
        }))
        .with(
            Tool::new("nothing", "does nothing", |_, _| async { Ok(text(TEXT)) })
                .task(TaskSupport::Optional)
                .deliver(Delivery::Always),
        )
        .with(
            Tool::new("timed", "tells when it ended", |_, _| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(text(now().to_string()))
            })
            .task(TaskSupport::Optional),
        )
        .with(
            Tool::new("endless", "does nothing for ever", |_, _| {
                std::future::pending()
            })
            .task(TaskSupport::Optional)
            .deliver(Delivery::Always),
        );
    let tools = Arc::new(tools);
    let policy = Policy {
        quota: Quota {
            owner_open: u32::MAX,
            owner_retained: u32::MAX,
            retained: u64::MAX,
        },
        ..Policy::default()
    };
    let (engine, _) = Engine::builder(store.clone())
        .policy(policy)
        .runner(RUNNER, tools.clone())
        .open()
        .await?;
    fill(&engine, &tools, retained).await?;
    let about = About {
        name: "bench".into(),
        version: "1".into(),
        instructions: None,
    };
    let server = http::serve(
        Front::new(engine.clone(), tools, about),
        HttpOptions::default(),
    )
    .await?;
    super::until_released(server.local_addr()).await?;
    server.shutdown().await;
    engine.shutdown(Duration::from_secs(1)).await?;
    Ok(store.close().await?)
}

/// Lets so many tasks of somebody live and end.
async fn fill(engine: &Engine, tools: &Arc<Tools>, retained: usize) -> Done<()> {
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (engine, tools) = (engine.clone(), tools.clone());
        let each = retained / CALLERS + usize::from(caller < retained % CALLERS);
        callers.spawn(async move {
            for _ in 0..each {
                let owner = Owner::principal("somebody");
                let params = Raw::parse(r#"{"name":"nothing","arguments":{}}"#.to_owned())?;
                let origin = tools.origin(RUNNER, "nothing", params, Accepts::NONE);
                let created = engine.create(NewCall::new(owner.clone(), origin)).await?;
                engine.wait(&Scope::Of(owner), created.task().id).await?;
            }
            Done::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(())
}

/// Nanoseconds since 1970, on the clock that all processes share.
pub(crate) fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

const CALLERS: usize = 256;
