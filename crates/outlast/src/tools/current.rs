//! The tool that runs here: known without being passed along (S2-15).

use super::ToolContext;

/// The context of the tool that is running in this task of the runtime, if one is.
///
/// What a tool awaits finds it, however deep; what it spawns does not, and gets a clone of the context instead.
pub fn current() -> Option<ToolContext> {
    CURRENT.try_with(ToolContext::clone).ok()
}

/// Runs the work of a tool, with `cx` as what [`current`] gives inside.
pub(super) async fn running<W: Future>(cx: ToolContext, work: impl FnOnce() -> W) -> W::Output {
    CURRENT.scope(cx, async { work().await }).await
}

tokio::task_local! {
    static CURRENT: ToolContext;
}
