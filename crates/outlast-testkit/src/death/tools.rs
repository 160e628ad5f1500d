//! The tools of the child process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::task::ResumeState;
use outlast_engine::{ErrorCode, InputKind, InputRequest, Origin, Outcome};
use outlast_wire::Raw;

use super::Ack;

/// Runs the tools below.
pub(crate) struct ChildTools {
    /// Whether it prints the start of each run.
    pub(crate) prints_runs: bool,
}

/// The names of the tools.
pub(crate) const NAMES: &[&str] = &[
    "instant", "short", "talk", "ask", "attach", "fail", "error", "obedient", "large",
];

#[async_trait]
impl Runner for ChildTools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        let id = cx.id().to_string();
        if self.prints_runs {
            Ack::Ran { id: id.clone() }.print();
        }
        match call.tool.as_deref().unwrap_or_default() {
            "short" => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                result(&id)
            }
            "talk" => {
                for step in ["one", "two", "three"] {
                    cx.status(step);
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
                result(&id)
            }
            "ask" => match cx
                .request_input(InputRequest::new(InputKind::ElicitForm, None))
                .await
            {
                Ok(_) => result(&id),
                Err(error) => Outcome::error(ErrorCode(-1), error.to_string()),
            },
            "attach" => {
                let handle = ResumeState(id.as_bytes().into());
                if let Err(error) = cx.save_resume_state(handle).await {
                    return Outcome::error(ErrorCode(-2), error.to_string());
                }
                tokio::time::sleep(Duration::from_millis(30)).await;
                result(&id)
            }
            "fail" => Outcome::ToolError(text(&id), Some("on purpose".into())),
            "error" => Outcome::error(ErrorCode(-32000), "on purpose"),
            "obedient" => {
                cx.cancelled().await;
                Outcome::Cancelled
            }
            "large" => Outcome::Result(text(&id.repeat(2_000))),
            _ => result(&id),
        }
    }

    async fn reattach(
        &self,
        _: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        let found = std::str::from_utf8(&handle.0).ok()?;
        (found == cx.id().to_string()).then(|| result(found))
    }

    fn can_reattach(&self) -> bool {
        true
    }
}

fn result(id: &str) -> Outcome {
    Outcome::Result(text(&format!("the result of {id}")))
}

fn text(text: &str) -> Raw {
    Raw::encode(text).expect("a string is JSON")
}
