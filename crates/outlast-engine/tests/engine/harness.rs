//! The harness of the engine tests: an engine whose tools do what their names say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EndedTask, NewCall, Runner};
use outlast_engine::task::ResumeState;
use outlast_engine::{
    Committed, Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse,
    MemoryStore, Origin, Outcome, Owner, Policy, RetryClass, Scope, Store, Task, TaskId,
};
use outlast_testkit::{SimClock, within};
use outlast_wire::log::{Level, Log};
use outlast_wire::{Raw, Timestamp};

pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) tools: Arc<CountingTools>,
    pub(crate) store: Arc<dyn Store>,
}

/// Counts the calls that were run.
#[derive(Default)]
pub(crate) struct CountingTools {
    pub(crate) started: AtomicUsize,
    pub(crate) finished: AtomicUsize,
    pub(crate) reattached: AtomicUsize,
}

impl Harness {
    pub(crate) async fn new() -> Self {
        Self::with(Policy::default()).await
    }

    pub(crate) async fn with(policy: Policy) -> Self {
        Self::on(Arc::new(MemoryStore::new()), policy).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>, policy: Policy) -> Self {
        let clock = Arc::new(SimClock::new(Timestamp(1_700_000_000_000)));
        let tools = Arc::new(CountingTools::default());
        let engine = open(&store, policy, &clock, &tools).await;
        Self {
            engine,
            clock,
            tools,
            store,
        }
    }

    /// A second engine on the same store.
    pub(crate) async fn second_engine(&self) -> Self {
        let (clock, tools, store) = (self.clock.clone(), Arc::default(), self.store.clone());
        let engine = open(&store, self.engine.policy().clone(), &clock, &tools).await;
        Self {
            engine,
            clock,
            tools,
            store,
        }
    }

    pub(crate) async fn create(&self, tool: &str) -> Committed<Task> {
        self.engine.create(call(tool)).await.unwrap().task().clone()
    }

    pub(crate) async fn wait(&self, id: TaskId) -> EndedTask {
        let scope = ada();
        let ended = self.engine.wait(&scope, id);
        within("the end of a task", ended).await.unwrap()
    }
}

async fn open(
    store: &Arc<dyn Store>,
    policy: Policy,
    clock: &Arc<SimClock>,
    tools: &Arc<CountingTools>,
) -> Engine {
    let builder = Engine::builder(store.clone())
        .policy(policy)
        .clock(clock.clone());
    builder
        .runner("tools", tools.clone())
        .open()
        .await
        .unwrap()
        .0
}

pub(crate) fn owner() -> Owner {
    Owner::principal("ada")
}

pub(crate) fn ada() -> Scope {
    Scope::OwnedBy(owner())
}

pub(crate) fn call(tool: &str) -> NewCall {
    let origin = Origin {
        method: "tools/call".into(),
        tool: Some(tool.into()),
        params: Some(raw(r#"{"name":"x","arguments":{}}"#)),
        runner: "tools".into(),
        progress_token: None,
        retry: RetryClass::Never,
        accepts: InputKinds::all(),
    };
    NewCall::new(owner(), origin)
}

pub(crate) fn repeatable(tool: &str) -> NewCall {
    let mut call = call(tool);
    call.origin.retry = RetryClass::Rerun;
    call
}

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text.into()).unwrap()
}

pub(crate) fn form() -> InputRequest {
    InputRequest::new(InputKind::ElicitForm, Some(raw(r#"{"message":"who?"}"#)))
}

pub(crate) fn accept(key: &InputKey) -> std::collections::BTreeMap<InputKey, InputResponse> {
    [(
        key.clone(),
        InputResponse::Result(raw(r#"{"action":"accept"}"#)),
    )]
    .into()
}

/// The keys that a task awaits.
pub(crate) fn open_keys(task: &Task) -> Vec<InputKey> {
    task.outstanding()
        .into_iter()
        .flat_map(|all| all.iter().map(|(key, _)| key.clone()))
        .collect()
}

/// Advances the paused clock by `millis` milliseconds and runs everything that becomes ready.
pub(crate) async fn advance_clock(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[async_trait]
impl Runner for CountingTools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        self.started.fetch_add(1, Ordering::SeqCst);
        let outcome = match call.tool.as_deref().unwrap_or_default() {
            "echo" => Outcome::Result(raw(r#"{"content":[]}"#)),
            "fail" => Outcome::ToolError(raw(r#"{"isError":true}"#), Some("it broke".into())),
            "error" => Outcome::error(ErrorCode(-32000), "no luck"),
            "panic" => panic!("on purpose"),
            "large" => Outcome::Result(raw(&format!("\"{}\"", "x".repeat(20 << 20)))),
            "second" => {
                advance_clock(1_000).await;
                Outcome::Result(raw("1"))
            }
            "talk" => {
                for step in 1..=3 {
                    cx.status(&format!("step {step}"));
                    advance_clock(100).await;
                }
                Outcome::Result(raw("2"))
            }
            "log" => {
                cx.log(Log {
                    level: Level::Warning,
                    logger: None,
                    data: raw(r#"{"left":3}"#),
                });
                cx.log(Log {
                    level: Level::Info,
                    logger: None,
                    data: raw(&format!("\"{}\"", "x".repeat(1 << 20))),
                });
                advance_clock(100).await;
                Outcome::Result(raw("2"))
            }
            "chatter" => {
                for step in 0..10_000 {
                    cx.status(&format!("step {step}"));
                }
                Outcome::Result(raw("3"))
            }
            "ask" => match cx.request_input(form()).await {
                Ok(InputResponse::Result(answer)) => Outcome::Result(answer),
                other => Outcome::error(ErrorCode(-1), format!("{other:?}")),
            },
            "ask-twice" => {
                let (one, two) = tokio::join!(cx.request_input(form()), cx.request_input(form()));
                match (one, two) {
                    (Ok(_), Ok(_)) => Outcome::Result(raw("\"both\"")),
                    other => Outcome::error(ErrorCode(-1), format!("{other:?}")),
                }
            }
            "ask-briefly" => {
                let response =
                    tokio::time::timeout(Duration::from_millis(500), cx.request_input(form()))
                        .await;
                advance_clock(500).await;
                Outcome::Result(raw(if response.is_ok() { "true" } else { "false" }))
            }
            "obedient" => {
                cx.cancelled().await;
                Outcome::Cancelled
            }
            "ignores_cancel" => {
                advance_clock(3_600_000).await;
                Outcome::Result(raw("4"))
            }
            "detach" => {
                let state = ResumeState(b"elsewhere".as_slice().into());
                cx.detach(state, None).await.unwrap();
                Outcome::Result(raw("\"dropped\""))
            }
            "attach" => {
                cx.save_resume_state(ResumeState(b"upstream-7".as_slice().into()))
                    .await
                    .unwrap();
                advance_clock(10_000).await;
                Outcome::Result(raw("5"))
            }
            "attach-and-ask" => {
                cx.save_resume_state(ResumeState(b"upstream-8".as_slice().into()))
                    .await
                    .unwrap();
                match cx.request_input_as(InputKey::new("theirs"), form()).await {
                    Ok(answered) => {
                        answered.confirm().await.unwrap();
                        Outcome::Result(raw("6"))
                    }
                    Err(error) => Outcome::error(ErrorCode(-1), error.to_string()),
                }
            }
            other => Outcome::error(ErrorCode(-32602), format!("no tool {other}")),
        };
        self.finished.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    async fn reattach(
        &self,
        _: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        self.reattached.fetch_add(1, Ordering::SeqCst);
        for key in cx.pending_input() {
            let answered = cx.response_to(key).await.ok()?;
            answered.confirm().await.ok()?;
        }
        let found = String::from_utf8(handle.0.to_vec()).ok()?;
        Some(Outcome::Result(Raw::encode(&found).ok()?))
    }

    fn can_reattach(&self) -> bool {
        true
    }
}
