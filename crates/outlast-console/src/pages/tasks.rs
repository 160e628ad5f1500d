//! The list of tasks: search, pages, actions on many tasks.

use askama::Template;
use axum::extract::{Query as QueryParams, State};
use outlast::server::Scopes;
use outlast_engine::TaskId;
use outlast_engine::store::{Position, Status};
use outlast_wire::Timestamp;
use serde::Deserialize;
use url::form_urlencoded;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::layout::{Html, Layout, Section, render};
use crate::query::Query;
use crate::search::{self, Count, Found};
use crate::task_row::{TaskRow, label};

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TasksParams {
    #[serde(default)]
    q: String,
    after: Option<u64>,
    /// Rows that the page shows although they may not match any more.
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
    rows: Vec<TaskRow>,
    also: Vec<TaskRow>,
    count: Count,
    /// The query of the next page.
    next: Option<String>,
    is_first_page: bool,
    can_cancel: bool,
    is_operator: bool,
    servers: Vec<String>,
    now: Timestamp,
    page_size: usize,
}

/// A link that replaces the statuses of the search.
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
    let after = params.after.map(Position);
    let (found, count) = if query.is_impossible {
        let none = Found {
            tasks: Vec::new(),
            next: None,
        };
        let count = Count {
            number: 0,
            is_more: false,
        };
        (none, count)
    } else {
        (
            search::search(&app, &query.filter, after, PAGE_SIZE).await?,
            search::count(&app, &query.filter).await?,
        )
    };
    let rows: Vec<_> = found
        .tasks
        .iter()
        .map(|task| TaskRow::of(app.engine(), task))
        .collect();
    let mut also = Vec::new();
    let asked = params
        .also
        .split(',')
        .filter_map(|id| id.parse::<TaskId>().ok());
    for id in asked.take(MAX_ALSO) {
        let is_shown = found.tasks.iter().any(|task| task.id() == id);
        if !is_shown && let Ok(task) = app.engine().get(&viewer.scope(), id).await {
            also.push(TaskRow::of(app.engine(), &task));
        }
    }
    let servers = app.upstreams().map(|upstreams| {
        let all = upstreams.all().into_iter();
        all.map(|served| served.upstream.name().to_string())
            .collect()
    });
    let next = found.next.map(|position| {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("q", &params.q)
            .append_pair("after", &position.0.to_string())
            .finish()
    });
    render(&TasksPage {
        layout: Layout::new(&app, &viewer, Section::Tasks),
        chips: chips(&params.q),
        problems: query.problems,
        rows,
        also,
        count,
        next,
        is_first_page: after.is_none(),
        can_cancel: viewer.can(Scopes::CANCEL),
        is_operator: viewer.is_operator(),
        servers: servers.unwrap_or_default(),
        now,
        page_size: PAGE_SIZE,
        q: params.q,
    })
}

/// A link for each status, which keeps the other words of the search.
fn chips(q: &str) -> Vec<Chip> {
    let words: Vec<_> = q.split_whitespace().collect();
    let current = words
        .iter()
        .find(|word| word.starts_with("status:"))
        .copied();
    let rest: Vec<_> = words
        .iter()
        .filter(|word| !word.starts_with("status:"))
        .copied()
        .collect();
    let chip = |label, status: Option<&str>| {
        let wanted = status.map(|status| format!("status:{status}"));
        let words = wanted.as_deref().into_iter().chain(rest.iter().copied());
        let text = words.collect::<Vec<_>>().join(" ");
        let mut query = form_urlencoded::Serializer::new(String::new());
        Chip {
            label,
            query: query.append_pair("q", &text).finish(),
            is_current: current == wanted.as_deref(),
        }
    };
    let statuses = Status::ALL.map(|status| chip(label(status), Some(status.word())));
    std::iter::once(chip("All", None)).chain(statuses).collect()
}

const PAGE_SIZE: usize = 50;

const MAX_ALSO: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_keeps_the_other_words() {
        let chips = chips("status:failed tool:a b");
        assert_eq!(chips[0].query, "q=tool%3Aa+b");
        assert!(!chips[0].is_current);
        let failed = chips.iter().find(|chip| chip.is_current).unwrap();
        assert_eq!(
            (failed.label, failed.query.as_str()),
            ("Failed", "q=status%3Afailed+tool%3Aa+b")
        );
    }
}
