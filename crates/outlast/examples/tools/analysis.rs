//! `LongRunningAnalysis` of the TasksServer sample: runs with or without a task.

use std::time::Duration;

use outlast::schemars::JsonSchema;
use outlast::tools::Hints;
use outlast::{TaskSupport, Tool, text};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
#[serde(rename_all = "camelCase")]
struct Analysis {
    /// What is analysed.
    data: String,
    /// How long that takes.
    #[serde(default = "five")]
    duration_seconds: u32,
}

/// The tool. The caller chooses whether it runs as a task; the code is the same.
pub(crate) fn long_running_analysis() -> Tool {
    Tool::typed(
        "LongRunningAnalysis",
        "Analyses data for a while",
        |args: Analysis, cx| async move {
            let seconds = args.duration_seconds.min(3_600);
            for second in 1..=seconds {
                tokio::time::sleep(Duration::from_secs(1)).await;
                cx.progress(second.into(), seconds.into());
            }
            Ok(text(format!("Analysis complete for: {}", args.data)))
        },
    )
    .task(TaskSupport::Optional)
    // It is read-only, so it is run again if the process is killed.
    .hints(Hints::READ_ONLY)
}

fn five() -> u32 {
    5
}
