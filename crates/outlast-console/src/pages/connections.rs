//! The connections of the viewer to servers, and the settings of calls.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outlast::client::ConnectionName;
use outlast::server::Scopes;
use serde::Serialize;

use super::call_row::millis;
use super::form_parts::FormFields;
use super::json_text::{as_optional_value, as_value, pretty};
use super::tools;
use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::layout::{Html, Layout, Section, render};
use crate::status_text::readable;
use crate::workspace::{
    Address, ConnectionHealth, ConnectionSpec, ConnectionView, Mode, Workspace, import_servers,
};
use crate::workspaces::OWN_SOURCE;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/connections", get(connections))
        .route("/api/v1/connections", get(json))
        .route("/connections/add", post(add))
        .route("/connections/import", post(import))
        .route("/connections/change", post(change))
        .route("/connections/settings", post(settings))
}

#[derive(Template, Serialize)]
#[template(path = "connections.html")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectionsPage {
    #[serde(skip)]
    layout: Layout,
    #[serde(skip)]
    now: u64,
    connections: Vec<ConnectionCard>,
    #[serde(skip)]
    can_operate: bool,
    #[serde(skip)]
    can_call: bool,
    /// What was typed into the form that failed, and why it failed.
    #[serde(skip)]
    typed: ConnectionFormInput,
    #[serde(rename = "taskTtlSeconds")]
    ttl_seconds: u64,
    decline_fails: bool,
    roots: String,
}

/// What was typed into a form that failed.
#[derive(Default)]
struct ConnectionFormInput {
    problem: Option<String>,
    /// Which form failed: `url`, `command` or `import`.
    form: &'static str,
    name: String,
    url: String,
    command: String,
    file: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionCard {
    #[serde(skip)]
    key: String,
    name: String,
    source: String,
    address: String,
    secret_names: String,
    health: &'static str,
    #[serde(skip)]
    health_label: &'static str,
    why: Option<String>,
    next: Option<&'static str>,
    last_error: Option<(String, u64)>,
    printed: String,
    server: Option<ServerFacts>,
    #[serde(serialize_with = "as_optional_value")]
    declared: Option<String>,
    opened_ms: Option<u64>,
    ping: Option<String>,
    #[serde(serialize_with = "current_mode", rename = "mode")]
    modes: Vec<(&'static str, &'static str, bool)>,
    is_removable: bool,
    #[serde(skip)]
    tools_href: String,
    #[serde(skip)]
    traffic_server: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerFacts {
    name: String,
    version: String,
    era: &'static str,
    tasks: &'static str,
    #[serde(serialize_with = "as_value")]
    capabilities: String,
    #[serde(serialize_with = "as_optional_value")]
    info: Option<String>,
    instructions: Option<String>,
}

/// What to do about a connection that failed.
pub(super) fn next_step(view: &ConnectionView) -> Option<&'static str> {
    match &view.health {
        ConnectionHealth::Failed { .. } if *view.name.source == *OWN_SOURCE => Some(
            "Check the command or the URL of this server in the configuration and that it runs, \
             then reconnect.",
        ),
        ConnectionHealth::Failed { next, .. } => Some(next),
        _ => None,
    }
}

/// The mode in which the connection acts.
fn current_mode<S: serde::Serializer>(
    modes: &[(&'static str, &'static str, bool)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let current = modes.iter().find(|(_, _, is_current)| *is_current);
    serializer.serialize_str(current.map_or("", |(word, ..)| word))
}

impl ConnectionCard {
    fn of(base: &str, view: ConnectionView) -> Self {
        let (why, next) = match &view.health {
            ConnectionHealth::Failed { why, .. } => (Some(readable(why)), next_step(&view)),
            ConnectionHealth::Reconnecting { why } => (Some(why.clone()), None),
            ConnectionHealth::Open | ConnectionHealth::Connecting => (None, None),
        };
        let is_open = view.health == ConnectionHealth::Open;
        Self {
            key: format!("{}@{}", view.name.server, view.name.source),
            tools_href: tools::href(base, &view.name, "", ""),
            traffic_server: view.name.server.to_string(),
            name: view.name.server.to_string(),
            source: view.name.source.to_string(),
            address: view.address,
            secret_names: view.secret_names.join(", "),
            health: view.health.word(),
            health_label: view.health.label(),
            why,
            next,
            last_error: view
                .last_error
                .filter(|_| is_open)
                .map(|(why, at)| (why, millis(at))),
            printed: view.printed.join("\n"),
            server: view.server.map(|server| ServerFacts {
                name: server.name,
                version: server.version,
                era: server.era,
                tasks: match server.generation.word() {
                    "v1" => "V1 tasks",
                    "v2" => "V2 tasks",
                    _ => "no tasks",
                },
                capabilities: pretty(server.capabilities.borrow()),
                info: server.info.map(|info| pretty(info.borrow())),
                instructions: server.instructions,
            }),
            declared: view.declared.map(|declared| pretty(declared.borrow())),
            opened_ms: view.opened.filter(|_| is_open).map(millis),
            ping: view
                .ping
                .map(|took| format!("{:.1} ms", took.as_secs_f64() * 1_000.0)),
            modes: Mode::ALL
                .map(|mode| (mode.word(), mode.label(), mode == view.mode))
                .into(),
            is_removable: view.is_removable,
        }
    }
}

/// `GET /connections`.
async fn connections(State(app): State<App>, viewer: Viewer) -> Result<Html, ConsoleError> {
    render(&page(&app, &viewer, ConnectionFormInput::default())?)
}

/// `GET /api/v1/connections`.
async fn json(
    State(app): State<App>,
    viewer: Viewer,
) -> Result<Json<ConnectionsPage>, ConsoleError> {
    Ok(Json(page(&app, &viewer, ConnectionFormInput::default())?))
}

fn page(
    app: &App,
    viewer: &Viewer,
    typed: ConnectionFormInput,
) -> Result<ConnectionsPage, ConsoleError> {
    let workspace = app.workspace(viewer)?;
    let connections = workspace.connections().into_iter();
    let settings = workspace.settings();
    Ok(ConnectionsPage {
        layout: Layout::new(app, viewer, Section::Connections),
        now: app.engine().now().0,
        connections: connections
            .map(|view| ConnectionCard::of(app.base(), view))
            .collect(),
        can_operate: viewer.can(Scopes::OPERATE),
        can_call: viewer.can(Scopes::CALL),
        typed,
        ttl_seconds: settings.task_ttl_ms() / 1_000,
        decline_fails: settings.decline_fails(),
        roots: workspace.roots().join("\n"),
    })
}

fn refused(
    app: &App,
    viewer: &Viewer,
    typed: ConnectionFormInput,
) -> Result<Response, ConsoleError> {
    let page = page(app, viewer, typed)?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, render(&page)?).into_response())
}

fn done(app: &App) -> Response {
    Redirect::to(&format!("{}/connections", app.base())).into_response()
}

/// `POST /connections/add`: adds a server by its URL, or by the command that starts it. A command
/// runs with the rights of this process, so it needs the scope `operate`.
async fn add(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    let is_command = fields.get("kind") == "command";
    viewer.require(if is_command {
        Scopes::OPERATE
    } else {
        Scopes::CALL
    })?;
    let typed = |problem: String| ConnectionFormInput {
        problem: Some(problem),
        form: if is_command { "command" } else { "url" },
        name: fields.get("name").to_owned(),
        url: fields.get("url").to_owned(),
        command: fields.get("command").to_owned(),
        // Headers may be secret, so they are not sent back.
        file: String::new(),
    };
    let address = if is_command {
        Address::command(fields.get("command"))
    } else {
        Address::url(fields.get("url"), fields.get("headers"))
    };
    let address = match address {
        Ok(address) => address,
        Err(why) => return refused(&app, &viewer, typed(why)),
    };
    let name = match fields.get("name").trim() {
        "" => default_name(&address),
        name => name.to_owned(),
    };
    if name.chars().count() > MAX_NAME_CHARS {
        return refused(&app, &viewer, typed("the name is too long".into()));
    }
    let mut spec = ConnectionSpec::new(ConnectionName::new(name, SOURCE), address);
    spec.mode = Mode::named(fields.get("mode")).unwrap_or_default();
    match app.workspace(&viewer)?.add(spec) {
        Ok(()) => Ok(done(&app)),
        Err(error) => refused(&app, &viewer, typed(error.to_string())),
    }
}

/// A name for a server that was given none: its host, or its program.
fn default_name(address: &Address) -> String {
    match address {
        Address::Url { url, .. } => {
            let parsed = url::Url::parse(url).ok();
            let host = parsed
                .as_ref()
                .and_then(url::Url::host_str)
                .unwrap_or("server");
            let port = parsed.as_ref().and_then(url::Url::port);
            port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
        }
        Address::Command { program, .. } => {
            let name = program.rsplit('/').next().unwrap_or(program);
            name.to_owned()
        }
        Address::Other(name, _) => name.clone(),
    }
}

/// `POST /connections/import`: adds the servers of a host's file.
async fn import(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let file = fields.get("file");
    let typed = |problem: String| ConnectionFormInput {
        problem: Some(problem),
        form: "import",
        file: file.to_owned(),
        ..ConnectionFormInput::default()
    };
    let specs = match import_servers(file, IMPORT_SOURCE) {
        Ok(specs) => specs,
        Err(error) => return refused(&app, &viewer, typed(error.to_string())),
    };
    let starts_process = specs.iter().any(|spec| spec.address.starts_process());
    if starts_process && !viewer.can(Scopes::OPERATE) {
        return Err(ConsoleError::missing_scope(Scopes::OPERATE));
    }
    let workspace = app.workspace(&viewer)?;
    for spec in specs {
        if let Err(error) = workspace.add(spec) {
            return refused(&app, &viewer, typed(error.to_string()));
        }
    }
    Ok(done(&app))
}

/// `POST /connections/change`: reconnects, removes or measures a connection.
async fn change(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let workspace = app.workspace(&viewer)?;
    let name = ConnectionName::new(fields.get("server"), fields.get("source"));
    match fields.get("op") {
        "remove" => {
            if !workspace.connection_view(&name)?.is_removable {
                return Err(ConsoleError::conflict(
                    "this connection belongs to the gateway",
                ));
            }
            workspace.remove(&name)?;
        }
        "ping" => drop(workspace.ping(&name).await?),
        _ => reconnect(&workspace, &viewer, &name, &fields)?,
    }
    Ok(done(&app))
}

fn reconnect(
    workspace: &Workspace,
    viewer: &Viewer,
    name: &ConnectionName,
    fields: &FormFields,
) -> Result<(), ConsoleError> {
    if workspace.connection_view(name)?.starts_process {
        viewer.require(Scopes::OPERATE)?;
    }
    Ok(workspace.reconnect(name, Mode::named(fields.get("mode")))?)
}

/// `POST /connections/settings`.
async fn settings(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let workspace = app.workspace(&viewer)?;
    let typed = |problem: &str| ConnectionFormInput {
        problem: Some(problem.to_owned()),
        form: "settings",
        ..ConnectionFormInput::default()
    };
    let Ok(seconds) = fields.get("ttl").trim().parse::<u64>() else {
        let problem = typed("the task TTL must be a whole number of seconds");
        return refused(&app, &viewer, problem);
    };
    let roots = fields
        .get("roots")
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let roots: Vec<_> = roots.map(str::to_owned).collect();
    if roots.iter().any(|root| !root.starts_with("file://")) {
        let problem = typed("each folder must be a URI that begins with file://");
        return refused(&app, &viewer, problem);
    }
    workspace
        .settings()
        .set_task_ttl_ms(seconds.saturating_mul(1_000));
    workspace
        .settings()
        .set_decline_fails(fields.get("decline_fails") == "on");
    workspace.set_roots(roots);
    Ok(done(&app))
}

/// The source of connections that a person adds.
const SOURCE: &str = "console";

/// The source of connections of an imported file.
const IMPORT_SOURCE: &str = "import";

const MAX_NAME_CHARS: usize = 80;
