//! The load of one node: it creates tasks, follows them, and works on the tasks of other nodes too.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EngineError, NewCall, Runner};
use outlast_engine::store::{Filter, Snapshot, Status};
use outlast_engine::{
    Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse, Origin,
    Outcome, Owner, Policy, Quota, RetryClass, Scope, Store, TaskId,
};
use outlast_store::{Postgres, PostgresUrl};
use outlast_wire::Raw;
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::line::{Call, Ending, Line, Reply, Report, Seen, TaskKind, now};
use crate::death::SeededRandom;

/// Works on the store at `url` until the standard input is closed. Then creates nothing more and ends
/// when no task of any node is open.
pub async fn work(url: &str, seed: u64, open_tasks: usize) {
    let store = loop {
        match Postgres::open(&PostgresUrl::new(url)).await {
            Ok(store) => break Arc::new(store),
            // The database is being restarted.
            Err(_) => sleep(RETRY_DELAY).await,
        }
    };
    let policy = Policy::default().with_quota(QUOTA).with_max_attempts(100);
    let engine = loop {
        let builder = Engine::builder(store.clone()).policy(policy.clone());
        match builder.runner(RUNNER, Arc::new(Work)).open().await {
            Ok((engine, _)) => break engine,
            Err(_) => sleep(RETRY_DELAY).await,
        }
    };
    let node = Arc::new(Node {
        engine,
        random: Mutex::new(SeededRandom::new(seed)),
        following: AtomicUsize::new(0),
        draining: AtomicBool::new(false),
    });
    for _ in 0..CREATORS {
        tokio::spawn(node.clone().create_tasks(open_tasks));
    }
    tokio::spawn(node.clone().answer_others());
    tokio::spawn(node.clone().follow_others());
    let mut end = [0];
    // Closed by the test.
    let _ = tokio::io::stdin().read(&mut end).await;
    node.draining.store(true, Ordering::SeqCst);
    loop {
        let usage = node.engine.usage(&owner()).await;
        if usage.is_ok_and(|usage| usage.open == 0) && node.following.load(Ordering::SeqCst) == 0 {
            break;
        }
        sleep(RETRY_DELAY).await;
    }
    let engine = node.engine.clone();
    // The lease lapses if the database goes away now.
    let _ = engine.shutdown(Duration::ZERO).await;
    let _ = store.close().await;
}

struct Node {
    engine: Engine,
    random: Mutex<SeededRandom>,
    /// How many waits are open.
    following: AtomicUsize,
    draining: AtomicBool,
}

impl Node {
    async fn below(&self, limit: u64) -> u64 {
        self.random.lock().await.below(limit)
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    async fn create_tasks(self: Arc<Self>, open_tasks: usize) {
        while !self.is_draining() {
            if self.following.load(Ordering::SeqCst) >= open_tasks {
                sleep(SHORT_DELAY).await;
                continue;
            }
            let (kind, tool, retry) = match self.below(10).await {
                0..3 => (TaskKind::Ask, "ask", RetryClass::Never),
                3..6 => (TaskKind::Repeatable, "work", RetryClass::Rerun),
                _ => (TaskKind::Once, "work", RetryClass::Never),
            };
            let quick = self.below(4).await == 0;
            let ms = if quick {
                self.below(50).await
            } else {
                3_000 + self.below(17_000).await
            };
            let origin = Origin {
                method: "tools/call".into(),
                tool: Some(tool.into()),
                params: Some(number(ms)),
                runner: RUNNER.into(),
                progress_token: None,
                retry,
                accepts: InputKinds::all(),
            };
            let begun = now();
            match self.engine.create(NewCall::new(owner(), origin)).await {
                Ok(created) => {
                    let id = created.task().id;
                    Line::write(id, Report::Created { begun, kind });
                    self.following.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(self.clone().follow_own(id));
                }
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }

    /// Reads, sometimes cancels, and waits for a task of this process.
    async fn follow_own(self: Arc<Self>, id: TaskId) {
        self.get(id).await;
        if self.below(20).await == 0 {
            sleep(Duration::from_millis(self.below(4_000).await)).await;
            let engine = &self.engine;
            operation(id, Call::Cancel, async {
                match engine.cancel_now(&Scope::AnyTask, id).await {
                    Ok(_) => Some(Reply::Done),
                    Err(EngineError::Refused(_)) => Some(Reply::Refused),
                    Err(_) => None,
                }
            })
            .await;
        }
        self.wait(id).await;
        self.get(id).await;
        self.following.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits until the end of a task is known.
    async fn wait(&self, id: TaskId) {
        loop {
            let waited = operation(id, Call::Wait, async {
                let ended = self.engine.wait(&Scope::AnyTask, id).await.ok()?;
                Some(Reply::Seen(Seen::Ended(Ending::of(&ended))))
            });
            if waited.await {
                return;
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn get(&self, id: TaskId) {
        operation(id, Call::Get, async {
            let seen = match self.engine.get(&Scope::AnyTask, id).await {
                Err(EngineError::NotFound) => Seen::Nothing,
                Err(_) => return None,
                Ok(Snapshot::Open(task)) if task.outstanding().is_some() => Seen::Asking,
                Ok(Snapshot::Open(_)) => Seen::Working,
                Ok(Snapshot::Ended(_)) => {
                    let ended = self.engine.outcome(&Scope::AnyTask, id).await.ok()??;
                    Seen::Ended(Ending::of(&ended))
                }
            };
            Some(Reply::Seen(seen))
        })
        .await;
    }

    /// Answers input requests of the tasks of all nodes.
    async fn answer_others(self: Arc<Self>) {
        let filter = Filter {
            statuses: [Status::InputRequired].into_iter().collect(),
            ..Filter::default()
        };
        let mut after = None;
        loop {
            sleep(SHORT_DELAY).await;
            let Ok(page) = self.engine.search(&filter, after, 100).await else {
                continue;
            };
            after = page.next;
            for task in page.tasks {
                // Some tasks wait for a while. When the work ends, all are answered.
                if self.below(100).await > 3 && !self.is_draining() {
                    continue;
                }
                let (id, value) = (task.id(), self.below(1 << 40).await);
                let response = InputResponse::Result(number(value));
                let responses = BTreeMap::from([(InputKey::new(KEY), response)]);
                let engine = &self.engine;
                operation(id, Call::Answer(value), async {
                    let provided = engine.provide_input(&Scope::AnyTask, id, responses).await;
                    provided.ok().map(|_| Reply::Done)
                })
                .await;
            }
        }
    }

    /// Reads and awaits tasks of all nodes.
    async fn follow_others(self: Arc<Self>) {
        let filter = Filter {
            statuses: [Status::Working].into_iter().collect(),
            ..Filter::default()
        };
        while !self.is_draining() {
            sleep(SHORT_DELAY).await;
            let Ok(page) = self.engine.search(&filter, None, 100).await else {
                continue;
            };
            let picked = self.below(page.tasks.len() as u64).await as usize;
            let Some(id) = page.tasks.get(picked).map(Snapshot::id) else {
                continue;
            };
            self.following.fetch_add(1, Ordering::SeqCst);
            let node = self.clone();
            tokio::spawn(async move {
                node.get(id).await;
                node.wait(id).await;
                node.following.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

/// Reports an operation and its reply, if it has one. Returns whether it has.
async fn operation(id: TaskId, call: Call, work: impl Future<Output = Option<Reply>>) -> bool {
    let number = NEXT_OPERATION.fetch_add(1, Ordering::SeqCst);
    Line::write(id, Report::Invoked(number, call));
    let reply = work.await;
    let replied = reply.is_some();
    if let Some(reply) = reply {
        Line::write(id, Report::Returned(number, reply));
    }
    replied
}

struct Work;

#[async_trait]
impl Runner for Work {
    async fn run(&self, origin: Arc<Origin>, cx: CallContext) -> Outcome {
        let (id, attempt) = (cx.id(), cx.attempt().0);
        Line::write(id, Report::Started { attempt });
        let value = if origin.tool.as_deref() == Some("ask") {
            let number = NEXT_OPERATION.fetch_add(1, Ordering::SeqCst);
            Line::write(id, Report::Invoked(number, Call::Ask));
            let request = InputRequest::new(InputKind::ElicitForm, None);
            let response = cx.request_input_as(InputKey::new(KEY), request).await;
            let Ok(InputResponse::Result(answer)) = response.map(|answered| answered.response)
            else {
                // The store was away for too long. The task ends as if its outcome were unknown.
                return Outcome::error(ErrorCode(-32603), "no response");
            };
            answer.as_str().parse().expect("responses are numbers")
        } else {
            let params = origin.params.as_ref().expect("the work has a duration");
            let ms = params.as_str().parse().expect("durations are numbers");
            cx.status("works");
            sleep(Duration::from_millis(ms)).await;
            u64::from(attempt)
        };
        let number = NEXT_OPERATION.fetch_add(1, Ordering::SeqCst);
        Line::write(id, Report::Invoked(number, Call::Finish(value)));
        Outcome::Result(crate::nodes::work::number(value))
    }
}

fn number(value: u64) -> Raw {
    Raw::encode(&value).expect("a number is JSON")
}

fn owner() -> Owner {
    Owner::principal("load")
}

static NEXT_OPERATION: AtomicU64 = AtomicU64::new(0);

const RUNNER: &str = "work";

const KEY: &str = "question";

const CREATORS: usize = 24;

const SHORT_DELAY: Duration = Duration::from_millis(50);

const RETRY_DELAY: Duration = Duration::from_millis(200);

const QUOTA: Quota = Quota::DEFAULT
    .with_owner_open(100_000)
    .with_owner_retained(10_000_000)
    .with_open(100_000)
    .with_retained(10_000_000);
