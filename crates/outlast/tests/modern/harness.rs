//! A server with tools that do what their name says. Some of them wait at a gate.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::engine::Engine;
use outlast::server::{McpServer, TaskPolicy};
use outlast::store::open_store;
use outlast::store::{MemoryStore, Store};
use outlast::task::{InputKind, Policy};
use outlast::tools::{Hints, ToolFailure};
use outlast::{Level, Server, TaskSupport, Tool, Tools, text};
use outlast_testkit::eventually;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A server, its engine and its store.
#[derive(Clone)]
pub(crate) struct Harness {
    pub(crate) server: Arc<McpServer>,
    pub(crate) engine: Engine,
    store: Arc<dyn Store>,
    /// Every permit lets one tool continue.
    pub(crate) gate: Arc<Semaphore>,
    /// How often a tool was started.
    pub(crate) starts: Arc<AtomicUsize>,
}

impl Harness {
    pub(crate) async fn new() -> Self {
        Self::with(Policy::default()).await
    }

    pub(crate) async fn with(policy: Policy) -> Self {
        Self::on(Arc::new(MemoryStore::new()), policy).await
    }

    pub(crate) async fn on_file(file: &Path) -> Self {
        let url = file.to_str().unwrap().parse().unwrap();
        let store = open_store(&url, Default::default()).await.unwrap();
        Self::on(store, Policy::default()).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>, policy: Policy) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let starts = Arc::new(AtomicUsize::new(0));
        let server = Server::builder("test", "1")
            .instructions("Be kind.")
            .tools(tools(&gate, &starts))
            .store(store.clone())
            .policy(policy)
            .build();
        let running = server.start().await.unwrap();
        Self {
            server: running.mcp().clone(),
            engine: running.engine().clone(),
            store,
            gate,
            starts,
        }
    }

    /// Lets one tool continue.
    pub(crate) fn open_gate(&self) {
        self.gate.add_permits(1);
    }

    pub(crate) fn started_calls(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }

    /// Stops the calls at once, and closes the store.
    pub(crate) async fn stop(self) {
        self.engine.shutdown(Duration::ZERO).await.unwrap();
        self.store.close().await.unwrap();
    }

    /// Waits until no call runs.
    pub(crate) async fn until_idle(&self) {
        eventually("nothing runs", async || self.engine.running() == 0).await;
    }
}

fn tools(gate: &Arc<Semaphore>, starts: &Arc<AtomicUsize>) -> Tools {
    let (at, counted) = (gate.clone(), starts.clone());
    let gated = Tool::new("gated", "waits at the gate", move |_, cx| {
        let (gate, starts) = (at.clone(), counted.clone());
        async move {
            starts.fetch_add(1, Ordering::SeqCst);
            cx.status("at the gate");
            gate.acquire().await?.forget();
            Ok(text("through"))
        }
    });
    let rerun = {
        let at = gate.clone();
        Tool::new(
            "harmless",
            "waits at the gate, and may do so again",
            move |_, _| {
                let gate = at.clone();
                async move {
                    gate.acquire().await?.forget();
                    Ok(text("through"))
                }
            },
        )
        .hints(Hints::READ_ONLY)
    };
    let at = gate.clone();
    let steps = Tool::new("steps", "takes three steps", move |_, cx| {
        let gate = at.clone();
        async move {
            for step in 1..=3 {
                gate.acquire().await?.forget();
                cx.progress(step.into(), 3.0);
                cx.log(Level::Info, "a step");
            }
            gate.acquire().await?.forget();
            Ok(text("arrived"))
        }
    });
    let ask = Tool::new("ask", "asks for a name", |_, cx| async move {
        let response = cx.elicit_raw(form("Who?")).await?;
        Ok(text(format!("Hello, {}!", response["content"]["name"])))
    });
    let two = Tool::new("two", "asks two things at once", |_, cx| async move {
        let (one, other) = tokio::join!(cx.elicit_raw(form("One?")), cx.elicit_raw(form("Two?")));
        let (one, other) = (&one?["content"]["name"], &other?["content"]["name"]);
        Ok(text(format!("{one} {other}")))
    });
    let again = Tool::new("again", "asks twice", |_, cx| async move {
        cx.elicit_raw(form("First?")).await?;
        cx.elicit_raw(form("Second?")).await?;
        Ok(text("asked"))
    });
    let broken = Tool::new("broken", "ends in an error", |_, _| async move {
        Err(ToolFailure::error(-32099, "it broke"))
    });
    let fails = Tool::new(
        "fails",
        "fails",
        |_, _| async move { Err("it failed".into()) },
    );
    let tidy = Tool::new("tidy", "finishes when it is to stop", |_, cx| async move {
        cx.cancelled().await;
        Ok(text("tidied up"))
    });
    let optional = [gated, rerun, steps, ask, two, again];
    let optional = optional.map(|tool| tool.task(TaskSupport::Optional));
    let always = [broken, fails, tidy].map(|tool| {
        tool.task(TaskSupport::Optional)
            .task_policy(TaskPolicy::Always)
    });
    let others = [
        Tool::new("echo", "says it again", |args, _| async move {
            Ok(text(args.text("say")?))
        })
        .input(json!({
            "type": "object",
            "properties": { "say": { "type": "string", "x-mcp-header": "Say" } },
        })),
        Tool::new("must", "runs only as a task", |_, _| async move {
            Ok(text("done"))
        })
        .task(TaskSupport::Required),
        Tool::new("plain", "asks and is never a task", {
            let starts = starts.clone();
            move |_, cx| {
                let starts = starts.clone();
                async move {
                    starts.fetch_add(1, Ordering::SeqCst);
                    let response = cx.elicit_raw(form("Who?")).await?;
                    Ok(text(format!("Hello, {}!", response["content"]["name"])))
                }
            }
        }),
        first("first").task(TaskSupport::Optional),
        first("first_then_task")
            .task(TaskSupport::Required)
            .task_policy(TaskPolicy::AfterInput),
        Tool::new("model", "needs a model", |_, cx| async move {
            cx.sample_raw(json!({ "messages": [], "maxTokens": 1 }))
                .await?;
            Ok(text("done"))
        })
        .needs([InputKind::Sample]),
    ];
    let all = optional.into_iter().chain(always).chain(others);
    all.fold(Tools::new(), Tools::with)
}

/// A tool with an input request before its work.
fn first(name: &str) -> Tool {
    Tool::new(name, "asks first", |_, cx| async move {
        let who = cx
            .request_input_first_as("who", InputKind::ElicitForm, form("Who?"))
            .await?;
        Ok(text(format!("Hello, {}!", who["content"]["name"])))
    })
}

pub(crate) fn form(message: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    })
}

/// An input response that accepts a form.
pub(crate) fn name_response(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}
