//! The harness: our own server as the upstream, and the gateway in front of it.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Era, Target};
use outlast::engine::Engine;
use outlast::gateway::{Settings, ToolSettings, Upstream};
use outlast::prompts::{Prompt, Prompts};
use outlast::resources::{Resource, Resources};
use outlast::server::McpServer;
use outlast::store::Store;
use outlast::task::{InputKind, Policy, Scope, TaskId};
use outlast::tools::{Hints, ToolFailure};
use outlast::transport::http::{self, HttpOptions, HttpServer};
use outlast::transport::http_client::HttpClientOptions;
use outlast::{TaskSupport, Tool, Tools, text};
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::cell::ServerKind;
use crate::gate::{Gate, PollCounter};

/// A server, the gateway in front of it, and the gate of the server's tools.
pub(crate) struct Harness {
    /// The gateway.
    pub(crate) mcp_server: Arc<McpServer>,
    /// The server itself.
    pub(crate) direct: Arc<McpServer>,
    /// The gate of its tools.
    pub(crate) gate: Arc<Gate>,
    /// The resources of the server.
    pub(crate) resources: Resources,
}

/// Options of a harness.
pub(crate) struct HarnessOptions {
    /// The gateway's settings for the server.
    pub(crate) settings: Settings,
    /// The policy of the server.
    pub(crate) behind: Policy,
    /// The policy of the gateway.
    pub(crate) policy: Policy,
    /// The transport from the gateway to the server.
    pub(crate) way: fn(Arc<McpServer>) -> Target,
}

impl Default for HarnessOptions {
    fn default() -> Self {
        Self {
            settings: quick(),
            behind: Policy::default(),
            policy: outlast::gateway::policy(),
            way: Target::in_process,
        }
    }
}

impl Harness {
    pub(crate) async fn new(server: ServerKind) -> Self {
        Self::with(server, quick()).await
    }

    pub(crate) async fn with(server: ServerKind, settings: Settings) -> Self {
        let plan = HarnessOptions {
            settings,
            ..HarnessOptions::default()
        };
        Self::with_options(server, plan).await
    }

    pub(crate) async fn with_options(server: ServerKind, plan: HarnessOptions) -> Self {
        let gate = Gate::new();
        let note = Resource::new("note:one", "one", || async move {
            Ok(outlast::resources::Contents::text("a note"))
        });
        let resources = Resources::new().with(note);
        let (_, direct) =
            start_server(tools(server, &gate), plan.behind, resources.clone(), &gate).await;
        let settings = plan.settings.with_era(server.era());
        let upstream = Upstream::new("behind", (plan.way)(direct.clone()), settings);
        let (_, mcp_server) = gateway_with_policy(plan.policy, upstream).await;
        Self {
            mcp_server,
            direct,
            gate,
            resources,
        }
    }

    /// A harness whose server listens on HTTP until the returned `HttpServer` is dropped.
    pub(crate) async fn over_http(server: ServerKind) -> (Self, HttpServer) {
        let harness = Self::new(server).await;
        let listening = http::serve(harness.direct.clone(), HttpOptions::default());
        let listening = listening.await.unwrap();
        let target = Target::http(HttpClientOptions::new(listening.url()));
        let settings = quick().with_era(server.era());
        let (_, mcp_server) = gateway(Upstream::new("behind", target, settings)).await;
        (
            Self {
                mcp_server,
                ..harness
            },
            listening,
        )
    }

    /// Waits until `calls` calls wait at the gate.
    pub(crate) async fn until_waiting(&self, calls: usize) {
        self.gate.until_waiting(calls).await;
    }
}

/// The gateway in front of `upstream`.
pub(crate) async fn gateway(upstream: Upstream) -> (Engine, Arc<McpServer>) {
    // The policy of `outlast serve`.
    gateway_with_policy(outlast::gateway::policy(), upstream).await
}

/// The gateway in front of `upstream`, with `policy`.
async fn gateway_with_policy(policy: Policy, upstream: Upstream) -> (Engine, Arc<McpServer>) {
    let outlast = outlast::Outlast::builder().policy(policy);
    started(outlast.build().upstream(upstream)).await
}

/// A gateway on `store` in front of the server at `url`.
pub(crate) async fn gateway_on_store(
    url: &str,
    settings: Settings,
    store: &Arc<dyn Store>,
) -> (Engine, Arc<McpServer>) {
    let target = Target::http(HttpClientOptions::new(url));
    let outlast = outlast::Outlast::builder().store(store.clone()).build();
    started(outlast.upstream(Upstream::new("behind", target, settings))).await
}

/// Starts `server`.
pub(crate) async fn started(server: outlast::Server) -> (Engine, Arc<McpServer>) {
    let running = server.start().await.unwrap();
    (running.engine().clone(), running.mcp().clone())
}

/// Waits until the gateway has stored the upstream's task.
pub(crate) async fn until_attached(store: &Arc<dyn Store>, task: &str) {
    let task = task.parse().unwrap();
    // Not `eventually`: the future of an async closure cannot be spawned.
    let attached = async {
        while !is_attached(store, task).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the place of a task is stored", attached).await;
}

async fn is_attached(store: &Arc<dyn Store>, task: TaskId) -> bool {
    let stored = store.load(&Scope::AnyTask, task).await.unwrap();
    stored.unwrap().resume_state.is_some()
}

/// A short grace period, so that waiting calls become tasks, and the era of scripted servers.
pub(crate) fn quick() -> Settings {
    Settings::default()
        .with_era(Era::Legacy)
        .with_tool_defaults(ToolSettings::default().with_grace(Duration::from_millis(50)))
}

/// The server itself.
pub(crate) async fn start_server(
    tools: Tools,
    policy: Policy,
    resources: Resources,
    gate: &Arc<Gate>,
) -> (Engine, Arc<McpServer>) {
    let prompts = Prompts::new().with(Prompt::new("greet", "says hello", |_| async move {
        Ok(vec![outlast::prompts::user(outlast::content::text_block(
            "hello",
        ))])
    }));
    let server = outlast::Server::builder("behind", "7")
        .instructions("Be kind.")
        .tools(tools)
        .prompts(prompts)
        .resources(resources)
        .middleware(PollCounter(gate.clone()))
        .policy(policy);
    started(server.build()).await
}

/// The tools of the server.
pub(crate) fn tools(server: ServerKind, gate: &Arc<Gate>) -> Tools {
    let echo = Tool::new("echo", "says it again", |args, _| async move {
        Ok(json!({
            "content": [{ "type": "text", "text": args.text("say")? }],
            "structuredContent": { "said": 1.5 },
            "_meta": { "example.org/kept": [1, 2] },
        }))
    });
    let at = gate.clone();
    let gated = Tool::new("gated", "waits at the gate", move |_, cx| {
        let gate = at.clone();
        async move {
            gate.run();
            cx.progress(1.0, 2.0);
            gate.wait_for_permit().await?;
            Ok(text("through"))
        }
    });
    let fails = Tool::new(
        "fails",
        "fails",
        |_, _| async move { Err("it failed".into()) },
    );
    let broken = Tool::new("broken", "ends in an error", |_, _| async move {
        Err(ToolFailure::error(-31_999, "it broke"))
    });
    let at = gate.clone();
    let ask = Tool::new("ask", "asks for a name", move |_, cx| {
        let gate = at.clone();
        async move {
            gate.run();
            let answer = cx.elicit_raw(form("Who?")).await?;
            Ok(text(without_task_id(answer)))
        }
    });
    let first = Tool::new("first", "asks before it begins", |_, cx| async move {
        let who = cx.request_input_first_as("who", InputKind::ElicitForm, form("Who?"));
        Ok(text(without_task_id(who.await?)))
    });
    let two = Tool::new("two", "asks two things at once", |_, cx| async move {
        let (one, other) = tokio::join!(cx.elicit_raw(form("One?")), cx.elicit_raw(form("Two?")));
        Ok(text(format!(
            "{} {}",
            without_task_id(one?),
            without_task_id(other?)
        )))
    });
    let think = Tool::new("think", "asks a model", |_, cx| async move {
        let thought = cx
            .sample_raw(json!({ "messages": [], "maxTokens": 1 }))
            .await;
        Ok(text(
            thought.map_or_else(|error| error.to_string(), without_task_id),
        ))
    });
    let late = Tool::new("late", "asks after a while", |_, cx| async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let answer = cx.elicit_raw(form("Still there?")).await?;
        Ok(text(without_task_id(answer)))
    });
    let roots = Tool::new("roots", "asks for folders", |_, cx| async move {
        Ok(text(without_task_id(cx.roots().await?)))
    });
    let all = [
        echo, gated, fails, broken, ask, first, two, late, think, roots,
    ];
    let support = if server.has_tasks() {
        TaskSupport::Optional
    } else {
        TaskSupport::Forbidden
    };
    let mut tools = all
        .map(|tool| tool.task(support))
        .into_iter()
        .fold(Tools::new(), Tools::with);
    let at = gate.clone();
    let reads = Tool::new("reads", "only reads", move |args, _| {
        let gate = at.clone();
        async move {
            gate.run();
            if args.get("wait").is_some() {
                gate.wait_for_permit().await?;
            }
            Ok(text("read"))
        }
    });
    tools = tools.with(reads.hints(Hints::READ_ONLY).task(support));
    if server.has_tasks() {
        let must = Tool::new("must", "runs only as a task", |_, _| async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(text("done"))
        });
        tools = tools.with(must.task(TaskSupport::Required));
        let at = gate.clone();
        let keeps = Tool::new("keeps", "waits at the gate, as a task", move |_, _| {
            let gate = at.clone();
            async move {
                gate.run();
                gate.wait_for_permit().await?;
                Ok(text("through"))
            }
        });
        tools = tools.with(keeps.task(TaskSupport::Required));
    }
    tools
}

/// A response without the id of its task (V1-INPUT-9).
fn without_task_id(mut answer: Value) -> String {
    answer.as_object_mut().unwrap().remove("_meta");
    answer.to_string()
}

fn form(message: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    })
}
