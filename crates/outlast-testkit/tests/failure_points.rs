//! Every point at which a write can fail, for every kind of write, on both stores: nothing
//! acknowledged is lost (P1), no task stays `working` without a runner (P4), and each waiter gets
//! its outcome (P6).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EndedTask, NewCall, Runner};
use outlast_engine::store::Snapshot;
use outlast_engine::{
    Ending, Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse,
    MemoryStore, Origin, Outcome, Owner, Policy, RetryClass, Scope, Store, TaskId,
};
use outlast_store::sqlite::{DiskFailure, FailPoint, FailPoints};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_testkit::{Faults, FaultyStore, WriteFault, eventually, wait_for};
use outlast_wire::Raw;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// One test for each kind of write at each point.
macro_rules! points {
    ($($point:ident: $arm:expr;)*) => {$(
        mod $point {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn create() {
                create_survives($arm).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn finish() {
                finish_survives($arm).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn cancel() {
                cancel_survives($arm).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn answer() {
                answer_survives($arm).await;
            }
        }
    )*};
}

points! {
    memory_before_commit: Point::Writes(WriteFault::BeforeCommit, 1);
    memory_after_commit_before_ack: Point::Writes(WriteFault::AfterCommit, 1);
    memory_after_ack_before_notify: Point::LateReply;
    memory_down_for_a_while: Point::Writes(WriteFault::BeforeCommit, 6);
    memory_down_and_lying: Point::Writes(WriteFault::AfterCommit, 6);
    memory_late: Point::Late;
    sqlite_fsync_error_before_commit: Point::Disk(FailPoint::BeforeCommit, DiskFailure::SyncError);
    sqlite_disk_full: Point::Disk(FailPoint::BeforeCommit, DiskFailure::Full);
    sqlite_fsync_error_after_commit: Point::Disk(FailPoint::AfterCommit, DiskFailure::SyncError);
    sqlite_late_before_commit: Point::Slow(FailPoint::BeforeCommit);
    sqlite_late_before_ack: Point::Slow(FailPoint::BeforeAck);
}

/// A creation that is acknowledged is run and kept; one that is refused leaves nothing at work.
async fn create_survives(point: Point) {
    let harness = Harness::new(point).await;
    harness.start_failing();
    match harness.engine.create(call("gated")).await {
        Ok(created) => {
            let id = created.task().id;
            harness.tools.gate.add_permits(1);
            assert_eq!(harness.wait(id).await.body, Some(raw("1")));
        }
        Err(error) => assert!(error.is_transient(), "{error}"),
    }
    harness.tools.gate.add_permits(10);
    harness.assert_idle().await;
    assert!(harness.tools.started.load(Ordering::SeqCst) <= 1);
    // The store is back, sooner or later.
    let id = harness.create("gated").await;
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
    harness.holds_after_a_restart(&[id]).await;
}

/// An outcome is kept until the store takes it, and each waiter gets it once.
async fn finish_survives(point: Point) {
    let harness = Harness::new(point).await;
    let id = harness.create("gated").await;
    let waiters = [(); 3].map(|()| harness.waiter(id));
    harness.start_failing();
    harness.tools.gate.add_permits(1);
    for waiter in waiters {
        let settled = waiter.await.expect("it is answered");
        assert_eq!(settled.summary.ending, Ending::Result);
        assert_eq!(settled.body, Some(raw("1")));
    }
    harness.assert_idle().await;
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 1);
    harness.holds_after_a_restart(&[id]).await;
}

/// A cancellation that is acknowledged holds; one with an unknown outcome takes effect or can be
/// repeated.
async fn cancel_survives(point: Point) {
    let harness = Harness::new(point).await;
    let id = harness.create("gated").await;
    let waiter = harness.waiter(id);
    harness.start_failing();
    eventually("the task is cancelled", async || {
        match harness.engine.cancel_now(&ada(), id).await {
            Ok(_) => true,
            // A permanent error: it took effect although the caller got the error "unavailable".
            Err(error) => !error.is_transient(),
        }
    })
    .await;
    let settled = waiter.await.expect("it is answered");
    assert_eq!(settled.summary.ending, Ending::Cancelled);
    harness.assert_idle().await;
    harness.holds_after_a_restart(&[id]).await;
}

/// An answer that is acknowledged reaches the work.
async fn answer_survives(point: Point) {
    let harness = Harness::new(point).await;
    let id = harness.create("ask").await;
    let key = harness.open_key(id).await;
    let waiter = harness.waiter(id);
    harness.start_failing();
    let answers: BTreeMap<_, _> = [(key, InputResponse::Result(raw("2")))].into();
    eventually("the answer is stored", async || {
        let provided = harness
            .engine
            .provide_input(&ada(), id, answers.clone())
            .await;
        provided
            .inspect_err(|error| assert!(error.is_transient(), "{error}"))
            .is_ok()
    })
    .await;
    assert_eq!(waiter.await.expect("it is answered").body, Some(raw("2")));
    harness.assert_idle().await;
    harness.holds_after_a_restart(&[id]).await;
}

/// The process ends after a commit and before its reply: the next engine finds everything.
#[tokio::test]
async fn a_write_without_a_reply_is_found_by_the_next_engine() {
    for what in ["create", "finish", "cancel", "answer"] {
        let harness = Harness::new(Point::Writes(WriteFault::NoReply, 1)).await;
        let engine = harness.engine.clone();
        let mut acknowledged = Vec::new();
        if what == "create" {
            harness.start_failing();
            tokio::spawn(async move { engine.create(call("gated")).await.map(drop) });
        } else {
            let id = harness
                .create(if what == "answer" { "ask" } else { "gated" })
                .await;
            acknowledged.push(id);
            let answers = match what {
                "answer" => [(harness.open_key(id).await, InputResponse::Result(raw("2")))].into(),
                _ => BTreeMap::new(),
            };
            harness.start_failing();
            match what {
                "finish" => harness.tools.gate.add_permits(1),
                "cancel" => drop(tokio::spawn(async move {
                    engine.cancel_now(&ada(), id).await.map(drop)
                })),
                _ => drop(tokio::spawn(async move {
                    engine.provide_input(&ada(), id, answers).await
                })),
            }
        }
        sleep(Duration::from_millis(50)).await;
        // The ended engine sends no more events, and its node has left.
        harness
            .inner
            .leave(harness.engine.node())
            .await
            .expect("it is open");
        let next = open(harness.inner.clone(), &Arc::default()).await;
        let usage = next
            .usage(&Owner::principal("ada"))
            .await
            .expect("it is open");
        assert_eq!(usage.open, 0, "P4: {what}");
        for id in acknowledged {
            let settled = next.outcome(&ada(), id).await.expect("it is open");
            let settled = settled.expect("P1: it was acknowledged");
            match what {
                "finish" => assert_eq!(settled.body, Some(raw("1"))),
                "cancel" => assert_eq!(settled.summary.ending, Ending::Cancelled),
                _ => assert_eq!(settled.summary.ending, Ending::Error(ErrorCode(-32603))),
            }
        }
    }
}

/// Finished outcomes wait for a store that is down, all of them, and are stored once it is back.
#[tokio::test]
async fn outcomes_wait_for_a_store_that_is_down() {
    let harness = Harness::new(Point::Writes(WriteFault::BeforeCommit, 60)).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(harness.create("gated").await);
    }
    let waiters: Vec<_> = ids.iter().map(|id| harness.waiter(*id)).collect();
    harness.start_failing();
    harness.tools.gate.add_permits(20);
    for waiter in waiters {
        assert_eq!(waiter.await.expect("it is answered").body, Some(raw("1")));
    }
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 20);
    harness.assert_idle().await;
    harness.holds_after_a_restart(&ids).await;
}

/// A deadline that cannot be stored is tried again after a pause, although each failed write
/// schedules it again.
#[tokio::test]
async fn a_deadline_that_cannot_be_stored_is_retried_with_pauses() {
    let harness = Harness::new(Point::Writes(WriteFault::BeforeCommit, u64::MAX)).await;
    let mut short = call("gated");
    short.ttl = Some(Duration::from_millis(50));
    harness.engine.create(short).await.expect("it is created");
    let before = harness.faults.writes();
    harness.start_failing();
    sleep(Duration::from_secs(3)).await;
    let writes = harness.faults.writes() - before;
    assert!((1..=20).contains(&writes), "{writes} writes in 3 s");
}

/// Where a write fails, or how.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// The next writes to the memory store.
    Writes(WriteFault, u64),
    /// The store has confirmed, and the reply to the caller is delayed.
    LateReply,
    /// Every answer of the memory store takes its time.
    Late,
    /// The next commit of SQLite.
    Disk(FailPoint, DiskFailure),
    /// Every commit of SQLite takes its time.
    Slow(FailPoint),
}

struct Harness {
    point: Point,
    engine: Engine,
    tools: Arc<GatedTools>,
    /// Beneath the faults.
    inner: Arc<dyn Store>,
    faults: Faults,
    trouble: Arc<FailAtPoint>,
    file: Option<(tempfile::TempDir, PathBuf)>,
}

impl Harness {
    async fn new(point: Point) -> Self {
        let trouble = Arc::new(FailAtPoint::new(point));
        let (inner, file): (Arc<dyn Store>, _) = match point {
            Point::Disk(..) | Point::Slow(_) => {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("tasks.db");
                let options = SqliteOptions::default().with_fail_points(trouble.clone());
                let store = Sqlite::open(&path, options).await.expect("a new file");
                (Arc::new(store), Some((folder, path)))
            }
            _ => (Arc::new(MemoryStore::new()), None),
        };
        let faulty = FaultyStore::new(inner.clone());
        let faults = faulty.faults();
        let tools = Arc::new(GatedTools::default());
        let engine = open(Arc::new(faulty), &tools).await;
        Self {
            point,
            engine,
            tools,
            inner,
            faults,
            trouble,
            file,
        }
    }

    /// From now on the failures happen.
    fn start_failing(&self) {
        match self.point {
            Point::Writes(strike, count) => self.faults.fail_writes(count, strike),
            Point::Late => self.faults.delay(Duration::from_millis(60)),
            Point::LateReply => self.faults.run_before_notify(Arc::new(|| {
                std::thread::sleep(Duration::from_millis(30));
            })),
            Point::Disk(..) => self.trouble.left.store(1, Ordering::SeqCst),
            Point::Slow(_) => self.trouble.left.store(i64::MAX, Ordering::SeqCst),
        }
    }

    /// Creates a task, as often as it takes.
    async fn create(&self, tool: &str) -> TaskId {
        let patient = async {
            loop {
                match self.engine.create(call(tool)).await {
                    Ok(created) => return created.task().id,
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT_LIMIT, patient)
            .await
            .expect("the store comes back")
    }

    fn waiter(&self, id: TaskId) -> tokio::task::JoinHandle<EndedTask> {
        let engine = self.engine.clone();
        tokio::spawn(async move { wait(&engine, id).await })
    }

    async fn wait(&self, id: TaskId) -> EndedTask {
        wait(&self.engine, id).await
    }

    /// The key of the open input request of a task.
    async fn open_key(&self, id: TaskId) -> InputKey {
        wait_for("an input request", async || {
            let Ok(Snapshot::Open(task)) = self.engine.get(&ada(), id).await else {
                return None;
            };
            let (key, _) = task.outstanding()?.iter().next()?;
            Some(key.clone())
        })
        .await
    }

    /// P4, and no leak: soon no call runs, no caller waits, and no task is open.
    async fn assert_idle(&self) {
        let quiet = async {
            loop {
                let usage = self.inner.usage(&Owner::principal("ada")).await;
                let open = usage.expect("it is open").open;
                if open == 0 && self.engine.running() == 0 && self.engine.subscribers() == 0 {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(WAIT_LIMIT, quiet)
            .await
            .expect("P4: something is left");
    }

    /// P1: everything acknowledged is unchanged after a restart.
    async fn holds_after_a_restart(self, ids: &[TaskId]) {
        let mut before = Vec::new();
        for id in ids {
            before.push(self.wait(*id).await);
        }
        self.engine
            .shutdown(Duration::ZERO)
            .await
            .expect("it closes");
        let store: Arc<dyn Store> = match &self.file {
            None => self.inner,
            Some((_, path)) => {
                self.inner.close().await.expect("it closes");
                let store = Sqlite::open(path, SqliteOptions::default()).await;
                Arc::new(store.expect("the file is whole"))
            }
        };
        let engine = open(store, &Arc::default()).await;
        for (id, before) in ids.iter().zip(before) {
            assert_eq!(wait(&engine, *id).await, before);
        }
        let usage = engine
            .usage(&Owner::principal("ada"))
            .await
            .expect("it is open");
        assert_eq!(usage.open, 0);
    }
}

async fn open(store: Arc<dyn Store>, tools: &Arc<GatedTools>) -> Engine {
    let policy = Policy::default().with_status_delay(Duration::from_millis(1));
    let builder = Engine::builder(store).policy(policy);
    let opened = builder.runner("tools", tools.clone()).open().await;
    opened.expect("the store is open").0
}

async fn wait(engine: &Engine, id: TaskId) -> EndedTask {
    let settled = timeout(WAIT_LIMIT, engine.wait(&ada(), id)).await;
    settled
        .expect("P6: the waiter was not woken")
        .expect("it is there")
}

/// Lets the next commits fail, or makes all of them slow.
#[derive(Debug)]
struct FailAtPoint {
    point: Point,
    left: AtomicI64,
}

impl FailAtPoint {
    fn new(point: Point) -> Self {
        let left = AtomicI64::new(0);
        Self { point, left }
    }
}

impl FailPoints for FailAtPoint {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        match self.point {
            Point::Disk(when, fail) if when == point => {
                if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
                    Some(fail)
                } else {
                    None
                }
            }
            Point::Slow(when) if when == point && self.left.load(Ordering::SeqCst) > 0 => {
                std::thread::sleep(Duration::from_millis(40));
                None
            }
            _ => None,
        }
    }
}

struct GatedTools {
    started: AtomicUsize,
    gate: Semaphore,
}

impl Default for GatedTools {
    fn default() -> Self {
        Self {
            started: AtomicUsize::new(0),
            gate: Semaphore::new(0),
        }
    }
}

#[async_trait]
impl Runner for GatedTools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        self.started.fetch_add(1, Ordering::SeqCst);
        match call.tool.as_deref() {
            Some("ask") => match cx
                .request_input(InputRequest::new(InputKind::ElicitForm, None))
                .await
            {
                Ok(InputResponse::Result(answer)) => Outcome::Result(answer),
                other => Outcome::error(ErrorCode(-1), format!("{other:?}")),
            },
            _ => {
                let permit = self.gate.acquire().await.expect("it is never closed");
                permit.forget();
                Outcome::Result(raw("1"))
            }
        }
    }
}

fn call(tool: &str) -> NewCall {
    let origin = Origin {
        method: "tools/call".into(),
        tool: Some(tool.into()),
        params: None,
        runner: "tools".into(),
        progress_token: None,
        retry: RetryClass::Never,
        accepts: InputKinds::all(),
    };
    NewCall::new(Owner::principal("ada"), origin)
}

fn ada() -> Scope {
    Scope::OwnedBy(Owner::principal("ada"))
}

fn raw(text: &str) -> Raw {
    Raw::parse(text.into()).expect("it is JSON")
}

/// The limit of every wait.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
