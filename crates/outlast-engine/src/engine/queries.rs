//! Queries: one task, its outcome, a page of tasks, the number of tasks.

use super::{EndedTask, Engine, EngineError, Inner, cursor};
use crate::id::{Scope, TaskId};
use crate::owner::Owner;
use crate::store::{Committed, Filter, NodeStatus, Page, Position, Snapshot, Usage};
use crate::task::Task;

/// Part of an owner's tasks, newest first.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Snapshot>,
    /// The opaque cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Engine {
    /// The engines that share the store, this one included.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>, EngineError> {
        Ok(self.inner.store.nodes().await?)
    }

    /// Publishes where other nodes reach this engine, for [`nodes`](Self::nodes).
    pub async fn publish_address(&self, address: &str) -> Result<(), EngineError> {
        let node = self.inner.node;
        Ok(self.inner.store.publish_address(node, address).await?)
    }

    /// The current state of a task. Never waits for the task.
    pub async fn get(&self, scope: &Scope, id: TaskId) -> Result<Snapshot, EngineError> {
        self.check_ready()?;
        let found = self.inner.store.get(scope, id).await?;
        self.inner.unexpired(found)
    }

    /// The whole task, with the request that it executes (its origin) and its timeline.
    pub async fn load(&self, scope: &Scope, id: TaskId) -> Result<Committed<Task>, EngineError> {
        self.check_ready()?;
        let found = self
            .inner
            .store
            .load(scope, id)
            .await?
            .ok_or(EngineError::NotFound)?;
        if found.is_expired(self.inner.now()) {
            Err(EngineError::Expired)
        } else {
            Ok(found)
        }
    }

    /// The outcome of a task, or `None` while it has not ended.
    pub async fn outcome(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<EndedTask>, EngineError> {
        self.check_ready()?;
        let found = self.inner.store.get(scope, id).await?;
        match self.inner.unexpired(found)? {
            Snapshot::Open(_) => Ok(None),
            Snapshot::Ended(summary) => {
                let body = self.inner.store.body(scope, id).await?;
                if summary.ending.has_body() && body.is_none() {
                    // The task was removed between the two reads. P2: an ended task is never
                    // returned without its outcome.
                    Err(EngineError::NotFound)
                } else {
                    Ok(Some(EndedTask { summary, body }))
                }
            }
        }
    }

    /// A page of an owner's tasks. A task that exists during the whole listing is on exactly one
    /// page (P9).
    pub async fn page(
        &self,
        owner: &Owner,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<TaskPage, EngineError> {
        self.check_ready()?;
        let after = cursor
            .map(|cursor| cursor::read(owner, cursor))
            .transpose()?;
        let mut page = self
            .inner
            .store
            .page(owner, after, limit.clamp(1, MAX_PAGE_SIZE))
            .await?;
        let now = self.inner.now();
        page.tasks.retain(|task| !task.is_expired(now));
        let next = page.next.map(|position| cursor::write(owner, position));
        Ok(TaskPage {
            tasks: page.tasks,
            next,
        })
    }

    /// Returns a page of the owner's tasks that `runner` executes. If `runner` is `None`, returns a
    /// page of all tasks of the owner. A page may have fewer than `limit` tasks although another
    /// page follows.
    pub async fn page_of_runner(
        &self,
        owner: &Owner,
        runner: Option<&str>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<TaskPage, EngineError> {
        let mut page = self.page(owner, cursor, limit).await?;
        let Some(runner) = runner else {
            return Ok(page);
        };
        loop {
            page.tasks.retain(|task| **task.runner() == *runner);
            match &page.next {
                Some(next) if page.tasks.is_empty() => {
                    page = self.page(owner, Some(next), limit).await?;
                }
                _ => return Ok(page),
            }
        }
    }

    /// Up to `limit` tasks that match `filter`, newest first, that were inserted before `after`.
    ///
    /// [`Page::next`] is where the search continues. A page may have fewer than `limit` tasks, or
    /// none, although another page follows.
    pub async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, EngineError> {
        self.check_ready()?;
        let limit = limit.clamp(1, MAX_PAGE_SIZE);
        let mut page = self.inner.store.search(filter, after, limit).await?;
        let now = self.inner.now();
        page.tasks.retain(|task| !task.is_expired(now));
        Ok(page)
    }

    /// All tasks of an owner that have not ended, newest first.
    pub async fn open_tasks(&self, owner: &Owner) -> Result<Vec<Snapshot>, EngineError> {
        let (mut open, mut cursor) = (Vec::new(), None);
        loop {
            let page = self
                .page(owner, cursor.as_deref(), OPEN_TASKS_PAGE_SIZE)
                .await?;
            let tasks = page.tasks.into_iter();
            open.extend(tasks.filter(|task| task.ending().is_none()));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(open);
            }
        }
    }

    /// Returns the numbers of open and retained tasks, of `owner` and of all owners.
    pub async fn usage(&self, owner: &Owner) -> Result<Usage, EngineError> {
        self.check_ready()?;
        Ok(self.inner.store.usage(owner).await?)
    }
}

impl Inner {
    /// Returns the snapshot, if the task exists and has not expired.
    fn unexpired(&self, found: Option<Snapshot>) -> Result<Snapshot, EngineError> {
        let found = found.ok_or(EngineError::NotFound)?;
        if found.is_expired(self.now()) {
            Err(EngineError::Expired)
        } else {
            Ok(found)
        }
    }
}

/// The page size for reading all open tasks.
const OPEN_TASKS_PAGE_SIZE: usize = 100;

/// The maximum number of tasks on a page.
const MAX_PAGE_SIZE: usize = 1_000;
