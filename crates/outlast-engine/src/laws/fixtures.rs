//! Test data for the laws: ids, tasks, input requests, records, and helpers for common steps.
//!
//! Every value is a function of its arguments, so that a failing law can be reproduced.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::{Arc, Barrier};

use outlast_wire::{Raw, Timestamp};
use tokio::runtime::Handle as Runtime;
use tokio::task::spawn_blocking;

use crate::id::{InputKey, NodeId, Revision, Scope, TaskId};
use crate::input::{InputKind, InputKinds, InputRequest, InputResponse};
use crate::origin::{Origin, RetryClass};
use crate::outcome::Outcome;
use crate::owner::Owner;
use crate::policy::Quota;
use crate::store::{
    Insert, InsertResult, Position, Record, RecordKey, RecordWrite, Replace, Snapshot, Store,
    StoreError, TaskSummary,
};
use crate::task::{Lifetime, NewTask, ResumeState, Task, TtlPolicy};
use crate::transition::{Command, Next, Takeover};

/// The default node.
pub const NODE_A: NodeId = NodeId(1);

/// Another node.
pub const NODE_B: NodeId = NodeId(2);

/// A third node.
pub const NODE_C: NodeId = NodeId(3);

/// The default creation time.
pub const CREATED: Timestamp = Timestamp(1_785_000_000_000);

/// The default TTL in milliseconds.
pub const TTL_MS: u64 = 3_600_000;

/// A quota that no law reaches.
pub const LARGE_QUOTA: Quota = Quota {
    owner_open: 1_000_000,
    owner_retained: 1_000_000,
    open: 1_000_000,
    retained: 1_000_000,
};

/// The id number `n`: different for every `n`, and distributed like random ids.
pub fn id(n: u64) -> TaskId {
    TaskId::from_bits(u128::from(mix_bits(n)) << 64 | u128::from(mix_bits(!n)))
}

/// The default owner.
pub fn ada() -> Owner {
    Owner::principal("ada")
}

/// Another owner.
pub fn bob() -> Owner {
    Owner::principal("bob")
}

/// The scope of an owner.
pub fn of(owner: &Owner) -> Scope {
    Scope::OwnedBy(owner.clone())
}

/// Unparsed JSON.
pub fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).expect("laws write valid JSON")
}

/// An input response.
pub fn input_response(text: &str) -> InputResponse {
    InputResponse::Result(raw(text))
}

/// A form elicitation.
pub fn input_request() -> InputRequest {
    InputRequest::new(InputKind::ElicitForm, Some(raw(r#"{"message":"who?"}"#)))
}

/// A successful result.
pub fn result(text: &str) -> Outcome {
    Outcome::Result(raw(text))
}

/// The origin of a tool call.
pub fn origin() -> Origin {
    Origin {
        method: "tools/call".into(),
        tool: Some("render".into()),
        params: Some(raw(r#"{"name":"render","arguments":{"pages":3}}"#)),
        runner: "local".into(),
        progress_token: None,
        retry: RetryClass::Never,
        accepts: InputKinds::all(),
    }
}

/// The parameters of task number `n`.
pub fn new_task(n: u64) -> NewTask {
    NewTask {
        id: id(n),
        owner: ada(),
        origin: Arc::new(origin()),
        request_key: None,
        executor: NODE_A,
        lifetime: Lifetime::new(TTL_MS, TtlPolicy::Strict, None),
        poll_interval_ms: 1_000,
    }
}

/// Task number `n`.
pub fn task(n: u64) -> Task {
    Task::new(new_task(n), CREATED)
}

/// Task number `n` of `owner`.
pub fn task_of(n: u64, owner: &Owner) -> Task {
    let owner = owner.clone();
    Task::new(
        NewTask {
            owner,
            ..new_task(n)
        },
        CREATED,
    )
}

/// Task number `n` with a request key.
pub fn task_with_key(n: u64, owner: &Owner, key: &str) -> Task {
    let new = NewTask {
        owner: owner.clone(),
        request_key: Some(key.into()),
        ..new_task(n)
    };
    Task::new(new, CREATED)
}

/// Task number `n`, executed by `node`.
pub fn task_at(n: u64, node: NodeId) -> Task {
    let new = NewTask {
        executor: node,
        ..new_task(n)
    };
    Task::new(new, CREATED)
}

/// Task number `n` with this lifetime.
pub fn task_with_lifetime(n: u64, lifetime: Lifetime) -> Task {
    let new = NewTask {
        lifetime,
        ..new_task(n)
    };
    Task::new(new, CREATED)
}

/// A record without an owner that never expires.
pub fn record(kind: &str, key: &str) -> Record {
    Record {
        key: RecordKey::new(kind, key),
        owner: None,
        expires: None,
        bytes: Arc::from(format!("{kind} {key}").into_bytes()),
    }
}

/// A write of the record.
pub fn put(record: &Record) -> RecordWrite {
    RecordWrite::Put(record.clone())
}

/// An insertion with a quota that suffices.
pub fn insertion(task: Task) -> Insert {
    Insert {
        task: Arc::new(task),
        quota: LARGE_QUOTA,
        records: Vec::new(),
    }
}

/// The write that stores the change of `command` to `task` at `now`.
pub fn change(task: &Task, command: Command, now: Timestamp) -> Replace {
    let step = Arc::new(task.clone())
        .apply(command, now)
        .expect("the laws use only commands that apply");
    let Next::Stored(next, body) = step.next else {
        panic!("the laws remove tasks with `removal`");
    };
    Replace {
        node: NODE_A,
        expected: task.revision,
        next,
        body,
        records: Vec::new(),
    }
}

/// The runner of `task` sends an input request with `key`.
pub fn request_input(task: &Task, key: &str) -> Command {
    Command::RequestInput {
        attempt: task.attempt,
        key: InputKey::new(key),
        request: input_request(),
        limit: 256,
    }
}

/// The caller answers the input request `key`.
pub fn provide_input(key: &str) -> Command {
    Command::ProvideInput([(InputKey::new(key), input_response(r#"{"action":"accept"}"#))].into())
}

/// The runner of `task` sets a status text.
pub fn status(task: &Task, message: &str) -> Command {
    Command::Status {
        attempt: task.attempt,
        message: message.into(),
    }
}

/// The runner of `task` ends it.
pub fn end(task: &Task, outcome: Outcome) -> Command {
    Command::End {
        attempt: task.attempt,
        outcome,
        message: None,
    }
}

/// The runner of `task` gives its work away.
pub fn detach(task: &Task) -> Command {
    Command::Detach {
        attempt: task.attempt,
        state: ResumeState(Arc::from(&b"handle"[..])),
        limit_ms: Some(60_000),
    }
}

/// `node` takes the task over, and its work continues.
pub fn take_over(node: NodeId) -> Command {
    Command::Claim {
        executor: node,
        how: Takeover::Reattach,
    }
}

/// Stores a new task.
pub async fn stored(store: &Arc<dyn Store>, task: Task) -> Arc<Task> {
    match store.insert(insertion(task)).await {
        Ok(InsertResult::New(task)) => task.shared(),
        other => panic!("a new task is stored, not {other:?}"),
    }
}

/// Stores tasks number `numbers`, one after the other.
pub async fn stored_all(
    store: &Arc<dyn Store>,
    numbers: impl IntoIterator<Item = u64>,
) -> Vec<Arc<Task>> {
    let mut all = Vec::new();
    for n in numbers {
        all.push(stored(store, task(n)).await);
    }
    all
}

/// Stores the change of `command` to `task`, one second after its last change.
pub async fn changed(store: &Arc<dyn Store>, task: &Task, command: Command) -> Arc<Task> {
    store
        .replace(change(task, command, task.updated.plus(1_000)))
        .await
        .expect("a change of the newest revision is stored")
        .shared()
}

/// Stores the end of `task`.
pub async fn ended(store: &Arc<dyn Store>, task: &Task, outcome: Outcome) -> Arc<Task> {
    changed(store, task, end(task, outcome)).await
}

/// Removes `task` and checks that it existed.
pub async fn removed(store: &Arc<dyn Store>, task: &Task) {
    let gone = removal(store, [(task.id, task.revision)]).await;
    assert_eq!(gone, [task.id], "the newest revision is removed");
}

/// Removes tasks, and returns the ids of those that were removed.
pub async fn removal(
    store: &Arc<dyn Store>,
    tasks: impl IntoIterator<Item = (TaskId, Revision)>,
) -> Vec<TaskId> {
    store
        .remove(NODE_A, tasks.into_iter().collect())
        .await
        .expect("the store is open")
}

/// The snapshot of a task.
pub async fn snapshot(store: &Arc<dyn Store>, id: TaskId) -> Option<Snapshot> {
    store
        .get(&Scope::AnyTask, id)
        .await
        .expect("the store is open")
}

/// The snapshot of a task that has not ended.
pub async fn open_snapshot(store: &Arc<dyn Store>, id: TaskId) -> Arc<Task> {
    match snapshot(store, id).await {
        Some(Snapshot::Open(task)) => task.shared(),
        other => panic!("expected an open task, not {other:?}"),
    }
}

/// The snapshot of a task that has ended.
pub async fn ended_snapshot(store: &Arc<dyn Store>, id: TaskId) -> Arc<TaskSummary> {
    match snapshot(store, id).await {
        Some(Snapshot::Ended(summary)) => summary.shared(),
        other => panic!("expected an ended task, not {other:?}"),
    }
}

/// The whole task.
pub async fn loaded(store: &Arc<dyn Store>, id: TaskId) -> Option<Arc<Task>> {
    let found = store.load(&Scope::AnyTask, id).await;
    found.expect("the store is open").map(|task| task.shared())
}

/// The body of a task.
pub async fn body(store: &Arc<dyn Store>, id: TaskId) -> Option<Raw> {
    store
        .body(&Scope::AnyTask, id)
        .await
        .expect("the store is open")
}

/// An owner's whole list, read in pages of `limit`.
pub async fn listed(store: &Arc<dyn Store>, owner: &Owner, limit: usize) -> Vec<TaskId> {
    let mut walk = PageReader::default();
    let mut all = Vec::new();
    while let Some(page) = walk.next(store, owner, limit).await {
        all.extend(page);
    }
    all
}

/// Reads an owner's list page by page.
#[derive(Debug, Default)]
pub struct PageReader {
    after: Option<Position>,
    over: bool,
}

impl PageReader {
    /// The tasks of the next page, or `None` after the last.
    pub async fn next(
        &mut self,
        store: &Arc<dyn Store>,
        owner: &Owner,
        limit: usize,
    ) -> Option<Vec<TaskId>> {
        if self.over {
            return None;
        }
        let page = store
            .page(owner, self.after, limit)
            .await
            .expect("the store is open");
        assert!(
            page.tasks.len() <= limit,
            "a page has at most {limit} tasks"
        );
        self.over = page.next.is_none();
        self.after = page.next;
        Some(page.tasks.iter().map(Snapshot::id).collect())
    }
}

/// Whether the write failed with a conflict.
pub fn is_conflict<T>(written: &Result<T, StoreError>) -> bool {
    matches!(written, Err(StoreError::Conflict { .. }))
}

/// Runs all of `work` at the same time, each on its own thread.
pub async fn at_once<F>(work: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let work: Vec<_> = work.into_iter().collect();
    let start = Arc::new(Barrier::new(work.len()));
    let threads: Vec<_> = work
        .into_iter()
        .map(|work| {
            let (start, runtime) = (start.clone(), Runtime::current());
            spawn_blocking(move || {
                start.wait();
                runtime.block_on(work)
            })
        })
        .collect();
    let mut done = Vec::with_capacity(threads.len());
    for thread in threads {
        // A panic on a thread fails the law.
        done.push(
            thread
                .await
                .unwrap_or_else(|died| resume_unwind(died.into_panic())),
        );
    }
    done
}

/// Mixes all bits of `n` (SplitMix64).
pub fn mix_bits(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
