//! The harness of every race, and the conditions that must hold at its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{EndedTask, EngineError, NewCall};
use outlast_engine::store::Snapshot;
use outlast_engine::task::TtlPolicy;
use outlast_engine::{
    Clock, Ending, Engine, Ids, InputKey, InputKinds, InputResponse, NodeId, Origin, Owner, Policy,
    RetryClass, Scope, Store, Task, TaskId,
};
use outlast_wire::Timestamp;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, MaxSteps, Runner};

use crate::interleaved_store::InterleavedStore;
use crate::tools::{RaceTools, raw};

/// One store, one clock, and any number of engines.
pub(crate) struct Harness {
    pub(crate) store: Arc<InterleavedStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tools: Arc<RaceTools>,
    names: Arc<SequentialIds>,
}

/// A clock that the test advances.
pub(crate) struct ManualClock(AtomicU64);

struct SequentialIds(AtomicU64);

/// Runs `scenario` with many schedules: random ones, and priorities that change at a few points.
pub(crate) fn explore<F>(scenario: impl Fn(Harness) -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let scenario = Arc::new(scenario);
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    // A lost wake-up shows as a scenario that never ends.
    config.max_steps = MaxSteps::FailAfter(100_000);
    config.silence_warnings = true;
    let again = scenario.clone();
    let once = move || block_on(again(Harness::new()));
    Runner::new(RandomScheduler::new(iterations()), config.clone()).run(once);
    let once = move || block_on(scenario(Harness::new()));
    Runner::new(PctScheduler::new(4, iterations() / 2), config).run(once);
}

impl Harness {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            clock: Arc::new(ManualClock(AtomicU64::new(1_000))),
            tools: Arc::default(),
            names: Arc::new(SequentialIds(AtomicU64::new(1))),
        }
    }

    pub(crate) async fn engine(&self) -> Engine {
        Engine::builder(self.store.clone())
            .clock(self.clock.clone())
            .ids(self.names.clone())
            .policy(
                Policy::default()
                    .with_ttl_policy(TtlPolicy::Strict)
                    .with_max_attempts(10),
            )
            .runner("tools", self.tools.clone())
            .open()
            .await
            .unwrap()
            .0
    }

    pub(crate) async fn snapshot(&self, id: TaskId) -> Option<Snapshot> {
        self.store.get(&Scope::AnyTask, id).await.unwrap()
    }

    /// Waits until no call runs, no subscriber waits and no task is open: P4, P6, and no leak. Then
    /// closes.
    pub(crate) async fn finish(&self, engines: impl IntoIterator<Item = Engine>) {
        let engines: Vec<_> = engines.into_iter().collect();
        while !self.is_idle(&engines).await {
            yield_now().await;
        }
        self.tools.started_attempts();
        let endings = self.store.endings.lock().unwrap().clone();
        assert!(endings.values().all(|times| *times == 1), "P2: {endings:?}");
        for engine in engines {
            engine.shutdown(Duration::ZERO).await.unwrap();
        }
    }

    async fn is_idle(&self, engines: &[Engine]) -> bool {
        let usage = self.store.usage(&owner()).await.unwrap();
        usage.open == 0
            && engines
                .iter()
                .all(|engine| engine.running() == 0 && engine.subscribers() == 0)
    }
}

impl ManualClock {
    pub(crate) fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

impl Ids for SequentialIds {
    fn task(&self) -> TaskId {
        TaskId::from_bits(u128::from(self.0.fetch_add(1, Ordering::SeqCst)))
    }

    fn node(&self) -> NodeId {
        NodeId(self.0.fetch_add(1, Ordering::SeqCst))
    }
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
        params: None,
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

pub(crate) async fn create(engine: &Engine, call: NewCall) -> TaskId {
    engine.create(call).await.unwrap().task().id
}

/// Spawns a waiter for the end of a task.
pub(crate) fn waiter(engine: &Engine, id: TaskId) -> JoinHandle<Result<EndedTask, EngineError>> {
    let engine = engine.clone();
    spawn(async move { engine.wait(&ada(), id).await })
}

/// Whether an ending has its body, or none if cancelled.
pub(crate) fn is_whole(settled: &EndedTask) -> bool {
    settled.body.is_some() == (settled.summary.ending != Ending::Cancelled)
}

pub(crate) fn open_keys(task: &Task) -> Vec<InputKey> {
    let open = task.outstanding().into_iter();
    open.flat_map(|all| all.iter().map(|(key, _)| key.clone()))
        .collect()
}

pub(crate) fn accept(key: &InputKey) -> BTreeMap<InputKey, InputResponse> {
    [(key.clone(), InputResponse::Result(raw("2")))].into()
}

/// Answers the first input request of a task, if it makes one before it ends.
pub(crate) async fn answer_first(engine: &Engine, id: TaskId) {
    loop {
        match engine.get(&ada(), id).await {
            Ok(Snapshot::Open(task)) => {
                if let [key, ..] = &open_keys(&task)[..] {
                    engine.provide_input(&ada(), id, accept(key)).await.unwrap();
                    return;
                }
            }
            _ => return,
        }
        yield_now().await;
    }
}

/// How many random schedules of each scenario run. Half as many run with priorities.
fn iterations() -> usize {
    let races = std::env::var("RACES").ok();
    races.map_or(2_000, |races| races.parse().unwrap())
}
