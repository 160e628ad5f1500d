//! The first page: how many tasks there are, how they went, what failed, and the health of the
//! store and of the servers. Everything is computed from the store, also right after a restart.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use outlast_engine::Owner;
use outlast_engine::store::{Filter, Health, Status};
use outlast_wire::Timestamp;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::format;
use crate::layout::{Html, Layout, Section, render};
use crate::plot::{BarPlot, MinutePlot};
use crate::statistics::Statistics;
use crate::task_row::{TaskRow, label};

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    layout: Layout,
    counts: Vec<StatusCount>,
    is_empty: bool,
    /// The commands to begin with.
    commands: Vec<String>,
    per_minute: MinutePlot,
    durations: BarPlot,
    waits: BarPlot,
    failures: Vec<TaskRow>,
    health: Vec<HealthRow>,
    /// How many of the newest tasks the numbers are about, if there are more.
    examined: Option<String>,
    now: Timestamp,
}

struct StatusCount {
    status: Status,
    label: &'static str,
    count: String,
}

struct HealthRow {
    name: String,
    detail: String,
    state: &'static str,
    is_good: bool,
}

/// `GET /`.
pub(crate) async fn overview(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Html, ConsoleError> {
    let filter = Filter {
        owner: viewer.owner().cloned(),
        ..Filter::default()
    };
    let now = app.engine().now();
    let found = Statistics::collect(&app, &filter, now).await?;
    let more = if found.is_complete { "" } else { "+" };
    let counts = Status::ALL.map(|status| StatusCount {
        status,
        label: label(status),
        count: format!("{}{more}", format::count(found.count(status))),
    });
    let failures = found
        .failures
        .iter()
        .map(|task| TaskRow::of(app.engine(), task));
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    render(&OverviewPage {
        layout: Layout::new(&app, &viewer, Section::Overview),
        counts: counts.into(),
        is_empty: found.is_complete && found.examined == 0,
        commands: commands(&app, host.unwrap_or("127.0.0.1:8040")),
        per_minute: MinutePlot::new(&found.created, &found.ended),
        durations: BarPlot::new(&found.durations),
        waits: BarPlot::new(&found.waits),
        failures: failures.collect(),
        health: health(&app, &viewer).await?,
        examined: (!found.is_complete).then(|| format::count(found.examined as u64)),
        now,
    })
}

/// The commands that make a first task.
fn commands(app: &App, host: &str) -> Vec<String> {
    let paths: Vec<_> = match app.upstreams() {
        Some(upstreams) => upstreams
            .all()
            .into_iter()
            .map(|served| served.path)
            .collect(),
        None => vec!["/mcp".to_owned()],
    };
    let path = paths.first().map_or("/mcp", String::as_str);
    vec![
        format!("outlast tools http://{host}{path}"),
        format!("outlast call http://{host}{path} TOOL"),
    ]
}

async fn health(app: &App, viewer: &Viewer) -> Result<Vec<HealthRow>, ConsoleError> {
    let usage = app
        .engine()
        .usage(viewer.owner().unwrap_or(&Owner::Local))
        .await?;
    let (open, retained) = match viewer.owner() {
        Some(_) => (u64::from(usage.owner_open), u64::from(usage.owner_retained)),
        None => (usage.open, usage.retained),
    };
    let detail = format!(
        "{} open, {} kept",
        format::count(open),
        format::count(retained)
    );
    let (state, is_good, detail) = match &*app.engine().store().health().borrow() {
        Health::Ready => ("ready", true, detail),
        Health::NoSpace(reason) => ("no space", false, reason.to_string()),
        Health::Down(reason) => ("cannot be written", false, reason.to_string()),
        Health::Closed => ("closed", false, detail),
    };
    let mut rows = vec![HealthRow {
        name: "Store".to_owned(),
        detail,
        state,
        is_good,
    }];
    for served in app
        .upstreams()
        .map(|upstreams| upstreams.all())
        .unwrap_or_default()
    {
        let upstream = &served.upstream;
        let connections = upstream.connections();
        let (state, is_good) = if upstream.is_failing() {
            ("failing", false)
        } else if connections > 0 {
            ("connected", true)
        } else {
            ("idle", true)
        };
        rows.push(HealthRow {
            name: upstream.name().to_string(),
            detail: match connections {
                1 => "1 connection".to_owned(),
                number => format!("{number} connections"),
            },
            state,
            is_good,
        });
    }
    Ok(rows)
}
