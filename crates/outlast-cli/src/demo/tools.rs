//! The sample tools: `countdown`, `research`, `confirm` and `flaky`. An HTTP client also gets those
//! of the library's examples.

#[path = "../../../outlast/examples/tools/analysis.rs"]
mod analysis;
#[path = "../../../outlast/examples/tools/confirm.rs"]
mod confirm_and_sample;
#[path = "../../../outlast/examples/tools/long_running.rs"]
mod long_running;

use std::time::Duration;

use outlast::schemars::JsonSchema;
use outlast::tools::{Elicited, Hints};
use outlast::{TaskSupport, Tool, Tools, text};
use serde::Deserialize;
use serde_json::{Value, json};

/// The calls of one round.
pub(super) fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("countdown", json!({ "from": 5 })),
        ("research", json!({ "topic": "tides" })),
        ("confirm", json!({ "file": "report.pdf" })),
        ("flaky", json!({})),
    ]
}

/// The sample tools. Each of their steps takes `step`.
pub(super) fn samples(step: Duration) -> Tools {
    let samples = [countdown(step), research(step), confirm(), flaky(step)];
    samples
        .into_iter()
        .map(|tool| tool.task(TaskSupport::Optional))
        .fold(Tools::new(), Tools::with)
        .with(analysis::long_running_analysis())
        .with(confirm_and_sample::confirm_and_sample())
        .with(long_running::long_running_task())
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Countdown {
    /// The number to start with.
    from: u32,
}

fn countdown(step: Duration) -> Tool {
    Tool::typed(
        "countdown",
        "counts down and reports progress",
        move |args: Countdown, cx| async move {
            let from = args.from.clamp(1, 1_000);
            for left in (0..from).rev() {
                tokio::time::sleep(step).await;
                cx.progress(f64::from(from - left), from.into());
            }
            Ok(text("lift-off"))
        },
    )
    // A read-only tool runs again after a crash.
    .hints(Hints::READ_ONLY)
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Research {
    /// The subject of the report.
    topic: String,
}

fn research(step: Duration) -> Tool {
    Tool::typed(
        "research",
        "works in four steps",
        move |Research { topic }, cx| async move {
            for step_name in ["gathering sources", "reading", "comparing", "writing"] {
                cx.status(&format!("{step_name}: {topic}"));
                tokio::time::sleep(step * 2).await;
            }
            Ok(text(format!("A report about {topic}.")))
        },
    )
    .hints(Hints::READ_ONLY)
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Confirm {
    /// The file to shred. The demo does not touch it.
    file: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Confirmation {
    confirm: bool,
}

fn confirm() -> Tool {
    Tool::typed(
        "confirm",
        "asks before it acts",
        move |Confirm { file }, cx| async move {
            let message = format!("Really shred {file}?");
            let what = match cx.elicit::<Confirmation>(&message).await? {
                Elicited::Accepted(form) if form.confirm => "confirmed",
                Elicited::Accepted(_) => "not confirmed",
                Elicited::Declined => "declined",
                Elicited::Cancelled => "cancelled",
            };
            Ok(text(format!("{file}: {what}")))
        },
    )
}

fn flaky(step: Duration) -> Tool {
    Tool::new("flaky", "fails after a while", move |_, cx| async move {
        cx.status("waiting for the weather service");
        tokio::time::sleep(step * 7).await;
        Err("the weather service is down".into())
    })
}
