//! Fills a store with ended tasks, for a check that needs many: `fill_store URL TASKS OWNER`.
//!
//! The tasks were created during the last hour, one after the other, by tools of two servers. Each
//! tenth failed and each twentieth was cancelled.

use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{Insert, InsertResult, Store};
use outlast_engine::task::{Lifetime, NewTask, Task, TtlPolicy};
use outlast_engine::transition::Command;
use outlast_engine::{Clock as _, Ids as _, Outcome, Owner, RandomIds, SystemClock};
use outlast_store::open_store;
use tokio::task::JoinSet;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().expect("usage: fill_store URL TASKS OWNER");
    let url = next().parse().expect("the URL names a store");
    let tasks: u64 = next().parse().expect("the number of tasks is a number");
    let owner = Owner::principal(next());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let store = open_store(&url, Default::default()).await;
        let store = store.expect("the store can be opened");
        fill(&store, tasks, &owner).await;
        store.close().await.expect("the store closes");
    });
}

async fn fill(store: &Arc<dyn Store>, tasks: u64, owner: &Owner) {
    let first = SystemClock.now().0 - SPREAD_MS;
    let mut running = JoinSet::new();
    for n in 0..tasks {
        // Many writes share a commit.
        if running.len() >= CONCURRENT_WRITES {
            running.join_next().await;
        }
        let (store, owner) = (store.clone(), owner.clone());
        let created = first + n * SPREAD_MS / tasks.max(1);
        running.spawn(async move { write(&store, n, owner, created).await });
    }
    while let Some(written) = running.join_next().await {
        written.expect("every task is written");
    }
}

async fn write(store: &Arc<dyn Store>, n: u64, owner: Owner, created: u64) {
    let created = outlast_wire::Timestamp(created);
    let mut origin = fixtures::origin();
    let (tool, runner) = TOOLS[n as usize % TOOLS.len()];
    origin.tool = Some(tool.into());
    origin.runner = runner.into();
    origin.params = Some(fixtures::raw(&format!(
        r#"{{"name":"{tool}","arguments":{{"page":{n}}}}}"#
    )));
    let new = NewTask {
        id: RandomIds.task(),
        owner,
        origin: Arc::new(origin),
        request_key: None,
        executor: fixtures::NODE_A,
        lifetime: Lifetime::new(TTL_MS, TtlPolicy::Strict, None),
        poll_interval_ms: 1_000,
    };
    let insert = Insert {
        task: Arc::new(Task::new(new, created)),
        quota: fixtures::LARGE_QUOTA,
        records: Vec::new(),
    };
    let task = match store.insert(insert).await {
        Ok(InsertResult::New(task)) => task.shared(),
        other => panic!("a new task is stored, not {other:?}"),
    };
    let command = match n {
        n if n % 20 == 0 => Command::CancelNow,
        n if n % 10 == 0 => {
            let body = r#"{"content":[{"type":"text","text":"no paper"}],"isError":true}"#;
            let outcome = Outcome::ToolError(fixtures::raw(body), Some("no paper".into()));
            fixtures::end(&task, outcome)
        }
        _ => fixtures::end(
            &task,
            fixtures::result(r#"{"content":[{"type":"text","text":"printed"}]}"#),
        ),
    };
    let ended = created.plus(1_000 + n % 9_000);
    let change = fixtures::change(&task, command, ended);
    let stored = store.replace(change).await;
    assert!(stored.is_ok(), "the end is stored: {stored:?}");
}

/// Tools with the names of their servers.
const TOOLS: [(&str, &str); 4] = [
    ("render", "printer"),
    ("scan", "printer"),
    ("search", "library"),
    ("index", "library"),
];

const CONCURRENT_WRITES: usize = 512;

/// The time between the first and the last creation.
const SPREAD_MS: u64 = 3_600_000;

/// A task outlives the check.
const TTL_MS: u64 = 86_400_000;
