//! A server with a few tools. Some of them wait at a gate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::Engine;
use outlast::resources::{Contents, Resource, Resources};
use outlast::store::open_store;
use outlast::store::{MemoryStore, Store};
use outlast::task::Policy;
use outlast::tools::Hints;
use outlast::transport::http::{HttpOptions, HttpServer, serve};
use outlast::{Level, Server, ServerError, TaskSupport, Tool, Tools, text};
use outlast_testkit::mcp::HttpClient;
use serde_json::json;
use tokio::sync::Semaphore;

/// A running server.
pub(crate) struct Harness {
    pub(crate) server: HttpServer,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) resources: Resources,
    /// Every permit lets one tool continue.
    pub(crate) gate: Arc<Semaphore>,
}

impl Harness {
    /// A server with a memory store.
    pub(crate) async fn new() -> Self {
        Self::with(HttpOptions::default()).await
    }

    pub(crate) async fn with(options: HttpOptions) -> Self {
        Self::with_policy(options, Policy::default()).await
    }

    pub(crate) async fn with_policy(options: HttpOptions, policy: Policy) -> Self {
        Self::on(Arc::new(MemoryStore::new()), options, policy).await
    }

    /// A server with a SQLite file.
    pub(crate) async fn on_file(file: &Path, options: HttpOptions) -> Self {
        let url = file.to_str().unwrap().parse().unwrap();
        let store = open_store(&url, Default::default()).await.unwrap();
        Self::on(store, options, Policy::default()).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>, options: HttpOptions, policy: Policy) -> Self {
        let (harness, start) = Self::starting(store, options, policy).await;
        start.await.unwrap();
        harness
    }

    /// A server that rejects every request until the future is done.
    pub(crate) async fn starting(
        store: Arc<dyn Store>,
        options: HttpOptions,
        policy: Policy,
    ) -> (Self, impl Future<Output = Result<(), ServerError>> + Send) {
        let gate = Arc::new(Semaphore::new(0));
        let resource = Resource::new("test:one", "one", || async { Ok(Contents::text("1")) });
        let resources = Resources::new().with(resource);
        let (running, start) = Server::builder("test", "1")
            .tools(tools(&gate))
            .resources(resources.clone())
            .store(store.clone())
            .policy(policy)
            .build()
            .starting();
        let harness = Self {
            server: serve(running.mcp().clone(), options).await.unwrap(),
            engine: running.engine().clone(),
            store,
            resources,
            gate,
        };
        (harness, start)
    }

    /// An initialized client.
    pub(crate) async fn client(&self) -> HttpClient {
        HttpClient::connect(self.server.local_addr()).await
    }

    pub(crate) fn client_without_session(&self) -> HttpClient {
        HttpClient::without_session(self.server.local_addr())
    }

    /// Stops the server and its calls at once, and closes the store.
    pub(crate) async fn stop(self) {
        drop(self.server);
        self.engine.shutdown(Duration::ZERO).await.unwrap();
        self.store.close().await.unwrap();
    }
}

fn tools(gate: &Arc<Semaphore>) -> Tools {
    let echo = Tool::new("echo", "says it again", |args, _| async move {
        Ok(text(args.text("say")?))
    });
    let at = gate.clone();
    let steps = Tool::new("steps", "takes three steps", move |_, cx| {
        let gate = at.clone();
        async move {
            for step in 1..=3 {
                pass(&gate).await;
                cx.progress(step.into(), 3.0);
            }
            pass(&gate).await;
            Ok(text("arrived"))
        }
    });
    let at = gate.clone();
    let says = Tool::new("says", "speaks three times", move |_, cx| {
        let gate = at.clone();
        async move {
            for word in ["one", "two", "three"] {
                pass(&gate).await;
                cx.log(Level::Info, word);
            }
            pass(&gate).await;
            Ok(text("said"))
        }
    });
    let at = gate.clone();
    let gated = Tool::new("gated", "waits at the gate", move |_, _| {
        let gate = at.clone();
        async move {
            pass(&gate).await;
            Ok(text("through"))
        }
    });
    let ask = Tool::new("ask", "asks for a name", |_, cx| async move {
        let form = json!({
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let response = cx.elicit_raw(form).await?;
        Ok(text(format!("Hello, {}!", response["content"]["name"])))
    });
    let at = gate.clone();
    let ask_later = Tool::new("ask_later", "asks behind the gate", move |_, cx| {
        let gate = at.clone();
        async move {
            pass(&gate).await;
            let response = cx.elicit_raw(json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } }));
            Ok(text(
                response.await?["content"]["name"]
                    .as_str()
                    .unwrap_or_default(),
            ))
        }
    });
    let again = Hints::READ_ONLY;
    let optional = [steps, says, gated, ask, ask_later]
        .map(|tool| tool.task(TaskSupport::Optional).hints(again));
    optional
        .into_iter()
        .fold(Tools::new().with(echo), Tools::with)
}

async fn pass(gate: &Semaphore) {
    gate.acquire().await.unwrap().forget();
}
