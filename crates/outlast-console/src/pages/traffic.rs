//! Every message of the viewer's connections.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use outlast::client::MessageDirection;
use outlast::server::Scopes;
use outlast::wire::RawRef;
use serde::Deserialize;
use serde_json::json;
use url::form_urlencoded;

use super::call_row::millis;
use super::json_text::pretty;
use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::format;
use crate::layout::{Html, Layout, Section, render};
use crate::traffic::{TrafficEntry, TrafficFilter, TrafficKind, call_command};
use crate::workspace::Workspace;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/traffic", get(traffic))
        .route("/traffic/export", get(export))
        .route("/traffic/clear", post(clear))
        .route("/traffic/{number}", get(message))
        .route("/traffic/{number}/raw", get(raw))
}

#[derive(Template)]
#[template(path = "traffic.html")]
struct TrafficPage {
    layout: Layout,
    now: u64,
    query: TrafficQuery,
    rows: Vec<TrafficRow>,
    /// The page of older messages.
    older: Option<String>,
    export: String,
    total: String,
    kept: String,
    methods: Vec<String>,
    servers: Vec<String>,
    is_filtered: bool,
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    layout: Layout,
    row: TrafficRow,
    text: Option<String>,
    pair: Option<TrafficRow>,
    pair_text: Option<String>,
}

/// The query of the page.
#[derive(Clone, Debug, Default, Deserialize)]
struct TrafficQuery {
    #[serde(default)]
    method: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    task: String,
    before: Option<u64>,
}

/// A message as the page shows it.
struct TrafficRow {
    number: u64,
    href: String,
    at_ms: u64,
    time: String,
    is_outgoing: bool,
    server: String,
    method: String,
    kind: &'static str,
    id: String,
    version: String,
    task: Option<String>,
    tool: Option<String>,
    duration: Option<String>,
    failure: Option<String>,
    size: String,
    is_waiting: bool,
    command: Option<String>,
}

impl TrafficRow {
    fn of(base: &str, workspace: &Workspace, entry: &TrafficEntry) -> Self {
        let words = workspace
            .connection_view(&entry.connection)
            .map(|view| view.words);
        let is_request = entry.kind == TrafficKind::Request;
        Self {
            number: entry.number,
            href: format!("{base}/traffic/{}", entry.number),
            at_ms: millis(entry.at),
            time: clock(millis(entry.at)),
            is_outgoing: entry.direction == MessageDirection::ToServer,
            server: entry.connection.server.to_string(),
            method: entry.method.as_deref().unwrap_or("(no method)").to_owned(),
            kind: entry.kind.word(),
            id: entry.id.as_deref().unwrap_or_default().to_owned(),
            version: entry.version.as_deref().unwrap_or_default().to_owned(),
            task: entry.task.as_deref().map(str::to_owned),
            tool: entry.tool.as_deref().map(str::to_owned),
            duration: entry
                .duration
                .map(|took| format!("{:.1} ms", took.as_secs_f64() * 1_000.0)),
            failure: entry.failure.as_deref().map(str::to_owned),
            size: format::bytes(entry.bytes),
            is_waiting: is_request && entry.pair.is_none() && entry.failure.is_none(),
            command: words.ok().and_then(|words| call_command(entry, &words)),
        }
    }
}

impl TrafficQuery {
    fn filter(&self) -> TrafficFilter {
        TrafficFilter {
            method: self.method.clone(),
            server: self.server.clone(),
            task: self.task.clone(),
        }
    }

    fn href(&self, path: &str, before: Option<u64>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("method", &self.method),
            ("server", &self.server),
            ("task", &self.task),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if let Some(before) = before {
            query.append_pair("before", &before.to_string());
        }
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

/// `GET /traffic`.
async fn traffic(
    State(app): State<App>,
    viewer: Viewer,
    Query(query): Query<TrafficQuery>,
) -> Result<Html, ConsoleError> {
    let workspace = app.workspace(&viewer)?;
    let log = workspace.traffic();
    let filter = query.filter();
    let entries = log.page(&filter, query.before, PAGE_MESSAGES + 1);
    let older = entries
        .get(PAGE_MESSAGES - 1)
        .filter(|_| entries.len() > PAGE_MESSAGES);
    let path = format!("{}/traffic", app.base());
    let older = older.map(|last| query.href(&path, Some(last.number)));
    let rows = entries.iter().take(PAGE_MESSAGES);
    let (total, kept) = log.counts();
    let servers = workspace.connections().into_iter();
    render(&TrafficPage {
        layout: Layout::new(&app, &viewer, Section::Traffic),
        now: app.engine().now().0,
        rows: rows
            .map(|entry| TrafficRow::of(app.base(), &workspace, entry))
            .collect(),
        older,
        export: query.href(&format!("{path}/export"), None),
        total: format::count(total),
        kept: format::count(kept as u64),
        methods: log
            .methods()
            .iter()
            .map(|method| method.to_string())
            .collect(),
        servers: servers.map(|view| view.name.server.to_string()).collect(),
        is_filtered: !filter.is_empty(),
        query,
    })
}

/// `GET /traffic/{number}`: one message and the one that belongs to it.
async fn message(
    State(app): State<App>,
    viewer: Viewer,
    Path(number): Path<u64>,
) -> Result<Html, ConsoleError> {
    let workspace = app.workspace(&viewer)?;
    let entry = find(&workspace, number)?;
    let pair = entry.pair.and_then(|pair| workspace.traffic().entry(pair));
    render(&MessagePage {
        layout: Layout::new(&app, &viewer, Section::Traffic).titled(format!("Message {number}")),
        row: TrafficRow::of(app.base(), &workspace, &entry),
        text: formatted_message(&entry),
        pair_text: pair.as_ref().and_then(formatted_message),
        pair: pair.map(|pair| TrafficRow::of(app.base(), &workspace, &pair)),
    })
}

/// `GET /traffic/{number}/raw`: the JSON of a message.
async fn raw(
    State(app): State<App>,
    viewer: Viewer,
    Path(number): Path<u64>,
) -> Result<Response, ConsoleError> {
    let entry = find(&app.workspace(&viewer)?, number)?;
    let text = entry
        .text
        .ok_or_else(|| ConsoleError::not_found("this message was too large to keep"))?;
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    Ok((headers, text.to_string()).into_response())
}

/// `GET /traffic/export`: the messages that the filter accepts, oldest first, one JSON object on
/// each line.
async fn export(
    State(app): State<App>,
    viewer: Viewer,
    Query(query): Query<TrafficQuery>,
) -> Result<Response, ConsoleError> {
    let workspace = app.workspace(&viewer)?;
    let mut entries = workspace.traffic().page(&query.filter(), None, usize::MAX);
    entries.reverse();
    let mut text = String::new();
    for entry in entries {
        text.push_str(&export_line(&entry));
        text.push('\n');
    }
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"outlast-traffic.jsonl\"",
        ),
    ];
    Ok((headers, text).into_response())
}

fn export_line(entry: &TrafficEntry) -> String {
    let head = json!({
        "number": entry.number,
        "at": millis(entry.at),
        "server": &*entry.connection.server,
        "source": &*entry.connection.source,
        "direction": if entry.direction == MessageDirection::ToServer { "toServer" } else { "fromServer" },
        "kind": entry.kind.word(),
        "method": entry.method.as_deref(),
        "version": entry.version.as_deref(),
        "taskId": entry.task.as_deref(),
        "pair": entry.pair,
        "durationMs": entry.duration.map(|took| took.as_secs_f64() * 1_000.0),
        "failure": entry.failure.as_deref(),
        "bytes": entry.bytes,
    });
    let head = head.to_string();
    // The message keeps its bytes.
    let message = entry
        .text
        .as_deref()
        .filter(|text| RawRef::parse(text).is_ok());
    format!(
        "{},\"message\":{}}}",
        &head[..head.len() - 1],
        message.unwrap_or("null")
    )
}

/// `POST /traffic/clear`.
async fn clear(State(app): State<App>, viewer: Viewer) -> Result<Redirect, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    app.workspace(&viewer)?.traffic().clear();
    Ok(Redirect::to(&format!("{}/traffic", app.base())))
}

fn find(workspace: &Workspace, number: u64) -> Result<TrafficEntry, ConsoleError> {
    let found = workspace.traffic().entry(number);
    found.ok_or_else(|| ConsoleError::not_found("this message is no longer kept"))
}

fn formatted_message(entry: &TrafficEntry) -> Option<String> {
    let text = entry.text.as_deref()?;
    Some(RawRef::parse(text).map_or_else(|_| text.to_owned(), pretty))
}

/// The time of day in UTC, with milliseconds.
fn clock(ms: u64) -> String {
    let of_day = ms % 86_400_000;
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02}.{:03}",
        of_day / 1_000 % 60,
        of_day % 1_000
    )
}

/// How many messages a page shows.
const PAGE_MESSAGES: usize = 100;
