//! The tools of the servers: a form for the arguments, and the calls that were made here.
//!
//! The form and the raw JSON edit one value. A change of the structure of the form (another item,
//! form to JSON) is a request, so that it works without a script. A running call never blocks the
//! button: each call is an entry below the form.

use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outlast::TaskSupport;
use outlast::client::{ConnectionName, ToolInfo};
use outlast::server::Scopes;
use outlast::wire::{Raw, RawRef};
use outlast_engine::random;
use outlast_wire::object;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::call_row::CallRow;
use super::form_parts::{FormFields, FormPart, parts};
use super::json_text::{as_optional_value, as_value};
use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::form::{Entries, Faults, Form};
use crate::layout::{Html, Layout, Section, render};
use crate::workspace::{CallId, CallRequest, ConnectionView, Placement, Workspace};

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/tools", get(tools))
        .route("/api/v1/tools", get(json))
        .route("/api/v1/calls", get(calls))
        .route("/api/v1/calls/{id}", get(call_json))
        .route("/tools/call", post(call))
        .route("/tools/refresh", post(refresh))
        .route("/calls/{id}", get(call_page))
        .route("/calls/{id}/cancel", post(cancel))
        .route("/calls/clear", post(clear))
}

#[derive(Template, Serialize)]
#[template(path = "tools.html")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolsPage {
    #[serde(skip)]
    layout: Layout,
    #[serde(skip)]
    now: u64,
    connections: Vec<ServerTab>,
    /// The chosen server.
    server: Option<ServerPane>,
    #[serde(skip)]
    query: ToolsQuery,
    /// The chosen tool.
    tool: Option<ToolPane>,
    #[serde(skip)]
    can_call: bool,
}

/// The query of the page.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ToolsQuery {
    #[serde(default)]
    pub(crate) server: String,
    #[serde(default)]
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) q: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerTab {
    name: String,
    source: String,
    #[serde(skip)]
    href: String,
    #[serde(skip)]
    is_current: bool,
    health: &'static str,
    #[serde(skip)]
    health_label: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerPane {
    name: String,
    source: String,
    tools: Vec<ToolItem>,
    /// How many tools the server has.
    total: usize,
    /// Why there are no tools, and what to do.
    problem: Option<(String, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolItem {
    name: String,
    title: String,
    description: String,
    #[serde(skip)]
    href: String,
    #[serde(skip)]
    is_current: bool,
    support: &'static str,
    open_calls: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolPane {
    name: String,
    title: String,
    description: String,
    #[serde(serialize_with = "labels")]
    annotations: Vec<(&'static str, &'static str)>,
    support: &'static str,
    #[serde(skip)]
    support_text: &'static str,
    #[serde(serialize_with = "as_value")]
    input_schema: String,
    #[serde(serialize_with = "as_optional_value")]
    output_schema: Option<String>,
    #[serde(skip)]
    form: CallForm,
    calls: Vec<CallRow>,
}

/// The annotations without their styles.
fn labels<S: serde::Serializer>(
    annotations: &[(&'static str, &'static str)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(annotations.iter().map(|(label, _)| label))
}

/// The form of a call as it is shown.
struct CallForm {
    parts: Vec<FormPart>,
    is_empty: bool,
    /// The raw JSON, if the value is edited so.
    json: Option<String>,
    json_rows: usize,
    /// Why the value cannot be shown in the form, or why there is no form.
    note: Option<String>,
    /// Messages that belong to no field.
    problems: Vec<String>,
    fault_count: usize,
    key: String,
    is_task: bool,
    can_task: bool,
    can_inline: bool,
    /// The TTL in seconds.
    ttl: String,
    has_form: bool,
}

/// What was typed into the form of a call.
struct CallFormInput {
    entries: Entries,
    json: Option<String>,
    faults: Faults,
    note: Option<String>,
    placement: Option<bool>,
    ttl: String,
}

/// `GET /tools`.
async fn tools(
    State(app): State<App>,
    viewer: Viewer,
    Query(query): Query<ToolsQuery>,
) -> Result<Html, ConsoleError> {
    let page = page(&app, &viewer, query, None).await?;
    render(&page)
}

/// `GET /api/v1/tools`: the servers, and the tools of one of them.
async fn json(
    State(app): State<App>,
    viewer: Viewer,
    Query(query): Query<ToolsQuery>,
) -> Result<Json<ToolsPage>, ConsoleError> {
    Ok(Json(page(&app, &viewer, query, None).await?))
}

/// `GET /api/v1/calls`: the calls of the viewer, newest first.
async fn calls(State(app): State<App>, viewer: Viewer) -> Result<Json<CallList>, ConsoleError> {
    let calls = app.workspace(&viewer)?.calls().into_iter();
    let calls = calls.map(CallRow::of).collect();
    Ok(Json(CallList { calls }))
}

#[derive(Serialize)]
struct CallList {
    calls: Vec<CallRow>,
}

/// `GET /api/v1/calls/ID`: one call with its result.
async fn call_json(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<u64>,
) -> Result<Json<CallRow>, ConsoleError> {
    let call = app.workspace(&viewer)?.call_view(CallId(id))?;
    Ok(Json(CallRow::of(call)))
}

async fn page(
    app: &App,
    viewer: &Viewer,
    mut query: ToolsQuery,
    typed: Option<CallFormInput>,
) -> Result<ToolsPage, ConsoleError> {
    let workspace = app.workspace(viewer)?;
    let base = app.base();
    let mut connections = workspace.connections();
    let mut chosen = choose(&connections, &query).cloned();
    if let Some(connecting) = &chosen {
        // Most connections open at once, so that the first page has the tools.
        workspace.settled(&connecting.name, CONNECT_WAIT).await;
        connections = workspace.connections();
        chosen = choose(&connections, &query).cloned();
    }
    if let Some(chosen) = &chosen {
        query.server = chosen.name.server.to_string();
        query.source = chosen.name.source.to_string();
    }
    let tabs = connections.iter().map(|connection| ServerTab {
        name: connection.name.server.to_string(),
        source: connection.name.source.to_string(),
        href: href(base, &connection.name, "", ""),
        is_current: chosen
            .as_ref()
            .is_some_and(|chosen| chosen.name == connection.name),
        health: connection.health.word(),
        health_label: connection.health.label(),
    });
    let tabs: Vec<_> = tabs.collect();
    let (mut server, mut tool) = (None, None);
    if let Some(chosen) = chosen {
        let (pane, found) = server_pane(&workspace, base, &chosen, &query).await;
        if let Some(found) = found {
            let pane = tool_pane(&workspace, &chosen, &found, typed);
            query.tool = pane.name.clone();
            tool = Some(pane);
        }
        server = Some(pane);
    }
    Ok(ToolsPage {
        layout: Layout::new(app, viewer, Section::Tools),
        now: app.engine().now().0,
        connections: tabs,
        server,
        query,
        tool,
        can_call: viewer.can(Scopes::CALL),
    })
}

/// The connection that the query names, or the first that is open.
fn choose<'a>(connections: &'a [ConnectionView], query: &ToolsQuery) -> Option<&'a ConnectionView> {
    let is_named = |connection: &&ConnectionView| {
        *connection.name.server == *query.server
            && (query.source.is_empty() || *connection.name.source == *query.source)
    };
    connections
        .iter()
        .find(is_named)
        .or_else(|| {
            connections
                .iter()
                .find(|connection| connection.health.word() == "open")
        })
        .or_else(|| connections.first())
}

/// The tools of a server that match the search, and the chosen one.
async fn server_pane(
    workspace: &Workspace,
    base: &str,
    connection: &ConnectionView,
    query: &ToolsQuery,
) -> (ServerPane, Option<ToolInfo>) {
    let name = &connection.name;
    let mut pane = ServerPane {
        name: name.server.to_string(),
        source: name.source.to_string(),
        tools: Vec::new(),
        total: 0,
        problem: None,
    };
    let tools = match workspace.tools(name).await {
        Ok(tools) => tools,
        Err(error) => {
            let next = match &connection.health {
                crate::workspace::ConnectionHealth::Failed { next, .. } => {
                    super::connections::next_step(connection).unwrap_or(next)
                }
                crate::workspace::ConnectionHealth::Open => "Read the tools again.",
                _ => "The page shows them as soon as the server is connected.",
            };
            pane.problem = Some((error.to_string(), next.to_owned()));
            return (pane, None);
        }
    };
    let wanted = query.q.trim().to_lowercase();
    let calls = workspace.calls();
    let chosen = tools.iter().find(|tool| *tool.name == *query.tool);
    // Without a choice, the first tool is shown.
    let chosen = chosen
        .or_else(|| tools.first().filter(|_| query.tool.is_empty()))
        .cloned();
    for tool in tools.iter() {
        let title = text(tool, "title");
        let description = text(tool, "description");
        let haystack = format!("{} {title} {description}", tool.name).to_lowercase();
        if !wanted
            .split_whitespace()
            .all(|word| haystack.contains(word))
        {
            continue;
        }
        let is_of_tool = |call: &&crate::workspace::CallView| {
            call.is_open() && call.connection == *name && *call.tool == *tool.name
        };
        pane.tools.push(ToolItem {
            name: tool.name.to_string(),
            title,
            description: description.lines().next().unwrap_or_default().to_owned(),
            href: href(base, name, &tool.name, &query.q),
            is_current: chosen
                .as_ref()
                .is_some_and(|chosen| chosen.name == tool.name),
            support: support(tool.task_support).0,
            open_calls: calls.iter().filter(is_of_tool).count(),
        });
    }
    pane.total = tools.len();
    (pane, chosen)
}

fn tool_pane(
    workspace: &Workspace,
    connection: &ConnectionView,
    tool: &ToolInfo,
    typed: Option<CallFormInput>,
) -> ToolPane {
    let raw = tool.raw.borrow();
    let schema = object::find(raw, &["inputSchema"]).unwrap_or(RawRef::EMPTY_OBJECT);
    let form = Form::of_schema(schema);
    let modern = connection
        .server
        .as_ref()
        .is_some_and(|server| server.era == "modern");
    let plain = connection.mode == crate::workspace::Mode::Plain;
    let tasks = connection
        .server
        .as_ref()
        .is_some_and(|server| server.generation.supports_tool_tasks());
    let can_task = tasks && !plain && tool.task_support != TaskSupport::Forbidden;
    let can_inline = modern || tool.task_support != TaskSupport::Required || plain;
    let default_ttl = workspace.settings().task_ttl_ms() / 1_000;
    let form = call_form(&form, typed, can_task, can_inline, default_ttl);
    let calls = workspace.calls().into_iter();
    let calls = calls.filter(|call| call.connection == connection.name && *call.tool == *tool.name);
    let title = text(tool, "title");
    let (support, support_text) = support(tool.task_support);
    ToolPane {
        title: if title.is_empty() {
            tool.name.to_string()
        } else {
            title
        },
        name: tool.name.to_string(),
        description: text(tool, "description"),
        annotations: annotations(raw),
        support,
        support_text,
        input_schema: pretty(schema),
        output_schema: object::find(raw, &["outputSchema"]).map(pretty),
        form,
        calls: calls.map(CallRow::of).collect(),
    }
}

fn call_form(
    form: &Form,
    typed: Option<CallFormInput>,
    can_task: bool,
    can_inline: bool,
    default_ttl: u64,
) -> CallForm {
    let typed = typed.unwrap_or_else(|| CallFormInput {
        entries: form.defaults(),
        json: None,
        faults: Faults::new(),
        note: None,
        placement: None,
        ttl: String::new(),
    });
    let json = typed.json.or_else(|| {
        form.json_only
            .map(|_| form.draft(&typed.entries).as_str().to_owned())
    });
    let views = match json {
        Some(_) => Vec::new(),
        None => form.view(&typed.entries, &typed.faults),
    };
    let is_shown = |pointer: &str| json.is_none() && has_pointer(form, pointer);
    let problems = typed
        .faults
        .iter()
        .filter(|(pointer, _)| !is_shown(pointer));
    let problems: Vec<_> = problems
        .map(|(pointer, why)| match pointer.as_str() {
            "" => why.clone(),
            pointer => format!("{pointer}: {why}"),
        })
        .collect();
    CallForm {
        is_empty: form.fields.is_empty() && json.is_none(),
        parts: parts(views, "arg"),
        json_rows: json
            .as_ref()
            .map_or(0, |json| json.lines().count().clamp(6, 24)),
        json,
        note: typed.note.or_else(|| {
            form.json_only
                .map(|why| format!("The arguments are JSON, because {why}."))
        }),
        fault_count: typed.faults.len(),
        problems,
        key: random::token::<16>(),
        is_task: can_task && typed.placement.unwrap_or(true) || !can_inline,
        can_task,
        can_inline,
        ttl: if typed.ttl.is_empty() {
            default_ttl.to_string()
        } else {
            typed.ttl
        },
        has_form: form.json_only.is_none(),
    }
}

/// Whether the form shows a control with this pointer.
fn has_pointer(form: &Form, pointer: &str) -> bool {
    let first = pointer
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let first = first.replace("~1", "/").replace("~0", "~");
    form.fields.iter().any(|field| field.name == first)
}

/// `POST /tools/call`: calls the tool, or changes the form.
async fn call(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let workspace = app.workspace(&viewer)?;
    let query = ToolsQuery {
        server: fields.get("server").to_owned(),
        source: fields.get("source").to_owned(),
        tool: fields.get("tool").to_owned(),
        q: fields.get("q").to_owned(),
    };
    let name = ConnectionName::new(&*query.server, &*query.source);
    // A repeated request needs no second look at the tools.
    let key = fields.get("key");
    let target = format!("{}#calls", href(app.base(), &name, &query.tool, &query.q));
    if fields.get("op") == "run" && workspace.call_of_key(key).is_some() {
        return Ok(Redirect::to(&target).into_response());
    }
    let found = workspace.tools(&name).await?;
    let found = found.iter().find(|tool| *tool.name == *query.tool);
    let tool = found.ok_or_else(|| {
        ConsoleError::not_found(format!(
            "the server {} has no tool {}",
            query.server, query.tool
        ))
    })?;
    let schema = object::find(tool.raw.borrow(), &["inputSchema"]);
    let form = Form::of_schema(schema.unwrap_or(RawRef::EMPTY_OBJECT));
    let is_json = fields.get("mode") == "json";
    let mut typed = CallFormInput {
        entries: fields.entries(),
        json: is_json.then(|| fields.get("json").to_owned()),
        faults: Faults::new(),
        note: None,
        placement: Some(fields.get("placement") == "task"),
        ttl: fields.get("ttl").trim().to_owned(),
    };
    let mut status = StatusCode::OK;
    match fields.get("op") {
        "to-json" => typed.json = Some(pretty(form.draft(&typed.entries).borrow())),
        "to-form" => to_form(&form, &mut typed),
        "reset" => {
            typed.entries = form.defaults();
            typed.json = None;
        }
        "draft" => {}
        op if let Some(list) = op.strip_prefix("add:") => typed.entries.add_item(list),
        op if let Some(item) = op.strip_prefix("remove:") => typed.entries.remove_item(item),
        _ => match arguments(&form, &typed) {
            Ok(arguments) => {
                let placement = placement(&typed)?;
                workspace.call(CallRequest {
                    connection: name,
                    tool: query.tool,
                    arguments,
                    placement,
                    key: key.to_owned(),
                })?;
                return Ok(Redirect::to(&target).into_response());
            }
            Err(faults) => {
                typed.faults = faults;
                status = StatusCode::UNPROCESSABLE_ENTITY;
            }
        },
    }
    let page = page(&app, &viewer, query, Some(typed)).await?;
    Ok((status, render(&page)?).into_response())
}

/// Shows the JSON in the form, if the form can express it.
fn to_form(form: &Form, typed: &mut CallFormInput) {
    let text = typed.json.clone().unwrap_or_default();
    match RawRef::parse(&text) {
        Ok(value) => match form.entries(value) {
            Ok(entries) => {
                typed.entries = entries;
                typed.json = None;
            }
            Err(misfit) => typed.note = Some(format!("The form cannot show this value. {misfit}.")),
        },
        Err(error) => {
            typed
                .faults
                .insert(String::new(), format!("this is not JSON: {error}"));
        }
    }
}

/// The arguments, or what is wrong with them.
fn arguments(form: &Form, typed: &CallFormInput) -> Result<Raw, Faults> {
    let Some(text) = &typed.json else {
        return form.read(&typed.entries);
    };
    let wrong = |why: String| Err(Faults::from([(String::new(), why)]));
    match RawRef::parse(text) {
        Ok(value) if value.is_object() => {
            let faults = form.check(value);
            if faults.is_empty() {
                Ok(value.to_raw())
            } else {
                Err(faults)
            }
        }
        Ok(_) => wrong("the arguments must be a JSON object".into()),
        Err(error) => wrong(format!("this is not JSON: {error}")),
    }
}

fn placement(typed: &CallFormInput) -> Result<Placement, ConsoleError> {
    if typed.placement != Some(true) {
        return Ok(Placement::Inline);
    }
    let ttl_ms = match typed.ttl.as_str() {
        "" => None,
        text => {
            let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds > 0);
            let seconds = seconds.ok_or_else(|| {
                ConsoleError::invalid("the TTL must be a whole number of seconds")
                    .next("go back and correct the TTL")
            })?;
            Some(seconds.saturating_mul(1_000))
        }
    };
    Ok(Placement::Task { ttl_ms })
}

/// `POST /tools/refresh`: reads the tools of a server again.
async fn refresh(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Redirect, ConsoleError> {
    let workspace = app.workspace(&viewer)?;
    let name = ConnectionName::new(fields.get("server"), fields.get("source"));
    workspace.fresh_tools(&name).await?;
    Ok(Redirect::to(&href(
        app.base(),
        &name,
        fields.get("tool"),
        "",
    )))
}

/// `GET /calls/{id}`: the tool of a call, with the call.
async fn call_page(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<u64>,
) -> Result<Redirect, ConsoleError> {
    let call = app.workspace(&viewer)?.call_view(CallId(id))?;
    let target = href(app.base(), &call.connection, &call.tool, "");
    Ok(Redirect::to(&format!("{target}#call-{id}")))
}

/// `POST /calls/{id}/cancel`.
async fn cancel(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<u64>,
) -> Result<Redirect, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    let workspace = app.workspace(&viewer)?;
    let call = workspace.call_view(CallId(id))?;
    workspace.cancel_call(CallId(id)).await?;
    let target = href(app.base(), &call.connection, &call.tool, "");
    Ok(Redirect::to(&format!("{target}#calls")))
}

/// `POST /calls/clear`: removes the calls of a tool that have ended from the list.
async fn clear(
    State(app): State<App>,
    viewer: Viewer,
    fields: FormFields,
) -> Result<Redirect, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let name = ConnectionName::new(fields.get("server"), fields.get("source"));
    app.workspace(&viewer)?
        .clear_calls(&name, fields.get("tool"));
    Ok(Redirect::to(&href(
        app.base(),
        &name,
        fields.get("tool"),
        "",
    )))
}

/// How long the page waits for a connection that is being opened.
const CONNECT_WAIT: Duration = Duration::from_millis(1_500);

/// The page of a tool.
pub(super) fn href(base: &str, name: &ConnectionName, tool: &str, search: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("server", &name.server)
        .append_pair("source", &name.source);
    for (key, value) in [("tool", tool), ("q", search)] {
        if !value.is_empty() {
            query.append_pair(key, value);
        }
    }
    format!("{base}/tools?{}", query.finish())
}

fn text(tool: &ToolInfo, member: &str) -> String {
    let found = object::find(tool.raw.borrow(), &[member]);
    found
        .and_then(RawRef::text)
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}

/// The hints of a tool, and how they look.
fn annotations(tool: RawRef<'_>) -> Vec<(&'static str, &'static str)> {
    let hint = |name| object::find(tool, &["annotations", name]).and_then(RawRef::boolean);
    let mut shown = Vec::new();
    match hint("readOnlyHint") {
        Some(true) => shown.push(("Read-only", "good")),
        Some(false) | None => match hint("destructiveHint") {
            Some(true) => shown.push(("Destructive", "bad")),
            Some(false) => shown.push(("Not destructive", "")),
            None => {}
        },
    }
    if hint("idempotentHint") == Some(true) {
        shown.push(("Idempotent", "good"));
    }
    if hint("openWorldHint") == Some(true) {
        shown.push(("Open world", ""));
    }
    shown
}

/// Whether a tool runs as a task: in a word, and in a sentence.
fn support(support: TaskSupport) -> (&'static str, &'static str) {
    match support {
        TaskSupport::Required => ("task only", "This tool runs only as a task."),
        TaskSupport::Optional => ("task", "This tool can run as a task."),
        TaskSupport::Forbidden => ("no task", "This tool does not run as a task."),
    }
}

/// JSON on several lines, with its numbers as they are.
pub(super) fn pretty(json: RawRef<'_>) -> String {
    super::json_text::pretty(json)
}
