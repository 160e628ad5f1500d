//! The store of one node: the simulated database behind a connection that is slow, cut or frozen,
//! and that loses replies. It renews the lease of its node as the store in PostgreSQL does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::Progress;
use outlast_engine::store::{
    DueTasks, Filter, Health, Insert, InsertResult, NodeStatus, Page, Position, Record, RecordKey,
    RecordSwap, RecordWrite, Replace, Snapshot, StoreEvent, StoreEvents, StoreFuture, Usage,
};
use outlast_engine::{Committed, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId};
use outlast_store::postgres::{HEARTBEAT, Renewals, TRUST_WINDOW};
use outlast_testkit::death::SeededRandom;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::database::{Database, Fault, STATEMENT_TIMEOUT, unavailable};
use crate::observed::Observed;

#[derive(Clone)]
pub(crate) struct NodeStore(Arc<Shared>);

struct Shared {
    database: Arc<Database>,
    link: Arc<Link>,
    joined: Mutex<Option<Joined>>,
    /// The only node that joins through this store.
    node: OnceLock<NodeId>,
    health: watch::Sender<Health>,
    renewing: Mutex<Option<AbortHandle>>,
}

struct Joined {
    node: NodeId,
    epoch: u64,
    trusted_until: Instant,
    events: mpsc::UnboundedSender<StoreEvent>,
}

/// The connection of a node to the database.
pub(crate) struct Link {
    state: Observed<LinkState>,
    healthy_since: Mutex<Instant>,
    random: Mutex<SeededRandom>,
    /// Whether it loses no messages by itself.
    reliable: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Up,
    /// Statements fail.
    Cut,
    /// The process is stopped: statements and replies wait.
    Frozen,
    /// The process was killed: nothing happens any more.
    Dead,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Observed::new(LinkState::Up),
            healthy_since: Mutex::new(Instant::now()),
            random: Mutex::new(SeededRandom::new(seed)),
            reliable: AtomicBool::new(false),
        })
    }

    pub(crate) fn set(&self, state: LinkState) {
        *self.healthy_since.lock().expect("no test panics here") = Instant::now();
        // A killed process stays dead.
        if self.state.get() != LinkState::Dead {
            self.state.set(state);
        }
    }

    pub(crate) fn state(&self) -> LinkState {
        self.state.get()
    }

    /// Since when it is up, if it is.
    pub(crate) fn healthy_since(&self) -> Option<Instant> {
        let since = *self.healthy_since.lock().expect("no test panics here");
        (self.state() == LinkState::Up).then_some(since)
    }

    /// From now on it loses no messages.
    pub(crate) fn make_reliable(&self) {
        self.reliable.store(true, Ordering::SeqCst);
    }

    pub(crate) fn percent(&self, percent: u64) -> bool {
        let mut random = self.random.lock().expect("no test panics here");
        random.percent(percent)
    }

    /// Transports a message.
    async fn pass(&self) -> Result<(), StoreError> {
        let (delay, lost) = {
            let mut random = self.random.lock().expect("no test panics here");
            let limit = if random.percent(3) { 200_000 } else { 3_000 };
            let loses = !self.reliable.load(Ordering::SeqCst);
            (random.below(limit), random.percent(1) && loses)
        };
        sleep(Duration::from_micros(delay)).await;
        let moving = |state| matches!(state, LinkState::Up | LinkState::Cut);
        if self.state.wait_for(moving).await == LinkState::Cut || lost {
            Err(unavailable("the connection was lost"))
        } else {
            Ok(())
        }
    }
}

impl NodeStore {
    pub(crate) fn new(database: &Arc<Database>, link: &Arc<Link>) -> Self {
        let store = Self(Arc::new(Shared {
            database: database.clone(),
            link: link.clone(),
            joined: Mutex::default(),
            node: OnceLock::new(),
            health: watch::Sender::new(Health::Ready),
            renewing: Mutex::default(),
        }));
        let renewing = tokio::spawn(store.clone().renew_loop());
        *store.0.renewing.lock().expect("no test panics here") = Some(renewing.abort_handle());
        store
    }

    /// Executes `work` at the database, unless the request is lost. Its reply may be lost too.
    async fn statement<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.0.link.pass().await?;
        match timeout(STATEMENT_TIMEOUT, self.0.database.reached()).await {
            Ok(reached) => reached?,
            Err(_) => return Err(unavailable("the database did not answer in time")),
        }
        let reply = work.await;
        self.0.link.pass().await?;
        reply
    }

    /// Executes a write of a node whose lease is trusted here and valid there.
    async fn write<T>(
        &self,
        node: NodeId,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.check_trust(node)?;
        self.statement(async {
            self.0.database.check_lease(node)?;
            work.await
        })
        .await
    }

    fn check_trust(&self, node: NodeId) -> Result<(), StoreError> {
        match &*self.joined() {
            Some(own) if own.node == node && own.trusted_until <= Instant::now() => {
                Err(unavailable("the lease was not renewed in time"))
            }
            _ => Ok(()),
        }
    }

    async fn renew_loop(self) {
        let mut renewals = Renewals::default();
        loop {
            sleep(HEARTBEAT).await;
            let own = self.joined().as_ref().map(|own| (own.node, own.epoch));
            let Some((node, epoch)) = own else {
                renewals.failed();
                continue;
            };
            let begun = Instant::now();
            let database = &self.0.database;
            match self
                .statement(async { Ok(database.renew(node, epoch)) })
                .await
            {
                Ok(true) => {
                    if let Some(own) = self.joined().as_mut().filter(|own| own.epoch == epoch) {
                        own.trusted_until = begun + TRUST_WINDOW;
                    }
                    renewals.succeeded(Instant::now().into_std());
                }
                Ok(false) => {
                    renewals.succeeded(Instant::now().into_std());
                    let mut joined = self.joined();
                    if let Some(own) = joined.take_if(|own| own.epoch == epoch) {
                        let _ = own.events.send(StoreEvent::LeaseLost);
                    }
                }
                Err(_) => renewals.failed(),
            }
            let early = self.0.database.breaks(Fault::MarksEarly);
            if early || renewals.may_mark_lost(Instant::now().into_std()) {
                let marked = self.statement(async {
                    database.mark_lost_nodes().await;
                    Ok(())
                });
                // The next round tries again.
                let _ = marked.await;
            }
        }
    }

    fn joined(&self) -> MutexGuard<'_, Option<Joined>> {
        self.0.joined.lock().expect("no test panics here")
    }
}

#[async_trait]
impl Store for NodeStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        let this = self.clone();
        StoreFuture::boxed(async move {
            let node = insert.task.executor;
            let tasks = &this.0.database.tasks;
            let (id, revision) = (insert.task.id, insert.task.revision);
            this.write(node, async {
                let inserted = tasks.insert(insert).await;
                if this.0.database.breaks(Fault::LosesTasks) && this.0.link.percent(2) {
                    tasks.remove(node, vec![(id, revision)]).await?;
                }
                inserted
            })
            .await
        })
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        let this = self.clone();
        StoreFuture::boxed(async move {
            let node = replace.node;
            let tasks = &this.0.database.tasks;
            this.write(node, async { tasks.replace(replace).await })
                .await
        })
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        let all = &self.0.database.tasks;
        self.write(node, all.remove(node, tasks)).await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        let tasks = &self.0.database.tasks;
        StoreFuture::boxed(self.statement(async move { tasks.get(scope, id).await }))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.statement(self.0.database.tasks.load(scope, id)).await
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        let tasks = &self.0.database.tasks;
        StoreFuture::boxed(self.statement(async move { tasks.body(scope, id).await }))
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let tasks = &self.0.database.tasks;
        self.statement(tasks.page(owner, after, limit)).await
    }

    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let tasks = &self.0.database.tasks;
        self.statement(tasks.search(filter, after, limit)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        self.statement(self.0.database.tasks.due(now, limit)).await
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.check_trust(node)?;
        self.0.link.pass().await?;
        self.0.database.reached().await?;
        self.0.database.check_lease(node)?;
        // A claim that fails has offered nothing, so its reply is not lost.
        if self.0.database.breaks(Fault::OffersNothing) {
            return Ok(Vec::new());
        }
        self.0.database.tasks.claim(node, limit).await
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.statement(self.0.database.tasks.usage(owner)).await
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.statement(self.0.database.tasks.write_records(records))
            .await
    }

    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError> {
        self.statement(self.0.database.tasks.swap_record(swap, now))
            .await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.statement(self.0.database.tasks.record(key, now)).await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        let tasks = &self.0.database.tasks;
        self.statement(tasks.records(kind, owner, now)).await
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        let begun = Instant::now();
        let _ = self.0.node.set(node);
        let database = &self.0.database;
        let (epoch, mut changes) = self.statement(database.join(node, &self.0.link)).await?;
        let (events, receiver) = mpsc::unbounded_channel();
        let trusted_until = begun + TRUST_WINDOW;
        *self.joined() = Some(Joined {
            node,
            epoch,
            trusted_until,
            events: events.clone(),
        });
        let this = self.clone();
        tokio::spawn(async move {
            while let Some(event) = changes.recv().await {
                // Changes are numbered rows: a read that fails is repeated.
                while this.statement(async { Ok(()) }).await.is_err() {
                    sleep(POLL_INTERVAL).await;
                }
                if events.send(event).is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.joined().take_if(|own| own.node == node);
        self.statement(self.0.database.leave(node)).await
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        let tasks = &self.0.database.tasks;
        self.statement(tasks.publish_address(node, address)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.statement(self.0.database.tasks.nodes()).await
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        self.0.database.tasks.publish_progress(node, id, progress);
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.0.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        if let Some(node) = self.0.node.get() {
            self.0.database.given_up(*node);
        }
        if let Some(renewing) = self.0.renewing.lock().expect("no test panics here").take() {
            renewing.abort();
        }
        Ok(())
    }
}

/// How often changes are read while reading fails.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
