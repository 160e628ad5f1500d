//! The sample tools: one that counts, one that researches, one that asks, one that fails.

use std::time::Duration;

use outlast::tools::Hints;
use outlast::{TaskSupport, Tool, Tools, text};
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

/// The samples; every step of theirs takes `step`.
pub(super) fn samples(step: Duration) -> Tools {
    let samples = [countdown(step), research(step), confirm(), flaky(step)];
    samples
        .into_iter()
        .map(|tool| tool.task(TaskSupport::Optional))
        .fold(Tools::new(), Tools::with)
}

fn countdown(step: Duration) -> Tool {
    Tool::new(
        "countdown",
        "counts down and reports progress",
        move |args, cx| async move {
            let from = args.number("from", 5.0)?.clamp(1.0, 1_000.0) as u32;
            for left in (0..from).rev() {
                tokio::time::sleep(step).await;
                cx.progress(f64::from(from - left), from.into());
            }
            Ok(text("lift-off"))
        },
    )
    // Counting again harms nobody: after a crash it starts anew.
    .hints(Hints::READ_ONLY)
}

fn research(step: Duration) -> Tool {
    Tool::new(
        "research",
        "works in four stages",
        move |args, cx| async move {
            let topic = args.text("topic")?.to_owned();
            for stage in ["gathering sources", "reading", "weighing", "writing"] {
                cx.status(&format!("{stage} on {topic}"));
                tokio::time::sleep(step * 2).await;
            }
            Ok(text(format!("All that matters about {topic}.")))
        },
    )
}

fn confirm() -> Tool {
    Tool::new(
        "confirm",
        "asks before it acts",
        move |args, cx| async move {
            let file = args.text("file")?.to_owned();
            let form = json!({
                "mode": "form",
                "message": format!("Really shred {file}?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": { "confirm": { "type": "boolean" } },
                    "required": ["confirm"],
                },
            });
            let answer = cx.elicit(form).await?;
            Ok(text(format!("{file}: answered with {answer}")))
        },
    )
}

fn flaky(step: Duration) -> Tool {
    Tool::new("flaky", "fails after a while", move |_, cx| async move {
        cx.status("hoping for the best");
        tokio::time::sleep(step * 3).await;
        Err("the weather service is down".into())
    })
}
