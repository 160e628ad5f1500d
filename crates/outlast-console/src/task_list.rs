//! One list of tasks: those in the store, those at servers, and those hosted for servers. Newest
//! first, in pages.
//!
//! A [`Cursor`] says where a page starts in both: a position of the store, and the place between
//! the other tasks, which have no position.

use std::fmt;
use std::str::FromStr;

use outlast_engine::TaskId;
use outlast_engine::store::Position;
use outlast_wire::Timestamp;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::query::Query;
use crate::search::{self, Count, Found};
use crate::task_row::{Origin, TaskRow};
use crate::task_row_peer::{self, PeerKey};

/// A page of the list.
pub(crate) struct TaskListPage {
    pub(crate) rows: Vec<TaskRow>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<Cursor>,
}

/// Where a page starts. Its text is opaque to callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    store: StoreCursor,
    /// The creation of the last row of the page before, and its key if it is no task of the store.
    before: Option<(Timestamp, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StoreCursor {
    #[default]
    Start,
    After(Position),
    End,
}

/// The tasks that match, from `cursor` on.
pub(crate) async fn page(
    app: &App,
    query: &Query,
    peers: &[TaskRow],
    cursor: &Cursor,
    limit: usize,
) -> Result<TaskListPage, ConsoleError> {
    let shows_store = query.shows(Origin::Store) && !query.is_impossible;
    let found = match cursor.store {
        StoreCursor::Start | StoreCursor::After(_) if shows_store => {
            search::search(app, &query.filter, cursor.position(), limit).await?
        }
        _ => Found {
            tasks: Vec::new(),
            next: None,
        },
    };
    let mut admitted: Vec<&TaskRow> = Vec::new();
    for row in peers {
        if query.matches_row(row) && cursor.admits(row) {
            admitted.push(row);
        }
    }
    let mut peers = admitted.into_iter().peekable();
    let mut stored = found.tasks.iter().peekable();
    let mut rows: Vec<TaskRow> = Vec::new();
    let mut taken = 0;
    while rows.len() < limit {
        let peer_is_next = match (stored.peek(), peers.peek()) {
            (None, None) => break,
            // What follows in the store may be newer.
            (None, Some(_)) if found.next.is_some() => break,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(task), Some(peer)) => peer.created_at > task.created(),
        };
        if peer_is_next {
            rows.extend(peers.next().cloned());
        } else if let Some(task) = stored.next() {
            taken += 1;
            rows.push(TaskRow::of(app.engine(), task));
        }
    }
    let has_more_peers = peers.peek().is_some();
    let store = if taken == found.tasks.len() {
        found.next.map_or(StoreCursor::End, StoreCursor::After)
    } else if taken == 0 {
        cursor.store
    } else {
        // The position of the last task that is on the page.
        let shown = search::search(app, &query.filter, cursor.position(), taken).await?;
        shown.next.map_or(StoreCursor::End, StoreCursor::After)
    };
    let before = rows.last().map(|row| {
        let key = if row.is_stored() { "" } else { &row.key };
        (row.created_at, key.to_owned())
    });
    let next = Cursor {
        store,
        before: before.or_else(|| cursor.before.clone()),
    };
    let has_more = has_more_peers || store != StoreCursor::End;
    Ok(TaskListPage {
        rows,
        next: has_more.then_some(next),
    })
}

/// How many tasks match.
pub(crate) async fn count(
    app: &App,
    query: &Query,
    peers: &[TaskRow],
) -> Result<Count, ConsoleError> {
    let mut count = Count {
        number: 0,
        is_more: false,
    };
    if query.shows(Origin::Store) && !query.is_impossible {
        count = search::count(app, &query.filter).await?;
    }
    count.number += peers.iter().filter(|row| query.matches_row(row)).count();
    Ok(count)
}

/// The tasks of the workspace of a viewer; none if it has no workspace.
pub(crate) async fn peer_rows(app: &App, viewer: &Viewer) -> Vec<TaskRow> {
    match app.existing_workspace(viewer) {
        Some(workspace) => task_row_peer::rows(&workspace, viewer).await,
        None => Vec::new(),
    }
}

/// The rows with these keys that the viewer may see.
pub(crate) async fn named(
    app: &App,
    viewer: &Viewer,
    peers: &[TaskRow],
    keys: impl Iterator<Item = &str>,
) -> Vec<TaskRow> {
    let mut rows = Vec::new();
    for key in keys {
        if PeerKey::parse(key).is_some() {
            rows.extend(peers.iter().find(|row| row.key == key).cloned());
        } else if let Ok(id) = key.parse::<TaskId>()
            && !app.deletions().contains(id)
            && let Ok(task) = app.engine().get(&viewer.scope(), id).await
        {
            rows.push(TaskRow::of(app.engine(), &task));
        }
    }
    rows
}

impl Cursor {
    fn position(&self) -> Option<Position> {
        match self.store {
            StoreCursor::After(position) => Some(position),
            StoreCursor::Start | StoreCursor::End => None,
        }
    }

    /// Whether a task that is not in the store comes after the cursor.
    fn admits(&self, row: &TaskRow) -> bool {
        let Some((time, key)) = &self.before else {
            return true;
        };
        row.created_at < *time || row.created_at == *time && (key.is_empty() || row.key < *key)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.store {
            StoreCursor::Start => {}
            StoreCursor::After(position) => write!(f, "{}", position.0)?,
            StoreCursor::End => f.write_str("end")?,
        }
        if let Some((time, key)) = &self.before {
            write!(f, ".{}", time.0)?;
            if !key.is_empty() {
                write!(f, ".{key}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = ConsoleError;

    fn from_str(text: &str) -> Result<Self, ConsoleError> {
        let wrong = || {
            ConsoleError::invalid("`after` is not the `next` of a page")
                .next("leave it out to begin with the newest task")
        };
        let mut parts = text.splitn(3, '.');
        let store = match parts.next() {
            Some("") | None => StoreCursor::Start,
            Some("end") => StoreCursor::End,
            Some(position) => StoreCursor::After(Position(position.parse().map_err(|_| wrong())?)),
        };
        let before = match parts.next() {
            Some(time) => {
                let time = Timestamp(time.parse().map_err(|_| wrong())?);
                Some((time, parts.next().unwrap_or_default().to_owned()))
            }
            None => None,
        };
        Ok(Self { store, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for text in [
            "",
            "0",
            "12",
            "12.1763",
            "end.1763.call-4",
            ".1763.hosted-a.b",
        ] {
            let cursor: Cursor = text.parse().unwrap();
            assert_eq!(cursor.to_string(), text);
        }
        assert!("x".parse::<Cursor>().is_err());
    }
}
