//! One run: three nodes under load, events that disturb them, and the checks at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EndedTask, EngineError, NewCall, Runner};
use outlast_engine::store::Snapshot;
use outlast_engine::{
    Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse, NodeId,
    Origin, Outcome, Owner, Policy, Quota, RetryClass, Scope, Store, TaskId,
};
use outlast_testkit::death::SeededRandom;
use outlast_testkit::nodes::{Ending, TaskKind};
use outlast_testkit::{CountingIds, SimClock};
use outlast_wire::{Raw, Timestamp};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::database::{Database, Fault, State};
use crate::node_store::{Link, LinkState, NodeStore};
use crate::report::{Counts, Report};

/// Runs a seed. Returns what happened, as counts and in full.
pub(crate) fn run(seed: u64, fault: Option<Fault>) -> (Counts, Vec<(u128, String)>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut scenario = Scenario::new(seed, fault);
        scenario.disturb().await;
        scenario.settle().await;
        scenario.check().await;
        let contents = scenario.world.report.contents();
        (contents.counts.clone(), contents.trace.clone())
    })
}

struct Scenario {
    world: Arc<World>,
    random: SeededRandom,
    nodes: Vec<Node>,
    started: u32,
}

/// What all nodes share.
struct World {
    database: Arc<Database>,
    clock: Arc<SimClock>,
    report: Arc<Report>,
    seed: u64,
    draining: std::sync::atomic::AtomicBool,
}

struct Node {
    link: Arc<Link>,
    /// Its start, its clients and its load.
    work: JoinSet<()>,
    engine: Arc<std::sync::Mutex<Option<(Engine, NodeStore)>>>,
}

impl Scenario {
    fn new(seed: u64, fault: Option<Fault>) -> Self {
        let world = Arc::new(World {
            database: Database::new(fault),
            clock: Arc::new(SimClock::new(Timestamp(1_800_000_000_000))),
            report: Arc::new(Report::new()),
            seed,
            draining: false.into(),
        });
        let mut scenario = Self {
            world,
            random: SeededRandom::new(seed),
            nodes: Vec::new(),
            started: 0,
        };
        for _ in 0..NODES {
            let node = scenario.start_node();
            scenario.nodes.push(node);
        }
        scenario
    }

    fn start_node(&mut self) -> Node {
        self.started += 1;
        let link = Link::new(self.random.next());
        let engine = Arc::default();
        let mut work = JoinSet::new();
        let load = Load {
            world: self.world.clone(),
            link: link.clone(),
            random: SeededRandom::new(self.random.next()),
        };
        work.spawn(load.run(self.started, Arc::clone(&engine)));
        Node { link, work, engine }
    }

    /// Lets the nodes work while they and the database are disturbed.
    async fn disturb(&mut self) {
        let events = 4 + self.random.below(8);
        for _ in 0..events {
            sleep(Duration::from_millis(500 + self.random.below(7_000))).await;
            let at = self.random.below(NODES as u64) as usize;
            match self.random.below(10) {
                0..3 => {
                    self.kill(at);
                    sleep(Duration::from_millis(self.random.below(4_000))).await;
                    self.nodes[at] = self.start_node();
                }
                3 | 4 => {
                    let ms = 1_000 + self.random.below(24_000);
                    self.disconnect(at, LinkState::Frozen, ms);
                    self.world.report.contents().counts.freezes += 1;
                }
                5 | 6 => {
                    let ms = 500 + self.random.below(15_000);
                    self.disconnect(at, LinkState::Cut, ms);
                    self.world.report.contents().counts.cuts += 1;
                }
                7 => self.shut_down(at).await,
                8 => {
                    let ms = 200 + self.random.below(12_000);
                    self.interrupt_database(State::Down, ms).await;
                    self.world.report.contents().counts.restarts += 1;
                }
                _ => {
                    let ms = 500 + self.random.below(9_000);
                    self.interrupt_database(State::Stalled, ms).await;
                    self.world.report.contents().counts.stalls += 1;
                }
            }
        }
    }

    fn kill(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        self.world.report.trace(format!("kill {at}"));
        node.link.set(LinkState::Dead);
        node.work.abort_all();
        self.world.report.contents().counts.kills += 1;
    }

    fn disconnect(&mut self, at: usize, how: LinkState, ms: u64) {
        self.world.report.trace(format!("{how:?} {at} {ms} ms"));
        let link = self.nodes[at].link.clone();
        link.set(how);
        tokio::spawn(async move {
            sleep(Duration::from_millis(ms)).await;
            link.set(LinkState::Up);
        });
    }

    async fn interrupt_database(&self, how: State, ms: u64) {
        self.world.report.trace(format!("{how:?} {ms} ms"));
        self.world.database.set(how);
        sleep(Duration::from_millis(ms)).await;
        self.world.database.set(State::Up);
    }

    /// Stops a node as SIGTERM does, and starts another.
    async fn shut_down(&mut self, at: usize) {
        self.world.report.trace(format!("shutdown {at}"));
        let stopped = self.nodes[at]
            .engine
            .lock()
            .expect("no test panics here")
            .take();
        if let Some((engine, store)) = stopped {
            let drain = Duration::from_millis(self.random.below(2_000));
            // The lease lapses if the node is cut off now.
            let _ = timeout(Duration::from_secs(5), engine.shutdown(drain)).await;
            let _ = store.close().await;
            self.world.report.contents().counts.shutdowns += 1;
        }
        // A process that does not end in time is killed.
        self.nodes[at].link.set(LinkState::Dead);
        self.nodes[at].work.abort_all();
        self.nodes[at] = self.start_node();
    }

    /// Ends all disturbances with the death of one node, and waits until every task has ended.
    async fn settle(&mut self) {
        let at = self.random.below(NODES as u64) as usize;
        self.kill(at);
        self.world.database.set(State::Up);
        for node in &self.nodes {
            node.link.set(LinkState::Up);
            node.link.make_reliable();
        }
        let dead = self.executors_without(&self.live_nodes()).await;
        self.world
            .draining
            .store(true, std::sync::atomic::Ordering::SeqCst);
        sleep(RECOVERY_LIMIT).await;
        // P4: within 20 s after the death, nothing belongs to a dead node.
        let still = self.executors_without(&self.live_nodes()).await;
        let still: Vec<_> = still
            .into_iter()
            .filter(|node| dead.contains(node))
            .collect();
        assert!(still.is_empty(), "tasks of dead nodes are open: {still:?}");
        self.nodes.remove(at);
        for node in &mut self.nodes {
            let ended = timeout(SETTLE_LIMIT, async {
                while let Some(ended) = node.work.join_next().await {
                    ended.expect("no client panics");
                }
            });
            // P6: every waiter is woken.
            assert!(ended.await.is_ok(), "a client still waits");
        }
    }

    fn live_nodes(&self) -> Vec<NodeId> {
        let live = self
            .nodes
            .iter()
            .filter(|node| node.link.state() != LinkState::Dead);
        let engines = live.filter_map(|node| {
            let engine = node.engine.lock().expect("no test panics here");
            engine.as_ref().map(|(engine, _)| engine.node())
        });
        engines.collect()
    }

    /// The executors of open tasks that are not among `nodes`.
    async fn executors_without(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let tasks = &self.world.database.tasks;
        let created: Vec<_> = self
            .world
            .report
            .contents()
            .created
            .keys()
            .copied()
            .collect();
        let mut executors = Vec::new();
        for id in created {
            let found = tasks.get(&Scope::AnyTask, id).await;
            if let Ok(Some(Snapshot::Open(task))) = found
                && !nodes.contains(&task.executor)
            {
                executors.push(task.executor);
            }
        }
        executors
    }

    async fn check(&self) {
        let tasks = &self.world.database.tasks;
        let report = &self.world.report;
        let created = report.contents().created.clone();
        for (id, kind) in created {
            let found = tasks
                .get(&Scope::AnyTask, id)
                .await
                .expect("memory does not fail");
            // P1 and P4: it is there, and it has ended.
            let Some(Snapshot::Ended(summary)) = found else {
                panic!("task {id} was acknowledged and is {found:?}");
            };
            let body = tasks
                .body(&Scope::AnyTask, id)
                .await
                .expect("memory does not fail");
            let attempt = summary.attempt.0;
            report.check(id, kind, attempt, &Ending::of(&EndedTask { summary, body }));
        }
    }
}

/// The clients of one node.
struct Load {
    world: Arc<World>,
    link: Arc<Link>,
    random: SeededRandom,
}

impl Load {
    async fn run(
        mut self,
        number: u32,
        shared: Arc<std::sync::Mutex<Option<(Engine, NodeStore)>>>,
    ) {
        let seed = u32::try_from(self.world.seed % 1_000_000).expect("it is small");
        let mut starts = 0;
        let (engine, store) = loop {
            let store = NodeStore::new(&self.world.database, &self.link);
            starts += 1;
            let ids = CountingIds::new(seed.wrapping_mul(4_096) + number * 64 + starts % 64);
            let runner = Work {
                report: self.world.report.clone(),
                link: self.link.clone(),
            };
            let builder = Engine::builder(Arc::new(store.clone()))
                .policy(policy())
                .clock(self.world.clock.clone())
                .ids(Arc::new(ids))
                .runner(RUNNER, Arc::new(runner));
            match builder.open().await {
                Ok((engine, _)) => break (engine, store),
                Err(_) => {
                    let _ = store.close().await;
                    sleep(RETRY_DELAY).await;
                }
            }
        };
        *shared.lock().expect("no test panics here") = Some((engine.clone(), store));
        let client = Client {
            engine,
            report: self.world.report.clone(),
        };
        let mut clients = JoinSet::new();
        while !self
            .world
            .draining
            .load(std::sync::atomic::Ordering::SeqCst)
        {
            sleep(Duration::from_millis(self.random.below(1_500))).await;
            match self.random.below(10) {
                0..4 => {
                    let (kind, ms) = (self.kind(), self.random.below(12_000));
                    let client = client.clone();
                    let cancel_after = self.random.percent(10).then(|| self.random.below(5_000));
                    clients.spawn(async move { client.create(kind, ms, cancel_after).await });
                }
                4 | 5 => {
                    if let Some(id) = self.any_task() {
                        let client = client.clone();
                        clients.spawn(async move { client.wait(id).await });
                    }
                }
                _ => self.answer(&client).await,
            }
            // A node that was shut down has no clients.
            if client.engine.check_open().is_err() {
                return;
            }
        }
        let open = |id: &TaskId| !client.report.has_ended(*id);
        while let Some(id) = {
            let created = client
                .report
                .contents()
                .created
                .keys()
                .copied()
                .collect::<Vec<_>>();
            created.into_iter().find(open)
        } {
            if client.engine.check_open().is_err() {
                return;
            }
            client.get(id).await;
            self.answer(&client).await;
            sleep(RETRY_DELAY).await;
        }
        while let Some(ended) = clients.join_next().await {
            ended.expect("no client panics");
        }
    }

    fn kind(&mut self) -> TaskKind {
        match self.random.below(3) {
            0 => TaskKind::Once,
            1 => TaskKind::Repeatable,
            _ => TaskKind::Ask,
        }
    }

    fn any_task(&mut self) -> Option<TaskId> {
        let contents = self.world.report.contents();
        let picked = self.random.below(contents.created.len() as u64) as usize;
        contents.created.keys().nth(picked).copied()
    }

    /// Answers the input requests of some tasks of all nodes.
    async fn answer(&mut self, client: &Client) {
        let asking: Vec<_> = {
            let contents = self.world.report.contents();
            let asks = contents.created.iter();
            let open = asks
                .filter(|(id, kind)| **kind == TaskKind::Ask && !contents.ended.contains_key(id));
            open.map(|(id, _)| *id).collect()
        };
        for id in asking {
            let value = self.random.below(1 << 40);
            let response = InputResponse::Result(raw(value));
            let responses = BTreeMap::from([(InputKey::new(KEY), response)]);
            // A response that is lost is sent again by another client.
            let _ = client
                .engine
                .provide_input(&Scope::AnyTask, id, responses)
                .await;
        }
    }
}

#[derive(Clone)]
struct Client {
    engine: Engine,
    report: Arc<Report>,
}

impl Client {
    async fn create(&self, kind: TaskKind, ms: u64, cancel_after: Option<u64>) {
        let (tool, retry) = match kind {
            TaskKind::Once => ("work", RetryClass::Never),
            TaskKind::Repeatable => ("work", RetryClass::Rerun),
            TaskKind::Ask => ("ask", RetryClass::Never),
        };
        let origin = Origin {
            method: "tools/call".into(),
            tool: Some(tool.into()),
            params: Some(raw(ms)),
            runner: RUNNER.into(),
            progress_token: None,
            retry,
            accepts: InputKinds::all(),
        };
        // A creation that fails may have taken place. It was not acknowledged, so nothing is checked.
        let Ok(created) = self.engine.create(NewCall::new(owner(), origin)).await else {
            return;
        };
        let id = created.task().id;
        self.report.created(id, kind);
        if let Some(ms) = cancel_after {
            sleep(Duration::from_millis(ms)).await;
            let _ = self.engine.cancel_now(&Scope::AnyTask, id).await;
        }
        self.wait(id).await;
    }

    async fn wait(&self, id: TaskId) {
        loop {
            match self.engine.wait(&Scope::AnyTask, id).await {
                Ok(ended) => return self.report.seen_ended(id, Ending::of(&ended)),
                Err(EngineError::NotFound) => panic!("task {id} was acknowledged and is lost"),
                Err(EngineError::Closing) => return,
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn get(&self, id: TaskId) {
        let had_ended = self.report.has_ended(id);
        match self.engine.get(&Scope::AnyTask, id).await {
            Ok(Snapshot::Open(_)) => self.report.seen_open(id, had_ended),
            Ok(Snapshot::Ended(_)) => {
                if let Ok(Some(ended)) = self.engine.outcome(&Scope::AnyTask, id).await {
                    self.report.seen_ended(id, Ending::of(&ended));
                }
            }
            Err(EngineError::NotFound) => panic!("task {id} was acknowledged and is lost"),
            Err(_) => {}
        }
    }
}

/// The tools: `work` takes a while and returns its attempt, `ask` returns the response to its input
/// request.
struct Work {
    report: Arc<Report>,
    link: Arc<Link>,
}

#[async_trait]
impl Runner for Work {
    async fn run(&self, origin: Arc<Origin>, cx: CallContext) -> Outcome {
        if self.link.state() == LinkState::Dead {
            // The process ended before it started this call.
            return std::future::pending().await;
        }
        self.report.started(cx.id(), cx.attempt().0);
        if origin.tool.as_deref() == Some("ask") {
            let request = InputRequest::new(InputKind::ElicitForm, None);
            let received = cx.request_input_as(InputKey::new(KEY), request).await;
            return match received.map(|answered| answered.response) {
                Ok(InputResponse::Result(answer)) => Outcome::Result(answer),
                // The store was away for too long.
                _ => Outcome::error(ErrorCode(-32603), "no response"),
            };
        }
        let params = origin.params.as_ref().expect("the work has a duration");
        let ms = params.as_str().parse().expect("durations are numbers");
        cx.status("works");
        sleep(Duration::from_millis(ms)).await;
        Outcome::Result(raw(u64::from(cx.attempt().0)))
    }
}

fn policy() -> Policy {
    Policy::default()
        .with_quota(
            Quota::default()
                .with_owner_open(40)
                .with_owner_retained(10_000)
                .with_open(40)
                .with_retained(10_000),
        )
        .with_max_attempts(100)
}

fn owner() -> Owner {
    Owner::principal("ada")
}

fn raw(number: u64) -> Raw {
    Raw::parse(number.to_string()).expect("a number is JSON")
}

/// The number of nodes.
const NODES: usize = 3;

const RUNNER: &str = "work";

const KEY: &str = "question";

/// How long after the death of its node a task may be open without another executor.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);

/// How long clients may wait for the last task.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);

const RETRY_DELAY: Duration = Duration::from_millis(200);
