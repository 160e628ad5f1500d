//! Runs the script on one store and records what the store returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::laws::fixtures::{self, CREATED};
use outlast_engine::store::{
    Insert, InsertResult, Record, RecordKey, RecordSwap, RecordWrite, Replace, Snapshot,
    StoreEvents, Usage,
};
use outlast_engine::task::{Lifetime, NewTask, ResumeState};
use outlast_engine::transition::{Command, Next};
use outlast_engine::{
    InputKey, NodeId, Owner, Quota, Revision, Scope, Store, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, Timestamp};

use crate::script::{
    CommandTemplate, KEYS, NODES, OWNERS, RecordChange, RevisionChoice, Step, TASKS, TaskTemplate,
};

/// A store that can be closed and opened again.
#[async_trait]
pub(crate) trait TestedStore {
    fn store(&self) -> &Arc<dyn Store>;

    /// Closes the store and opens it again.
    async fn reopen(&mut self);
}

/// What a store returned, in a form that can be compared.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    Stored(Task),
    Existing(TaskId),
    Refused(StoreRefusal),
    Removed(Vec<TaskId>),
    Task(Option<(Snapshot, Task)>, Option<Raw>),
    Pages(Vec<Vec<Snapshot>>),
    Due(Vec<(TaskId, Revision)>, Option<Timestamp>),
    DueCount(usize),
    Usage(Usage),
    Records(Vec<Record>),
    Swapped(bool),
    Claimed(Vec<(TaskId, Revision)>),
    Done,
    /// The step is not possible, such as a command that the task refuses.
    Nothing,
}

/// A refusal without the reached limit: stores may check several limits in another order.
#[derive(Debug, PartialEq)]
pub(crate) enum StoreRefusal {
    Conflict,
    Exists,
    Full,
    Other(StoreError),
}

pub(crate) struct Harness<S> {
    tested: S,
    now: Timestamp,
    /// The first revision of every task, for callers that name a stale revision.
    first: BTreeMap<TaskId, Task>,
    /// The joined nodes, by their number in the script.
    joined: BTreeMap<u8, StoreEvents>,
    /// How many engines have left: an engine that joins again has a new name.
    departures: u64,
    node_ids: [u64; NODES as usize],
}

impl<S: TestedStore> Harness<S> {
    pub(crate) fn new(tested: S) -> Self {
        Self {
            tested,
            now: CREATED,
            first: BTreeMap::new(),
            joined: BTreeMap::new(),
            departures: 0,
            node_ids: std::array::from_fn(|n| n as u64 + 1),
        }
    }

    pub(crate) async fn run(&mut self, step: &Step) -> Output {
        self.now = self.now.plus(50);
        let store = self.tested.store().clone();
        match step {
            Step::Insert(new) => self.insert(new).await,
            Step::Change {
                task,
                template,
                revision,
                skew,
                records,
            } => {
                let now = Timestamp(self.now.0.saturating_add_signed(*skew));
                self.change(*task, template, *revision, now, records).await
            }
            Step::Remove(picks) => {
                let mut tasks = Vec::new();
                for (n, revision) in picks {
                    let task = self.task_at(id(*n), *revision).await;
                    tasks.extend(task.map(|task| (task.id, task.revision)));
                }
                let mut gone = fixtures::removal(&store, tasks).await;
                gone.sort();
                Output::Removed(gone)
            }
            Step::Get { task, owner } => {
                let scope = owner.map_or(Scope::AnyTask, |n| Scope::OwnedBy(name(n)));
                self.get_task(&scope, id(*task)).await
            }
            Step::List { owner, limit } => self.list_pages(&name(*owner), *limit).await,
            Step::Due { after } => {
                self.now = self.now.plus(*after);
                self.due().await
            }
            Step::DueCount { limit } => {
                let due = store.due(self.now, *limit).await;
                Output::DueCount(due.expect("the store is open").tasks.len())
            }
            Step::Usage(owner) => self.usage(&name(*owner)).await,
            Step::Write(record_changes) => {
                let written = store.write_records(self.records(record_changes)).await;
                written.expect("the store is open");
                Output::Done
            }
            Step::Swap {
                expected,
                kind,
                key,
                ttl_ms,
                text,
            } => {
                let swap = RecordSwap {
                    expected: expected.map(bytes),
                    record: Record {
                        key: record_key(*kind, *key),
                        owner: None,
                        expires: ttl_ms.map(|ttl_ms| self.now.plus(ttl_ms)),
                        bytes: bytes(*text),
                    },
                };
                let swapped = store.swap_record(swap, self.now).await;
                Output::Swapped(swapped.expect("the store is open"))
            }
            Step::Read(kind, key) => {
                let found = store.record(&record_key(*kind, *key), self.now).await;
                Output::Records(found.expect("the store is open").into_iter().collect())
            }
            Step::ReadAll(kind, owner) => self.read_all(*kind, *owner).await,
            Step::Join(n) => {
                let feed = store.join(self.node(*n)).await;
                self.joined.insert(*n, feed.expect("the store is open"));
                Output::Done
            }
            Step::Leave(n) => {
                self.leave(*n).await;
                Output::Done
            }
            Step::Claim(n) => self.claim(*n).await,
            Step::Reopen => {
                // No engine outlives the process.
                for n in 0..NODES {
                    self.leave(n).await;
                }
                drop(store);
                self.tested.reopen().await;
                Output::Done
            }
        }
    }

    /// Everything that can be asked.
    pub(crate) async fn audit(&mut self) -> Vec<Output> {
        let mut all = Vec::new();
        for n in 0..TASKS {
            all.push(self.get_task(&Scope::AnyTask, id(n)).await);
        }
        for owner in (0..OWNERS).map(name) {
            all.push(self.list_pages(&owner, 2).await);
            all.push(self.usage(&owner).await);
        }
        for kind in 0..2 {
            all.push(self.read_all(kind, None).await);
        }
        for n in 0..NODES {
            self.run(&Step::Join(n)).await;
            all.push(self.claim(n).await);
        }
        all.push(self.due().await);
        self.now = Timestamp(u64::MAX);
        all.push(self.due().await);
        all
    }

    async fn insert(&mut self, new: &TaskTemplate) -> Output {
        let (owner_open, owner_retained, open, retained) = new.quota;
        let task = NewTask {
            owner: name(new.owner),
            request_key: new.key.map(|n| format!("request {n}").into()),
            executor: self.node(new.executor),
            lifetime: Lifetime::new(new.ttl, new.ttl_policy, new.run_limit),
            ..fixtures::new_task(u64::from(new.task))
        };
        let insert = Insert {
            task: Task::new(task, self.now).into(),
            quota: Quota::default()
                .with_owner_open(owner_open)
                .with_owner_retained(owner_retained)
                .with_open(open)
                .with_retained(retained),
            records: self.records(&new.records),
        };
        match self.tested.store().insert(insert).await {
            Ok(InsertResult::New(task)) => {
                self.first.insert(task.id, (*task).clone());
                Output::Stored((*task).clone())
            }
            Ok(InsertResult::Existing(id)) => Output::Existing(id),
            Err(error) => Output::Refused(error.into()),
        }
    }

    async fn change(
        &self,
        n: u8,
        template: &CommandTemplate,
        revision: RevisionChoice,
        now: Timestamp,
        records: &[RecordChange],
    ) -> Output {
        let Some(task) = self.task_at(id(n), revision).await else {
            return Output::Nothing;
        };
        let (store, expected) = (self.tested.store(), task.revision);
        match Arc::new(task.clone()).apply(self.command(template, &task, now), now) {
            Err(_) => Output::Nothing,
            Ok(step) => match step.next {
                Next::Removed => {
                    Output::Removed(fixtures::removal(store, [(task.id, expected)]).await)
                }
                Next::Stored(next, body) => {
                    let replace = Replace {
                        node: task.executor,
                        expected,
                        next,
                        body,
                        records: self.records(records),
                    };
                    match store.replace(replace).await {
                        Ok(task) => Output::Stored((*task).clone()),
                        Err(error) => Output::Refused(error.into()),
                    }
                }
            },
        }
    }

    async fn get_task(&self, scope: &Scope, id: TaskId) -> Output {
        let store = self.tested.store();
        let shown = store.get(scope, id).await.expect("the store is open");
        let task = store.load(scope, id).await.expect("the store is open");
        let body = store.body(scope, id).await.expect("the store is open");
        assert_eq!(shown.is_some(), task.is_some(), "get and load agree");
        Output::Task(shown.zip(task.map(|task| (*task).clone())), body)
    }

    async fn list_pages(&self, owner: &Owner, limit: usize) -> Output {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = self.tested.store().page(owner, after, limit).await;
            let page = page.expect("the store is open");
            pages.push(page.tasks);
            after = page.next;
            if after.is_none() {
                return Output::Pages(pages);
            }
        }
    }

    async fn due(&self) -> Output {
        let due = self.tested.store().due(self.now, 1_000).await;
        let mut due = due.expect("the store is open");
        due.tasks.sort();
        Output::Due(due.tasks, due.next)
    }

    async fn usage(&self, owner: &Owner) -> Output {
        let used = self.tested.store().usage(owner).await;
        Output::Usage(used.expect("the store is open"))
    }

    async fn read_all(&self, kind: u8, owner: Option<u8>) -> Output {
        let kind = record_key(kind, 0).kind;
        let owner = owner.map(name);
        let found = self.tested.store();
        let found = found.records(&kind, owner.as_ref(), self.now).await;
        let mut found = found.expect("the store is open");
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Output::Records(found)
    }

    /// The tasks that a node claims, if it has joined.
    async fn claim(&self, n: u8) -> Output {
        if !self.joined.contains_key(&n) {
            return Output::Nothing;
        }
        let offers = self.tested.store().claim(self.node(n), 1_000).await;
        let offers = offers.expect("the store is open");
        let mut offers: Vec<_> = offers.iter().map(|task| (task.id, task.revision)).collect();
        offers.sort();
        Output::Claimed(offers)
    }

    async fn leave(&mut self, n: u8) {
        let left = self.tested.store().leave(self.node(n)).await;
        left.expect("the store is open");
        self.joined.remove(&n);
        self.departures += 1;
        self.node_ids[usize::from(n)] = u64::from(NODES) + self.departures;
    }

    fn node(&self, n: u8) -> NodeId {
        NodeId(self.node_ids[usize::from(n)])
    }

    async fn task_at(&self, id: TaskId, revision: RevisionChoice) -> Option<Task> {
        match revision {
            RevisionChoice::First => self.first.get(&id).cloned(),
            RevisionChoice::Newest => {
                let task = fixtures::loaded(self.tested.store(), id).await?;
                Some((*task).clone())
            }
        }
    }

    fn command(&self, template: &CommandTemplate, task: &Task, now: Timestamp) -> Command {
        let attempt = task.attempt;
        let key = |n: &u8| InputKey::new(format!("question {n}"));
        match template {
            CommandTemplate::RequestInput(n) => Command::RequestInput {
                attempt,
                key: key(n),
                request: fixtures::input_request(),
                limit: usize::from(KEYS),
            },
            CommandTemplate::WithdrawInput(n) => Command::WithdrawInput {
                attempt,
                key: key(n),
            },
            CommandTemplate::ProvideInput(n) => {
                Command::ProvideInput([(key(n), fixtures::input_response("[true]"))].into())
            }
            CommandTemplate::ConfirmInput(n) => Command::ConfirmInput {
                attempt,
                key: key(n),
            },
            CommandTemplate::Status(n) => Command::Status {
                attempt,
                message: format!("page {n}").into(),
            },
            CommandTemplate::SaveResumeState => Command::SaveResumeState {
                attempt,
                state: ResumeState(Arc::from([0, 255])),
            },
            CommandTemplate::CancelNow => Command::CancelNow,
            CommandTemplate::RequestCancel(after) => Command::RequestCancel {
                deadline: now.plus(*after),
            },
            CommandTemplate::End(outcome) => Command::End {
                attempt,
                outcome: outcome.clone(),
                message: None,
            },
            CommandTemplate::Due => Command::Due,
            CommandTemplate::Extend(ttl) => Command::Extend { ttl: *ttl },
            CommandTemplate::Claim(n, how) => Command::Claim {
                executor: self.node(*n),
                how: *how,
            },
        }
    }

    fn records(&self, record_changes: &[RecordChange]) -> Vec<RecordWrite> {
        let write = |change: &RecordChange| match change {
            RecordChange::Delete(kind, key) => RecordWrite::Delete(record_key(*kind, *key)),
            RecordChange::Put {
                kind,
                key,
                owner,
                ttl_ms,
                text,
            } => RecordWrite::Put(Record {
                key: record_key(*kind, *key),
                owner: owner.map(name),
                expires: ttl_ms.map(|ttl_ms| self.now.plus(ttl_ms)),
                bytes: bytes(*text),
            }),
        };
        record_changes.iter().map(write).collect()
    }
}

impl From<StoreError> for StoreRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            StoreError::Exists(_) => Self::Exists,
            StoreError::Full { .. }
            | StoreError::Busy { .. }
            | StoreError::OwnerBusy { .. }
            | StoreError::OwnerFull { .. } => Self::Full,
            other => Self::Other(other),
        }
    }
}

fn id(n: u8) -> TaskId {
    fixtures::id(u64::from(n))
}

fn name(n: u8) -> Owner {
    Owner::principal(format!("owner {n}"))
}

fn bytes(text: u8) -> Arc<[u8]> {
    Arc::from([text, 0, 255])
}

fn record_key(kind: u8, key: u8) -> RecordKey {
    // One kind is the beginning of the other.
    let kind = ["session", "session-key"][usize::from(kind) % 2];
    RecordKey::new(kind, format!("record {key}"))
}
