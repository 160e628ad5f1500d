//! The first page: how many tasks there are, how they went, what failed, and the health of the
//! store and of the servers. Everything is computed from the store, also right after a restart, and
//! from the workspace of the viewer.

use std::time::Duration;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use outlast::client::ConnectionName;
use outlast_engine::Owner;
use outlast_engine::store::{Filter, Health, Status};
use outlast_wire::Timestamp;
use serde::Serialize;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::format;
use crate::layout::{Html, Layout, Section, render};
use crate::plot::{BarPlot, MinutePlot};
use crate::search;
use crate::statistics::Statistics;
use crate::status_text::readable;
use crate::task_row::{TaskRow, label};
use crate::task_row_peer;
use crate::workspace::{ConnectionHealth, ConnectionView, Workspace};
use crate::workspaces::OWN_SOURCE;

#[derive(Template, Serialize)]
#[template(path = "overview.html")]
#[serde(rename_all = "camelCase")]
pub(crate) struct OverviewPage {
    #[serde(skip)]
    layout: Layout,
    counts: Vec<StatusCount>,
    is_empty: bool,
    /// The commands to begin with.
    #[serde(skip)]
    commands: Vec<String>,
    /// Whether the program has no server of its own, so that only calls from here make tasks.
    #[serde(skip)]
    is_inspector: bool,
    per_minute: MinutePlot,
    durations: BarPlot,
    waits: BarPlot,
    failures: Vec<TaskRow>,
    health: Vec<HealthRow>,
    /// How many of the newest tasks the plots are about, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    examined: Option<String>,
    /// How many of the newest tasks the plot of waits is about, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_examined: Option<usize>,
    #[serde(skip)]
    now: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusCount {
    #[serde(serialize_with = "word")]
    status: Status,
    #[serde(skip)]
    label: &'static str,
    number: u64,
    is_more: bool,
}

impl StatusCount {
    fn text(&self) -> String {
        let more = if self.is_more { "+" } else { "" };
        format!("{}{more}", format::count(self.number))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HealthRow {
    name: String,
    detail: String,
    state: &'static str,
    is_good: bool,
    /// What to do, if it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// `GET /api/v1/overview`.
pub(super) async fn json(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Json<OverviewPage>, ConsoleError> {
    Ok(Json(page(&app, &viewer, &headers).await?))
}

/// `GET /`.
pub(crate) async fn overview(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Html, ConsoleError> {
    render(&page(&app, &viewer, &headers).await?)
}

async fn page(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
) -> Result<OverviewPage, ConsoleError> {
    let filter = Filter {
        owner: viewer.owner().cloned(),
        ..Filter::default()
    };
    let now = app.engine().now();
    let mut found = Statistics::collect(app, &filter, now).await?;
    let peers = match app.workspace(viewer) {
        Ok(workspace) => task_row_peer::rows(&workspace, viewer).await,
        Err(_) => Vec::new(),
    };
    for row in &peers {
        found.add_row(row, now);
    }
    let mut counts = Vec::new();
    for status in Status::ALL {
        let (mut number, mut is_more) = (found.count(status), false);
        if !found.is_complete {
            let filter = Filter {
                statuses: [status].into_iter().collect(),
                ..filter.clone()
            };
            let stored = search::count(app, &filter).await?;
            let others = peers.iter().filter(|row| row.status == status).count();
            (number, is_more) = ((stored.number + others) as u64, stored.is_more);
        }
        counts.push(StatusCount {
            status,
            label: label(status),
            number,
            is_more,
        });
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    Ok(OverviewPage {
        layout: Layout::new(app, viewer, Section::Overview),
        is_empty: counts.iter().all(|count| count.number == 0),
        counts,
        commands: commands(app, host.unwrap_or("127.0.0.1:8040")),
        is_inspector: app.is_inspector(),
        per_minute: MinutePlot::new(&found.created, &found.ended),
        durations: BarPlot::new(&found.durations),
        waits: BarPlot::new(&found.waits),
        failures: found.failures,
        health: health(app, viewer).await?,
        examined: (!found.is_complete).then(|| format::count(found.examined as u64)),
        waits_examined: (found.examined > found.waits_examined).then_some(found.waits_examined),
        now,
    })
}

fn word<S: serde::Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.word())
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
        next: (!is_good).then(|| {
            "Free space or repair the store; the log of this program has the details.".to_owned()
        }),
        state,
        is_good,
    }];
    let workspace = app.workspace(viewer).ok();
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
        let reached = match connections {
            1 => "1 connection".to_owned(),
            number => format!("{number} connections"),
        };
        let (detail, next) = if is_good {
            (reached, None)
        } else {
            why_failing(workspace.as_ref(), upstream.name()).await
        };
        rows.push(HealthRow {
            name: upstream.name().to_string(),
            detail,
            state,
            is_good,
            next,
        });
    }
    if app.upstreams().is_none() {
        let connections = workspace.iter().flat_map(Workspace::connections);
        rows.extend(connections.map(|view| HealthRow::of_connection(&view)));
    }
    Ok(rows)
}

/// Why a server of the gateway cannot be reached, and what to do: what the endpoint of the server
/// answers to the viewer.
async fn why_failing(workspace: Option<&Workspace>, server: &str) -> (String, Option<String>) {
    let name = ConnectionName::new(server, OWN_SOURCE);
    let mut why = "the last attempt to connect failed".to_owned();
    if let Some(workspace) = workspace
        && let Ok(view) = workspace.connection_view(&name)
    {
        match view.health {
            ConnectionHealth::Failed { why: reason, .. }
            | ConnectionHealth::Reconnecting { why: reason } => why = reason,
            ConnectionHealth::Open | ConnectionHealth::Connecting => {
                let asked = tokio::time::timeout(PEER_LIST_TIMEOUT, workspace.tools(&name)).await;
                if let Ok(Err(error)) = asked {
                    why = error.to_string();
                }
            }
        }
    }
    let next = "Check the command or the URL of this server in the configuration and that it \
                runs; the gateway connects again by itself.";
    (readable(&why), Some(next.to_owned()))
}

impl HealthRow {
    fn of_connection(view: &ConnectionView) -> Self {
        let (detail, next) = match &view.health {
            ConnectionHealth::Failed { why, next } => (readable(why), Some((*next).to_owned())),
            ConnectionHealth::Reconnecting { why } => (readable(why), None),
            ConnectionHealth::Open | ConnectionHealth::Connecting => (view.address.clone(), None),
        };
        Self {
            name: view.name.server.to_string(),
            detail,
            state: view.health.label(),
            is_good: !matches!(view.health, ConnectionHealth::Failed { .. }),
            next,
        }
    }
}

/// How long the page waits for the reason of a failing server.
const PEER_LIST_TIMEOUT: Duration = Duration::from_secs(2);
