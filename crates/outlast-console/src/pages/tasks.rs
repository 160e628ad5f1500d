//! The list of tasks: search, pages, actions on many tasks.

use askama::Template;
use axum::extract::{Query as QueryParams, State};
use outlast::server::Scopes;
use outlast_engine::store::Status;
use outlast_wire::Timestamp;
use serde::Deserialize;
use url::form_urlencoded;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::layout::{Html, Layout, Section, render};
use crate::query::Query;
use crate::search::Count;
use crate::task_list::{self, Cursor};
use crate::task_row::{Origin, TaskRow, label};
use crate::task_row_peer;

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TasksParams {
    #[serde(default)]
    q: String,
    #[serde(default)]
    after: String,
    /// Rows that the page shows although they may no longer match.
    #[serde(default)]
    also: String,
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct TasksPage {
    layout: Layout,
    q: String,
    problems: Vec<String>,
    chips: Vec<Chip>,
    origins: Vec<Chip>,
    rows: Vec<TaskRow>,
    also: Vec<TaskRow>,
    count: Count,
    /// The query of the next page.
    next: Option<String>,
    is_first_page: bool,
    can_cancel: bool,
    is_operator: bool,
    /// Whether the program has no server of its own, so that only calls from here make tasks.
    is_inspector: bool,
    servers: Vec<String>,
    now: Timestamp,
    page_size: usize,
}

/// A link that replaces one qualifier of the search.
struct Chip {
    label: &'static str,
    query: String,
    is_current: bool,
}

/// `GET /tasks`.
pub(crate) async fn tasks(
    State(app): State<App>,
    viewer: Viewer,
    QueryParams(params): QueryParams<TasksParams>,
) -> Result<Html, ConsoleError> {
    let now = app.engine().now();
    let query = Query::of(&app, &params.q, &viewer);
    let cursor: Cursor = params.after.parse()?;
    let peers = match app.workspace(&viewer) {
        Ok(workspace) => task_row_peer::rows(&workspace, &viewer).await,
        Err(_) => Vec::new(),
    };
    let page = task_list::page(&app, &query, &peers, &cursor, PAGE_SIZE).await?;
    let count = task_list::count(&app, &query, &peers).await?;
    let is_shown = |key: &&str| page.rows.iter().any(|row| row.key == **key);
    let asked = params.also.split(',').filter(|key| !is_shown(key));
    let also = task_list::named(&app, &viewer, &peers, asked.take(MAX_PEER_TASKS)).await;
    let upstreams = app.upstreams().map(|upstreams| upstreams.all());
    let upstreams = upstreams.unwrap_or_default().into_iter();
    let mut servers: Vec<_> = upstreams
        .map(|served| served.upstream.name().to_string())
        .collect();
    for row in &peers {
        if !servers.contains(&row.server) {
            servers.push(row.server.clone());
        }
    }
    let next = page.next.map(|cursor| {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("q", &params.q)
            .append_pair("after", &cursor.to_string())
            .finish()
    });
    render(&TasksPage {
        layout: Layout::new(&app, &viewer, Section::Tasks),
        chips: status_chips(&params.q),
        origins: origin_chips(&params.q),
        problems: query.problems,
        rows: page.rows,
        also,
        count,
        next,
        is_first_page: params.after.is_empty(),
        can_cancel: viewer.can(Scopes::CANCEL),
        is_operator: viewer.is_operator(),
        is_inspector: app.is_inspector(),
        servers,
        now,
        page_size: PAGE_SIZE,
        q: params.q,
    })
}

/// A link for each status, which keeps the other words of the search.
fn status_chips(q: &str) -> Vec<Chip> {
    let statuses = Status::ALL.map(|status| (label(status), status.word()));
    chips(q, "status:", "All", &statuses)
}

/// A link for each origin, which keeps the other words of the search.
fn origin_chips(q: &str) -> Vec<Chip> {
    let origins = Origin::ALL.map(|origin| (origin.label(), origin.word()));
    chips(q, "origin:", "Every origin", &origins)
}

fn chips(
    q: &str,
    name: &str,
    all: &'static str,
    values: &[(&'static str, &'static str)],
) -> Vec<Chip> {
    let words = q.split_whitespace();
    let (own, rest): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with(name));
    let current = own.first().copied();
    let chip = |label, value: Option<&str>| {
        let wanted = value.map(|value| format!("{name}{value}"));
        let words = wanted.as_deref().into_iter().chain(rest.iter().copied());
        let text = words.collect::<Vec<_>>().join(" ");
        let mut query = form_urlencoded::Serializer::new(String::new());
        Chip {
            label,
            query: query.append_pair("q", &text).finish(),
            is_current: current == wanted.as_deref(),
        }
    };
    let values = values.iter().map(|(label, value)| chip(label, Some(value)));
    std::iter::once(chip(all, None)).chain(values).collect()
}

const PAGE_SIZE: usize = 50;

const MAX_PEER_TASKS: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_keeps_the_other_words() {
        let chips = status_chips("status:failed tool:a b");
        assert_eq!(chips[0].query, "q=tool%3Aa+b");
        assert!(!chips[0].is_current);
        let failed = chips.iter().find(|chip| chip.is_current).unwrap();
        assert_eq!(
            (failed.label, failed.query.as_str()),
            ("Failed", "q=status%3Afailed+tool%3Aa+b")
        );
    }
}
