//! `long_running_task` of the test-tasks server: runs only as a task.

use std::time::Duration;

use outlast::schemars::JsonSchema;
use outlast::{TaskSupport, Tool, text};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct LongRunning {
    /// Duration in seconds.
    duration: f64,
}

/// The tool. A call without a task is rejected before it runs.
pub(crate) fn long_running_task() -> Tool {
    Tool::typed(
        "long_running_task",
        "Simulates a long operation",
        |args: LongRunning, cx| async move {
            let tenth = Duration::from_secs_f64(args.duration.clamp(0.0, 3_600.0) / 10.0);
            cx.status("working on it");
            for done in 1..=10 {
                tokio::time::sleep(tenth).await;
                cx.progress(done.into(), 10.0);
            }
            Ok(text(format!("Completed after {}s", args.duration)))
        },
    )
    .task(TaskSupport::Required)
    .immediate("The operation has started.")
}
