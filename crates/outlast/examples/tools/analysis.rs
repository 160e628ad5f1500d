//! `LongRunningAnalysis` of the well-known TasksServer sample: runs as a task, or not.

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

/// The tool. Whether it runs as a task is the caller's choice and makes no difference in here.
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
    // It only looks: interrupted by the death of the process, it is run again.
    .hints(Hints::READ_ONLY)
}

fn five() -> u32 {
    5
}
