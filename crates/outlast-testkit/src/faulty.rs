//! A store that fails on demand: before or after the commit, with a delay, without a reply, by
//! dropping events, or with a chosen health.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::store::{
    Health, Insert, InsertResult, Reason, Replace, Snapshot, StoreEvents, StoreFuture,
};
use outlast_engine::{Committed, NodeId, Scope, Store, StoreError, Task, TaskId, forward_store};
use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

/// Forwards each operation to another store, except for the faults that the test plans.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Faults,
}

/// The faults of a [`FaultyStore`]. Clones control the same store.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

/// Where a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// Nothing is written, and the caller gets an error.
    BeforeCommit,
    /// The write is committed, but the caller gets the error "unavailable".
    AfterCommit,
    /// The write is committed, and the caller gets no reply, as after a crash of the process.
    NoReply,
}

/// Runs after a write is confirmed and before its caller gets the reply.
pub type BeforeNotify = Arc<dyn Fn() + Send + Sync>;

#[derive(Debug, Default)]
struct Plan {
    passing: u64,
    failing: u64,
    write_fault: Option<WriteFault>,
    delay: Duration,
    dropped_events: u64,
    writes: u64,
    before_notify: Hook,
    /// What the store reports instead of what the inner store does.
    health: Option<watch::Sender<Health>>,
}

#[derive(Clone, Default)]
struct Hook(Option<BeforeNotify>);

impl FaultyStore {
    /// A store without faults.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let faults = Faults::default();
        Self { inner, faults }
    }

    /// The control of the faults.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// Performs a write, unless the test planned a fault for it.
    async fn write<T>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.wait().await;
        if let Some(refusal) = self.faults.refusal(false) {
            return Err(refusal);
        }
        let write_fault = self.faults.write_fault();
        if write_fault == Some(WriteFault::BeforeCommit) {
            return Err(fault_error());
        }
        let written = write.await;
        if written.is_ok() {
            self.faults.before_notify();
        }
        match write_fault {
            Some(WriteFault::AfterCommit) => written.and(Err(fault_error())),
            Some(WriteFault::NoReply) => std::future::pending().await,
            _ => written,
        }
    }

    /// Performs another operation after the delay.
    async fn delayed<T>(&self, call: impl Future<Output = T> + Send) -> T {
        self.wait().await;
        call.await
    }

    async fn wait(&self) {
        let delay = self.faults.plan().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}

impl Faults {
    /// Lets the next `count` writes fail.
    pub fn fail_writes(&self, count: u64, write_fault: WriteFault) {
        self.fail_writes_after(0, count, write_fault);
    }

    /// Lets `spared` writes pass and the `count` after those fail.
    pub fn fail_writes_after(&self, passing: u64, count: u64, write_fault: WriteFault) {
        let mut plan = self.plan();
        plan.passing = passing;
        plan.failing = count;
        plan.write_fault = Some(write_fault);
    }

    /// Delays every reply by this time from now on.
    pub fn delay(&self, delay: Duration) {
        self.plan().delay = delay;
    }

    /// Lets `hook` run after every confirmed write, before its caller gets the reply.
    pub fn run_before_notify(&self, hook: BeforeNotify) {
        self.plan().before_notify = Hook(Some(hook));
    }

    /// Drops the next `count` events of the store.
    pub fn drop_events(&self, count: u64) {
        self.plan().dropped_events = count;
    }

    /// Lets the store report this health from now on, and refuse what a store in that state
    /// refuses.
    pub fn report(&self, health: Health) {
        let mut plan = self.plan();
        match &plan.health {
            Some(reported) => drop(reported.send_replace(health)),
            None => plan.health = Some(watch::Sender::new(health)),
        }
    }

    /// The error of a write in the reported health. `creates`: whether the write creates a task.
    fn refusal(&self, creates: bool) -> Option<StoreError> {
        let plan = self.plan();
        let reason = match &*plan.health.as_ref()?.borrow() {
            Health::Ready => return None,
            Health::NoSpace(_) if !creates => return None,
            Health::NoSpace(reason) | Health::Down(reason) => reason.clone(),
            Health::Closed => Reason::new("it is closed"),
        };
        Some(StoreError::Unavailable(reason))
    }

    /// The number of writes so far, failed ones included.
    pub fn writes(&self) -> u64 {
        self.plan().writes
    }

    fn write_fault(&self) -> Option<WriteFault> {
        let mut plan = self.plan();
        plan.writes += 1;
        if plan.passing > 0 {
            plan.passing -= 1;
            return None;
        }
        if plan.failing == 0 {
            return None;
        }
        plan.failing -= 1;
        plan.write_fault
    }

    fn before_notify(&self) {
        let hook = self.plan().before_notify.clone();
        if let Some(hook) = hook.0 {
            hook();
        }
    }

    fn drops_event(&self) -> bool {
        let mut plan = self.plan();
        let dropped_events = plan.dropped_events > 0;
        plan.dropped_events -= u64::from(dropped_events);
        dropped_events
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        // The fields are independent, so a panic leaves no invalid combination.
        self.0.lock()
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        let this = self.clone();
        // Nothing is written before the future is polled.
        StoreFuture::boxed(async move {
            match this.faults.refusal(true) {
                Some(refusal) => Err(refusal),
                None => this.write(async { this.inner.insert(insert).await }).await,
            }
        })
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        let this = self.clone();
        StoreFuture::boxed(async move {
            this.write(async { this.inner.replace(replace).await })
                .await
        })
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(async move {
            self.wait().await;
            self.inner.get(scope, id).await
        })
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        StoreFuture::boxed(async move {
            self.wait().await;
            self.inner.body(scope, id).await
        })
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        // A failed claim returns no tasks, so there is no failure after its commit.
        self.wait().await;
        match self.faults.write_fault() {
            Some(WriteFault::BeforeCommit) => Err(fault_error()),
            _ => self.inner.claim(node, limit).await,
        }
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        self.wait().await;
        let feed = self.inner.join(node).await?;
        Ok(filtered_events(feed, self.faults.clone()))
    }

    fn health(&self) -> watch::Receiver<Health> {
        let plan = self.faults.plan();
        match &plan.health {
            Some(reported) => reported.subscribe(),
            None => self.inner.health(),
        }
    }

    forward_store!(self => &self.inner; publish_progress);
    forward_store!(self => &self.inner, around write; remove, write_records, swap_record, publish_address);
    forward_store!(self => &self.inner, around delayed; load, page, search, due, usage, record, records, leave, nodes, close);
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.faults).finish()
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}

/// The events of `feed`, without those that are dropped.
fn filtered_events(mut feed: StoreEvents, faults: Faults) -> StoreEvents {
    let (sender, filtered) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                () = sender.closed() => return,
                event = feed.recv() => event,
            };
            let Some(event) = event else { return };
            if !faults.drops_event() && sender.send(event).is_err() {
                return;
            }
        }
    });
    filtered
}

fn fault_error() -> StoreError {
    StoreError::Unavailable(Reason::new("a planned fault"))
}

#[cfg(test)]
mod tests {
    use outlast_engine::MemoryStore;
    use outlast_engine::laws::fixtures::{self, NODE_A, NODE_B, insertion, stored, task};
    use outlast_engine::store::StoreEvent;

    use super::*;

    outlast_engine::store_laws!(async { FaultyStore::new(Arc::new(MemoryStore::new())) });

    fn faulty() -> (Arc<dyn Store>, Faults) {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let faults = store.faults();
        (Arc::new(store), faults)
    }

    #[tokio::test]
    async fn a_write_that_fails_before_the_commit_changes_nothing() {
        let (store, faults) = faulty();
        faults.fail_writes(1, WriteFault::BeforeCommit);
        let reply = store.insert(insertion(task(1))).await;
        assert!(reply.is_err_and(|error| error.is_transient()));
        assert_eq!(fixtures::snapshot(&store, fixtures::id(1)).await, None);
        stored(&store, task(1)).await;
        assert_eq!(faults.writes(), 2);
    }

    #[tokio::test]
    async fn a_write_that_fails_after_the_commit_is_stored() {
        let (store, faults) = faulty();
        faults.fail_writes_after(1, 1, WriteFault::AfterCommit);
        stored(&store, task(1)).await;
        let reply = store.insert(insertion(task(2))).await;
        assert!(reply.is_err_and(|error| error.is_transient()));
        assert!(fixtures::snapshot(&store, fixtures::id(2)).await.is_some());
    }

    #[tokio::test]
    async fn a_hook_sees_a_write_unknown_to_its_caller() {
        let (store, faults) = faulty();
        faults.fail_writes(1, WriteFault::NoReply);
        let (seen, mut look) = mpsc::unbounded_channel();
        faults.run_before_notify(Arc::new(move || {
            seen.send(()).expect("the test receives it");
        }));
        tokio::select! {
            _ = store.insert(insertion(task(1))) => panic!("the insert gets a reply"),
            seen = look.recv() => assert_eq!(seen, Some(())),
        }
        assert!(fixtures::snapshot(&store, fixtures::id(1)).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn replies_are_delayed() {
        let (store, faults) = faulty();
        faults.delay(Duration::from_secs(3));
        let before = tokio::time::Instant::now();
        stored(&store, task(1)).await;
        assert_eq!(before.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test]
    async fn events_are_dropped() {
        let (store, faults) = faulty();
        let first = stored(&store, task(1)).await;
        let second = stored(&store, task(2)).await;
        let mut feed = store.join(NODE_B).await.expect("it is open");
        let _here = store.join(NODE_A).await.expect("it is open");
        faults.drop_events(1);
        fixtures::removed(&store, &first).await;
        fixtures::removed(&store, &second).await;
        assert_eq!(feed.recv().await, Some(StoreEvent::TaskChanged(second.id)));
    }
}
