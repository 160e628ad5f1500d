//! The audit log of tasks. This test has its own process, because tracing caches for the whole
//! process whether a log statement is enabled, and other tests enable none.

#![expect(clippy::unwrap_used, reason = "a test may panic if its setup fails")]

#[expect(
    dead_code,
    reason = "the client of all tests on a pipe can do more than is needed here"
)]
#[path = "../stdio/harness.rs"]
mod client;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use client::StdioClient;
use outlast::client::{ClientOptions, Era, Target};
use outlast::{Server, TaskSupport, Tool, text};
use outlast_testkit::eventually;

/// Collects the lines of the audit trail, or those of the default level.
#[derive(Clone)]
struct Lines {
    is_audited: bool,
    lines: Arc<Mutex<Vec<String>>>,
}

struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_audited = metadata.target() == "outlast::audit";
        is_audited == self.is_audited && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine(String::new());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Lines {
    fn of_the_audit_trail() -> Self {
        Self {
            is_audited: true,
            lines: Arc::default(),
        }
    }

    fn of_the_default_level() -> Self {
        Self {
            is_audited: false,
            ..Self::of_the_audit_trail()
        }
    }

    /// The number of lines that contain `text`.
    fn count(&self, text: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }

    /// Whether a line has all of these parts.
    fn has_line_with(&self, parts: &[&str]) -> bool {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

async fn create(client: &mut StdioClient, tool: &str) -> String {
    let call = json!({ "name": tool, "task": {} });
    let answer = client.call("tools/call", call).await;
    let id = &answer["result"]["task"]["taskId"];
    id.as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn every_status_of_a_task_is_logged_with_its_owner() {
    // V1-AUD-1, V1-AUD-2, V1-AUD-3, V1-CANC-7.
    let lines = Lines::of_the_audit_trail();
    let _collecting = tracing::subscriber::set_default(lines.clone());
    let mut client = StdioClient::new().await;
    let done = create(&mut client, "slow").await;
    client.call("tasks/result", json!({ "taskId": done })).await;
    let stopped = create(&mut client, "endless").await;
    client
        .call("tasks/cancel", json!({ "taskId": stopped }))
        .await;
    let nowhere = json!({ "taskId": "00000000000000000000000000" });
    client.call("tasks/get", nowhere).await;
    let request = client
        .send("tools/call", json!({ "name": "endless" }))
        .await;
    let cancel = json!({ "requestId": request, "reason": "too slow" });
    client.notify("notifications/cancelled", cancel).await;
    client.silence().await;
    for parts in [
        &["created", "owner=\"local\"", "tool=\"slow\"", done.as_str()][..],
        &["ended", "owner=\"local\"", done.as_str(), "how=\"result\""],
        &["result retrieved", "owner=\"local\"", done.as_str()],
        &["created", stopped.as_str()],
        &["message=cancelled", "owner=\"local\"", stopped.as_str()],
        &["task not found", "owner=\"local\"", "tasks/get"],
        &["request cancelled", "owner=\"local\"", "too slow"],
    ] {
        assert!(
            lines.has_line_with(parts),
            "{parts:?}: {:?}",
            lines.lines.lock()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_input_responses_write_few_log_lines() {
    let lines = Lines::of_the_default_level();
    let _collecting = tracing::subscriber::set_default(lines.clone());
    let mut client = StdioClient::new().await;
    for number in 0..100 {
        let id = format!("00000000000000000000000000.{number}");
        client.respond(&json!(id), json!({})).await;
    }
    client.call("ping", json!({})).await;
    let refused = "could not apply an input response";
    eventually("a line", async || lines.count(refused) > 0).await;
    client.silence().await;
    assert_eq!(lines.count(refused), 20);
}

#[tokio::test]
async fn every_followed_status_is_logged_with_its_server() {
    // V1-AUD-4, V1-AUD-5.
    let lines = Lines::of_the_audit_trail();
    let _collecting = tracing::subscriber::set_default(lines.clone());
    let tools = ["done", "stopped"].map(|name| {
        let tool = Tool::new(name, "does it or never ends", move |_, _| async move {
            match name {
                "done" => Ok(text("done")),
                _ => std::future::pending().await,
            }
        });
        tool.task(TaskSupport::Required)
    });
    let server = Server::builder("ours", "1").tools(tools).build();
    let server = server.start().await.unwrap();
    let options = ClientOptions::default()
        .with_server_name("there")
        .with_era(Era::Legacy);
    let target = Target::in_process(server.mcp().clone());
    let client = outlast::client::Client::connect(target, options)
        .await
        .unwrap();
    let done = client.call_tool("done", ()).await.unwrap();
    done.outcome().await.unwrap();
    let done = done.task().await.unwrap();
    let stopped = client.call_tool("stopped", ()).await.unwrap();
    let id = stopped.task().await.unwrap();
    stopped.cancel().await.unwrap();
    stopped.outcome().await.unwrap();
    for parts in [
        &[
            "followed",
            "server=\"there\"",
            "tool=\"done\"",
            done.as_str(),
        ][..],
        &[
            "status changed",
            "server=\"there\"",
            "completed",
            done.as_str(),
        ],
        &["outcome retrieved", "server=\"there\"", done.as_str()],
        &["followed", "tool=\"stopped\"", id.as_str()],
        &["status changed", "cancelled", id.as_str()],
    ] {
        assert!(
            lines.has_line_with(parts),
            "{parts:?}: {:?}",
            lines.lines.lock()
        );
    }
}
