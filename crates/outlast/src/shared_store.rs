//! Reports about a detached task through a store that several processes share.

use std::sync::Arc;

use crate::detached::{Completion, CompletionError, CompletionHandle};
use crate::store::Store;

/// The task of `handle`, in a store that this process shares with the server, such as PostgreSQL.
///
/// The process needs no server of its own: it does not join the store, takes over no task and runs
/// no tool. Servers on the store receive each report like one of another server. They send webhooks
/// only for changes that they make themselves.
///
/// An error [`CompletionError::Unavailable`] leaves open whether the report was stored: send it
/// again. If it ended the task, the repetition fails with [`CompletionError::Ended`].
///
/// ```no_run
/// use outlast::detached::CompletionHandle;
/// use outlast::task::Outcome;
/// use outlast::wire::Raw;
///
/// # async fn run(handle: CompletionHandle) -> Result<(), Box<dyn std::error::Error>> {
/// let store = outlast::store::open("postgres://tasks@db.example/tasks").await?;
/// let task = outlast::complete(&store, &handle).await?;
/// let result = Raw::parse(outlast::text("printed").to_string())?;
/// task.end(Outcome::Result(result)).await?;
/// store.close().await?;
/// # Ok(()) }
/// ```
pub async fn complete(
    store: &Arc<dyn Store>,
    handle: &CompletionHandle,
) -> Result<Completion, CompletionError> {
    Completion::in_store(store, handle).await
}
