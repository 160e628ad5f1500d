//! Searches of the store: pages of rows, and counts that stop at a limit.

use std::time::Duration;

use outlast_engine::store::{Filter, Position, Snapshot};
use tokio::time::Instant;

use crate::console::App;
use crate::error::ConsoleError;
use crate::format;

/// Tasks that were found, newest first.
pub(crate) struct Found {
    pub(crate) tasks: Vec<Snapshot>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<Position>,
}

/// How many tasks match, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) number: usize,
    /// Whether there may be more.
    pub(crate) is_more: bool,
}

/// Up to `limit` tasks that match. A search that takes too long returns what it has found.
pub(crate) async fn search(
    app: &App,
    filter: &Filter,
    mut after: Option<Position>,
    limit: usize,
) -> Result<Found, ConsoleError> {
    let end = Instant::now() + MAX_SEARCH_TIME;
    let mut tasks = Vec::new();
    loop {
        let page = app
            .engine()
            .search(filter, after, limit - tasks.len())
            .await?;
        let found = page.tasks.into_iter();
        tasks.extend(found.filter(|task| !app.deletions().contains(task.id())));
        after = page.next;
        if after.is_none() || tasks.len() >= limit || Instant::now() >= end {
            return Ok(Found { tasks, next: after });
        }
    }
}

/// Counts the tasks that match.
pub(crate) async fn count(app: &App, filter: &Filter) -> Result<Count, ConsoleError> {
    let end = Instant::now() + MAX_SEARCH_TIME;
    let (mut number, mut after) = (0, None);
    loop {
        let page = app.engine().search(filter, after, PAGE_SIZE).await?;
        number += page.tasks.len();
        after = page.next;
        let is_more = after.is_some();
        if !is_more || number >= MAX_COUNTED_TASKS || Instant::now() >= end {
            let number = number.min(MAX_COUNTED_TASKS);
            return Ok(Count { number, is_more });
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plus = if self.is_more { "+" } else { "" };
        write!(f, "{}{plus}", format::count(self.number as u64))
    }
}

/// Counting stops here: "10,000+".
pub(crate) const MAX_COUNTED_TASKS: usize = 10_000;

/// The number of tasks in one request to the store.
pub(crate) const PAGE_SIZE: usize = 1_000;

const MAX_SEARCH_TIME: Duration = Duration::from_secs(2);
