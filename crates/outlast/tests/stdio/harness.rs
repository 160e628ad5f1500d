//! A client on stdio, and the tools of its server.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::Engine;
use outlast::server::Middleware;
use outlast::store::{MemoryStore, Store};
use outlast::task::Policy;
use outlast::tools::Hints;
use outlast::transport::stdio;
use outlast::wire::Timestamp;
use outlast::{Level, Server, ServerBuilder, TaskSupport, Tool, Tools, text};
use outlast_testkit::SimClock;
use outlast_testkit::mcp::{Line, LineClient, check_v1};
use serde_json::{Value, json};

/// A client that writes its own messages.
pub(crate) struct StdioClient {
    line: LineClient,
    pub(crate) engine: Engine,
}

impl StdioClient {
    /// An initialized client of a server with all sample tools, at 2025-11-25.
    pub(crate) async fn new() -> Self {
        Self::with(Policy::default()).await
    }

    /// The same with a server policy.
    pub(crate) async fn with(policy: Policy) -> Self {
        let store = Arc::new(MemoryStore::new());
        let mut client = Self::serving(store, policy, samples(), |server| server).await;
        client
            .introduce(
                "2025-11-25",
                json!({ "elicitation": {}, "sampling": {}, "roots": {} }),
            )
            .await;
        client
    }

    pub(crate) async fn connect(store: Arc<dyn Store>, tools: Tools) -> Self {
        Self::serving(store, Policy::default(), tools, |server| server).await
    }

    pub(crate) async fn with_middleware(
        store: Arc<dyn Store>,
        tools: Tools,
        middleware: Vec<Arc<dyn Middleware>>,
    ) -> Self {
        let with = |server| {
            middleware
                .into_iter()
                .fold(server, ServerBuilder::middleware)
        };
        Self::serving(store, Policy::default(), tools, with).await
    }

    /// A client of a server that has more than sample tools.
    pub(crate) async fn of(offers: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::serving(store, Policy::default(), samples(), offers).await
    }

    /// A client of a server without tools.
    pub(crate) async fn without_tools(offers: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::serving(store, Policy::default(), Tools::new(), offers).await
    }

    async fn serving(
        store: Arc<dyn Store>,
        policy: Policy,
        tools: Tools,
        offers: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let builder = Server::builder("test", "1")
            .tools(tools)
            .store(store)
            .policy(policy)
            .clock(Arc::new(SimClock::new(Timestamp(1_700_000_000_000))));
        let builder = offers(builder);
        let running = builder.build().start().await.unwrap();
        let mcp = running.mcp().clone();
        let line = Line::served_by(|read, write| stdio::serve_on(mcp, read, write));
        Self {
            line: LineClient::new(line, check_v1),
            engine: running.engine().clone(),
        }
    }

    /// Sends `initialize` and returns its result.
    pub(crate) async fn introduce(&mut self, version: &str, capabilities: Value) -> Value {
        let response = self.initialize(version, capabilities).await;
        response["result"].clone()
    }

    /// Asserts that no message arrives for a while, except those that were kept.
    pub(crate) async fn silence(&mut self) {
        self.line.silence(Duration::from_millis(300)).await;
    }
}

impl Deref for StdioClient {
    type Target = LineClient;

    fn deref(&self) -> &LineClient {
        &self.line
    }
}

impl DerefMut for StdioClient {
    fn deref_mut(&mut self) -> &mut LineClient {
        &mut self.line
    }
}

/// Tools that do what their name says.
pub(crate) fn samples() -> Tools {
    let echo = Tool::new("echo", "says it again", |args, _| async move {
        Ok(text(args.text("say")?))
    });
    let slow = Tool::new("slow", "takes a second", |_, cx| async move {
        cx.status("half way");
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(text("done"))
    });
    let steps = Tool::new("steps", "reports progress", |_, cx| async move {
        for step in 1..=3 {
            cx.progress(step.into(), 3.0);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(text("done"))
    });
    let log = Tool::new("log", "speaks while it works", |_, cx| async move {
        for (level, data) in [
            (Level::Debug, json!("looking")),
            (Level::Info, json!({ "found": 3 })),
            (Level::Error, json!("one is broken")),
        ] {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cx.log(level, data);
        }
        Ok(text("done"))
    });
    let ask = Tool::new("ask", "asks for a name", |_, cx| async move {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let response = cx.elicit_raw(form).await?;
        Ok(text(format!(
            "{}: {}",
            response["action"], response["content"]["name"]
        )))
    });
    let sample = Tool::new(
        "sample",
        "asks the model and for roots",
        |_, cx| async move {
            let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
            let received = cx.sample_raw(json!({ "messages": [message], "maxTokens": 10 }));
            let (received, roots) = tokio::join!(received, cx.roots());
            Ok(text(format!("{} {}", received?["model"], roots?["roots"])))
        },
    );
    let fail = Tool::new(
        "fail",
        "fails",
        |_, _| async move { Err("it broke".into()) },
    );
    let must = Tool::new("must", "runs only as a task", |_, _| async move {
        Ok(text("done"))
    });
    let endless = Tool::new("endless", "never ends", |_, _| std::future::pending());
    let optional = [slow, steps, log, ask, sample, fail, endless];
    let optional = optional
        .into_iter()
        .map(|tool| tool.task(TaskSupport::Optional));
    let must = must.task(TaskSupport::Required).immediate("It has begun.");
    let echo = echo.hints(Hints::READ_ONLY);
    optional.chain([echo, must]).fold(Tools::new(), Tools::with)
}
