//! The context of the running tool as a task-local value (S2-15).

use super::ToolContext;

/// The context of the tool that runs in this Tokio task, if any.
///
/// It is available in everything that the tool awaits. A spawned task does not have it; pass a
/// clone instead.
pub fn current() -> Option<ToolContext> {
    CURRENT.try_with(ToolContext::clone).ok()
}

/// Runs a tool with `cx` as the value of [`current`].
pub(super) async fn run_with<W: Future>(cx: ToolContext, work: impl FnOnce() -> W) -> W::Output {
    CURRENT.scope(cx, async { work().await }).await
}

tokio::task_local! {
    static CURRENT: ToolContext;
}
