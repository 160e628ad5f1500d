//! The first page: how many tasks there are, and what failed recently.

use askama::Template;
use axum::extract::State;
use outlast_engine::store::{Filter, Status};
use outlast_wire::Timestamp;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::format;
use crate::layout::{Html, Layout, Section, render};
use crate::task_row::{TaskRow, label};

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    layout: Layout,
    counts: Vec<StatusCount>,
    is_empty: bool,
    failures: Vec<TaskRow>,
    now: Timestamp,
}

struct StatusCount {
    status: Status,
    label: &'static str,
    count: String,
}

/// `GET /`.
pub(crate) async fn overview(State(app): State<App>, viewer: Viewer) -> Result<Html, ConsoleError> {
    let filter = Filter {
        owner: viewer.owner().cloned(),
        ..Filter::default()
    };
    let mut numbers = [0_u64; Status::ALL.len()];
    let (mut after, mut examined, mut is_complete) = (None, 0, false);
    let mut failures = Vec::new();
    while examined < MAX_COUNTED && !is_complete {
        let page = app.engine().search(&filter, after, PAGE_SIZE).await?;
        for task in &page.tasks {
            let status = Status::of(task);
            numbers[status as usize] += 1;
            if status == Status::Failed && failures.len() < MAX_FAILURES {
                failures.push(TaskRow::of(app.engine(), task));
            }
        }
        examined += page.tasks.len();
        after = page.next;
        is_complete = after.is_none();
    }
    let more = if is_complete { "" } else { "+" };
    let counts = Status::ALL.map(|status| StatusCount {
        status,
        label: label(status),
        count: format!("{}{more}", format::count(numbers[status as usize])),
    });
    render(&OverviewPage {
        layout: Layout::new(&app, &viewer, Section::Overview),
        counts: counts.into(),
        is_empty: examined == 0 && is_complete,
        failures,
        now: app.engine().now(),
    })
}

/// Counting stops here.
const MAX_COUNTED: usize = 10_000;

const PAGE_SIZE: usize = 1_000;

const MAX_FAILURES: usize = 8;
