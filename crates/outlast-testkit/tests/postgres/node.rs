//! A node for tests: an engine with its own store and its own runtime, so that it can die alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EndedTask, NewCall, Progress, Runner};
use outlast_engine::{
    Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse, Origin,
    Outcome, Owner, RetryClass, Scope, Store, TaskId,
};
use outlast_store::{Postgres, PostgresUrl};
use outlast_testkit::{until, within};
use outlast_wire::Raw;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;

pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tools: Arc<Tools>,
    runtime: Option<Runtime>,
}

/// Tools: `gate` ends when the gate opens, `report` reports progress when it opens and then ends, `ask` ends with the response to its input request.
pub(crate) struct Tools {
    pub(crate) started: AtomicUsize,
    gate: watch::Sender<bool>,
}

impl Node {
    /// Starts a node on the store at `url`.
    pub(crate) async fn start(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be built");
        let tools = Arc::new(Tools {
            started: AtomicUsize::new(0),
            gate: watch::Sender::new(false),
        });
        let (url, runner) = (PostgresUrl::new(url), tools.clone());
        let opened = runtime.spawn(async move {
            let store = Postgres::open(&url).await.expect("the database runs");
            let store: Arc<dyn Store> = Arc::new(store);
            let builder = Engine::builder(store.clone()).runner("tools", runner);
            let (engine, _) = builder.open().await.expect("the store is open");
            (engine, store)
        });
        let (engine, store) = opened.await.expect("the node starts");
        Self {
            engine,
            store,
            tools,
            runtime: Some(runtime),
        }
    }

    /// Runs a future on the runtime of the node.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let runtime = self.runtime.as_ref().expect("the node lives");
        within(what, runtime.spawn(work))
            .await
            .expect("the work does not panic")
    }

    pub(crate) async fn create(&self, tool: &str, retry: RetryClass) -> TaskId {
        let (engine, call) = (self.engine.clone(), call(tool, retry));
        let before = self.tools.started.load(Ordering::SeqCst);
        let id = self.run("a new task", async move {
            engine.create(call).await.expect("there is room").task().id
        });
        let id = id.await;
        until("the call starts", || {
            self.tools.started.load(Ordering::SeqCst) > before
        });
        id
    }

    /// Waits for the end of a task.
    pub(crate) async fn ended(&self, id: TaskId) -> EndedTask {
        let engine = self.engine.clone();
        let wait = async move { engine.wait(&scope(), id).await.expect("it is stored") };
        self.run("the end of a task", wait).await
    }

    /// Waits until the node reads this task after an outage.
    pub(crate) async fn reads_again(&self, id: TaskId) {
        let engine = self.engine.clone();
        let read = async move {
            while engine.get(&scope(), id).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        self.run("the end of the outage", read).await;
    }

    /// Answers the input request of `ask` when it is stored.
    pub(crate) async fn answer(&self, id: TaskId) {
        let engine = self.engine.clone();
        let answer = async move {
            loop {
                let task = engine.load(&scope(), id).await.expect("it is stored");
                if task.outstanding().is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let response = InputResponse::Result(raw("7"));
            let responses = BTreeMap::from([(InputKey::new(KEY), response)]);
            let provided = engine.provide_input(&scope(), id, responses).await;
            provided.expect("it is stored");
        };
        self.run("an input request", answer).await;
    }

    /// Lets the calls of `gate` end.
    pub(crate) fn open_gate(&self) {
        self.tools.gate.send_replace(true);
    }

    /// Ends the node without any further step, as a killed process does.
    pub(crate) fn die(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Node {
    /// A runtime must not be dropped inside another one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[async_trait]
impl Runner for Tools {
    async fn run(&self, origin: Arc<Origin>, cx: CallContext) -> Outcome {
        self.started.fetch_add(1, Ordering::SeqCst);
        if origin.tool.as_deref() == Some("ask") {
            let request = InputRequest::new(InputKind::ElicitForm, None);
            let response = cx.request_input_as(InputKey::new(KEY), request).await;
            return match response.map(|answered| answered.response) {
                Ok(InputResponse::Result(answer)) => Outcome::Result(answer),
                _ => Outcome::error(ErrorCode(-1), "no response"),
            };
        }
        let mut gate = self.gate.subscribe();
        let opened = gate.wait_for(|open| *open).await;
        drop(opened.expect("the tools have the sender"));
        if origin.tool.as_deref() == Some("report") {
            cx.progress(Progress {
                done: 1.0,
                total: Some(2.0),
                message: Some("half".into()),
            });
            // The end of a task discards its progress that waits.
            cx.status("reported");
            std::future::pending::<()>().await;
        }
        Outcome::Result(raw("1"))
    }
}

pub(crate) fn call(tool: &str, retry: RetryClass) -> NewCall {
    let origin = Origin {
        method: "tools/call".into(),
        tool: Some(tool.into()),
        params: None,
        runner: "tools".into(),
        progress_token: None,
        retry,
        accepts: InputKinds::all(),
    };
    NewCall::new(owner(), origin)
}

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text.into()).expect("it is JSON")
}

pub(crate) fn owner() -> Owner {
    Owner::principal("ada")
}

pub(crate) fn scope() -> Scope {
    Scope::OwnedBy(owner())
}

const KEY: &str = "question";
