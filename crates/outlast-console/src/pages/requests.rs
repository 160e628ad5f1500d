//! Requests that wait for a person: of servers to this client, and of the tasks in the store.
//!
//! The first answer counts. A later one gets an error that says who was first.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outlast::client::Answer;
use outlast::server::Scopes;
use outlast::store::Snapshot;
use outlast::task::{InputKey, InputKind, InputResponse, TaskId};
use outlast::wire::{ErrorObject, Raw, RawRef, codes};
use outlast_engine::Task;
use outlast_engine::store::{Filter, Status};
use outlast_wire::object;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::call_row::millis;
use super::form_parts::{FormFields, FormPart, parts};
use super::json_text::pretty;
use super::task;
use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::form::{Entries, Faults, Form};
use crate::layout::{Html, Layout, Section, render};
use crate::page_address;
use crate::task_row::{owner_name, server_name};
use crate::workspace::{PendingId, PendingItem, removal_text};
use crate::workspaces::OWN_SOURCE;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/requests", get(requests))
        .route("/requests/{id}", post(answer))
        .route("/requests/task/{task}/{key}", post(answer_task))
        .route("/api/v1/requests", get(all))
        .route("/api/v1/requests/summary", get(summary))
}

#[derive(Template, Serialize)]
#[template(path = "requests.html")]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestsPage {
    #[serde(skip)]
    layout: Layout,
    #[serde(skip)]
    now: u64,
    #[serde(skip)]
    is_sampling: bool,
    sampling: usize,
    elicitations: usize,
    #[serde(rename = "requests")]
    cards: Vec<RequestCard>,
    left: Vec<LeftItem>,
    #[serde(skip)]
    can_answer: bool,
    /// Why an answer was not sent.
    #[serde(skip)]
    refused: Option<String>,
}

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
struct RequestsQuery {
    #[serde(default)]
    tab: String,
}

/// A request that waits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestCard {
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) action: String,
    pub(crate) server: String,
    /// Where the request comes from.
    pub(crate) origin: String,
    pub(crate) task: Option<String>,
    /// The page of the call or of the task.
    pub(crate) href: Option<String>,
    pub(crate) arrived_ms: u64,
    pub(crate) message: String,
    #[serde(skip)]
    pub(crate) body: RequestBody,
    /// The request as it came.
    method: &'static str,
    params: Option<Raw>,
    /// Names the request of a task in the store, for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip)]
    pub(crate) faults: Vec<String>,
}

pub(crate) enum RequestBody {
    Form(Vec<FormPart>),
    /// A form whose schema only JSON can express.
    Json(String, &'static str),
    Url(page_address::PageAddress),
    Sampling(SamplingView),
    Roots(String),
}

pub(crate) struct SamplingView {
    pub(crate) system: Option<String>,
    pub(crate) messages: Vec<(String, String)>,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) tools: Vec<(String, String)>,
    pub(crate) answer: String,
    pub(crate) model: String,
    pub(crate) json: String,
}

/// A request that has left.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftItem {
    id: String,
    server: String,
    what: &'static str,
    why: String,
    at_ms: u64,
}

/// A request of a task in the store.
struct TaskRequest {
    task: TaskId,
    key: InputKey,
    owner: String,
    server: String,
    kind: InputKind,
    params: Option<Raw>,
    since_ms: u64,
}

/// What was typed, if an answer was wrong.
pub(crate) struct ResponseFormInput {
    id: String,
    entries: Entries,
    json: Option<String>,
    faults: Faults,
}

/// `GET /requests`.
async fn requests(
    State(app): State<App>,
    viewer: Viewer,
    Query(query): Query<RequestsQuery>,
) -> Result<Html, ConsoleError> {
    let page = page(&app, &viewer, &query.tab, None, None).await?;
    render(&page)
}

async fn page(
    app: &App,
    viewer: &Viewer,
    tab: &str,
    typed: Option<ResponseFormInput>,
    refused: Option<String>,
) -> Result<RequestsPage, ConsoleError> {
    let workspace = app.workspace(viewer)?;
    let pending = workspace.pending();
    let mut tasks = task_requests(app, viewer).await?;
    // Our own endpoint sends the requests of its tasks to this client: each is shown once.
    tasks.retain(|task| {
        let is_same = |item: &PendingItem| {
            *item.connection.source == *OWN_SOURCE
                && item.request.task.as_deref() == Some(&*task.task.to_string())
                && item
                    .request
                    .key
                    .as_deref()
                    .is_none_or(|key| key == task.key.as_str())
        };
        !pending.iter().any(is_same)
    });
    let of_sampling = |kind| matches!(kind, InputKind::Sample | InputKind::SampleWithTools);
    let all = pending
        .iter()
        .map(|item| item.request.kind)
        .chain(tasks.iter().map(|task| task.kind));
    let (mut sampling, mut elicitations) = (0, 0);
    all.for_each(|kind| {
        if of_sampling(kind) {
            sampling += 1;
        } else {
            elicitations += 1;
        }
    });
    let is_all = tab == ALL_TABS;
    let is_sampling = match tab {
        "sampling" => true,
        "elicitations" => false,
        // The tab with something to do.
        _ => sampling > 0 && elicitations == 0,
    };
    let mut cards = Vec::new();
    for item in &pending {
        if is_all || of_sampling(item.request.kind) == is_sampling {
            cards.push(card_of_item(app, item, typed.as_ref()));
        }
    }
    for task in &tasks {
        if is_all || of_sampling(task.kind) == is_sampling {
            cards.push(card_of_task(app, task, typed.as_ref()));
        }
    }
    let left = workspace.departed(MAX_SHOWN_DEPARTURES).into_iter();
    let left = left
        .filter(|item| is_all || item.is_sampling() == is_sampling)
        .filter_map(|item| {
            let (removal, at) = item.left.as_ref()?;
            Some(LeftItem {
                id: item.id.to_string(),
                server: item.connection.server.to_string(),
                what: what(item.request.kind),
                why: removal_text(removal),
                at_ms: millis(*at),
            })
        });
    Ok(RequestsPage {
        layout: Layout::new(app, viewer, Section::Requests),
        now: app.engine().now().0,
        is_sampling,
        sampling,
        elicitations,
        left: left.collect(),
        cards,
        can_answer: viewer.can(Scopes::ANSWER),
        refused,
    })
}

/// `GET /api/v1/requests`: the requests that wait, and those that have left.
async fn all(State(app): State<App>, viewer: Viewer) -> Result<Json<RequestsPage>, ConsoleError> {
    Ok(Json(page(&app, &viewer, ALL_TABS, None, None).await?))
}

/// `GET /api/v1/requests/summary`: how many requests wait.
async fn summary(
    State(app): State<App>,
    viewer: Viewer,
) -> Result<Json<serde_json::Value>, ConsoleError> {
    let page = page(&app, &viewer, "", None, None).await?;
    Ok(Json(
        json!({ "sampling": page.sampling, "elicitations": page.elicitations }),
    ))
}

/// The open input requests of the tasks in the store that the viewer may see.
async fn task_requests(app: &App, viewer: &Viewer) -> Result<Vec<TaskRequest>, ConsoleError> {
    let filter = Filter {
        owner: viewer.owner().cloned(),
        statuses: [Status::InputRequired].into_iter().collect(),
        ..Filter::default()
    };
    let page = app.engine().search(&filter, None, MAX_TASKS).await?;
    let mut requests = Vec::new();
    for found in page.tasks {
        let Snapshot::Open(task) = &found else {
            continue;
        };
        requests.extend(requests_of_task(task, server_name(found.runner())));
    }
    requests.reverse();
    Ok(requests)
}

fn card_of_item(app: &App, item: &PendingItem, typed: Option<&ResponseFormInput>) -> RequestCard {
    let request = &item.request;
    let id = item.id.to_string();
    let origin = match (&request.hosted_task, &request.task) {
        (Some(_), _) => "task of the server at this client".to_owned(),
        (None, Some(_)) => "task at the server".to_owned(),
        (None, None) => "inline".to_owned(),
    };
    let typed = typed.filter(|typed| typed.id == id);
    let (body, message) = body(request.kind, request.params.as_ref(), typed, &id);
    RequestCard {
        action: format!("{}/requests/{id}", app.base()),
        server: request.server.to_string(),
        origin,
        task: request.hosted_task.clone().or_else(|| request.task.clone()),
        href: item
            .call
            .map(|call| format!("{}/calls/{}", app.base(), call.0)),
        arrived_ms: millis(item.arrived),
        message,
        faults: other_faults(&body, typed),
        body,
        method: request.kind.method(),
        params: request.params.clone(),
        key: None,
        id,
    }
}

/// The open input requests of a task in the store.
pub(crate) fn cards_of_task(
    app: &App,
    task: &Task,
    typed: Option<&ResponseFormInput>,
) -> Vec<RequestCard> {
    let server = server_name(&task.origin.runner);
    let requests = requests_of_task(task, server);
    requests
        .map(|request| card_of_task(app, &request, typed))
        .collect()
}

/// The id of the card of a request.
pub(crate) fn task_card_id(task: TaskId, key: &InputKey) -> String {
    format!("{task}-{}", encoded(key))
}

/// The key as a part of a path.
fn encoded(key: &InputKey) -> percent_encoding::PercentEncode<'_> {
    percent_encoding::utf8_percent_encode(key.as_str(), percent_encoding::NON_ALPHANUMERIC)
}

fn requests_of_task(task: &Task, server: &str) -> impl Iterator<Item = TaskRequest> {
    let open = task.outstanding().into_iter().flat_map(|open| open.iter());
    open.map(move |(key, request)| TaskRequest {
        task: task.id,
        key: key.clone(),
        owner: owner_name(&task.owner),
        server: server.to_owned(),
        kind: request.kind,
        params: request.params.clone(),
        since_ms: task.updated.0,
    })
}

fn card_of_task(app: &App, task: &TaskRequest, typed: Option<&ResponseFormInput>) -> RequestCard {
    let key = encoded(&task.key);
    let id = task_card_id(task.task, &task.key);
    let typed = typed.filter(|typed| typed.id == id);
    let (body, message) = body(task.kind, task.params.as_ref(), typed, &id);
    RequestCard {
        action: format!("{}/requests/task/{}/{key}", app.base(), task.task),
        server: task.server.clone(),
        origin: format!("task of {} in the store", task.owner),
        task: Some(task.task.to_string()),
        href: Some(format!("{}/tasks/{}", app.base(), task.task)),
        arrived_ms: task.since_ms,
        message,
        faults: other_faults(&body, typed),
        body,
        method: task.kind.method(),
        params: task.params.clone(),
        key: Some(task.key.as_str().to_owned()),
        id,
    }
}

/// Messages that belong to no field of the form.
fn other_faults(body: &RequestBody, typed: Option<&ResponseFormInput>) -> Vec<String> {
    let Some(typed) = typed else {
        return Vec::new();
    };
    let is_form = matches!(body, RequestBody::Form(_));
    let faults = typed
        .faults
        .iter()
        .filter(|(pointer, _)| !is_form || pointer.is_empty());
    faults.map(|(_, why)| why.clone()).collect()
}

/// What the person sees of a request, and its message.
fn body(
    kind: InputKind,
    params: Option<&Raw>,
    typed: Option<&ResponseFormInput>,
    id: &str,
) -> (RequestBody, String) {
    let empty = Raw::empty_object();
    let params = params.unwrap_or(&empty).borrow();
    let text = |name: &str| {
        let found = object::find(params, &[name]).and_then(RawRef::text);
        found.map(std::borrow::Cow::into_owned).unwrap_or_default()
    };
    let body = match kind {
        InputKind::ElicitForm => {
            let form = Form::of_schema(schema(params));
            let entries = typed.map_or_else(|| form.defaults(), |typed| typed.entries.clone());
            let nothing = Faults::new();
            let faults = typed.map_or(&nothing, |typed| &typed.faults);
            match form.json_only {
                Some(why) => {
                    let text = typed.and_then(|typed| typed.json.clone());
                    RequestBody::Json(text.unwrap_or_else(|| "{}".into()), why)
                }
                None => RequestBody::Form(parts(form.view(&entries, faults), &format!("r{id}"))),
            }
        }
        InputKind::ElicitUrl => RequestBody::Url(page_address::PageAddress::of(&text("url"))),
        InputKind::Sample | InputKind::SampleWithTools => {
            RequestBody::Sampling(SamplingView::of(params, typed))
        }
        InputKind::Roots => RequestBody::Roots(
            typed
                .and_then(|typed| typed.json.clone())
                .unwrap_or_default(),
        ),
    };
    (body, text("message"))
}

fn schema(params: RawRef<'_>) -> RawRef<'_> {
    object::find(params, &["requestedSchema"]).unwrap_or(RawRef::EMPTY_OBJECT)
}

impl SamplingView {
    fn of(params: RawRef<'_>, typed: Option<&ResponseFormInput>) -> Self {
        let text = |path: &[&str]| {
            let found = object::find(params, path).and_then(RawRef::text);
            found.map(std::borrow::Cow::into_owned)
        };
        let list = |path: &[&str]| {
            object::find(params, path)
                .and_then(object::elements)
                .unwrap_or_default()
        };
        let messages = list(&["messages"]).into_iter().map(|message| {
            let role = object::find(message, &["role"]).and_then(RawRef::text);
            let content = object::find(message, &["content"]);
            let content = content.map(content_text).unwrap_or_default();
            (role.unwrap_or_default().into_owned(), content)
        });
        let mut facts = Vec::new();
        let hints = list(&["modelPreferences", "hints"]).into_iter();
        let hints = hints.filter_map(|hint| object::find(hint, &["name"])?.text());
        let hints: Vec<_> = hints.map(std::borrow::Cow::into_owned).collect();
        if !hints.is_empty() {
            facts.push(("Model hints", hints.join(", ")));
        }
        for (name, path) in [
            ("Cost", &["modelPreferences", "costPriority"][..]),
            ("Speed", &["modelPreferences", "speedPriority"]),
            (
                "Intelligence",
                &["modelPreferences", "intelligencePriority"],
            ),
            ("Maximum tokens", &["maxTokens"]),
            ("Temperature", &["temperature"]),
            ("Stop at", &["stopSequences"]),
            ("Context", &["includeContext"]),
            ("Tool choice", &["toolChoice"]),
        ] {
            if let Some(value) = object::find(params, path) {
                facts.push((
                    name,
                    value
                        .text()
                        .map_or_else(|| value.as_str().to_owned(), Into::into),
                ));
            }
        }
        let tools = list(&["tools"]).into_iter().map(|tool| {
            let text = |name: &str| {
                let found = object::find(tool, &[name]).and_then(RawRef::text);
                found.unwrap_or_default().into_owned()
            };
            (text("name"), text("description"))
        });
        let typed_text = |name: &str| {
            let found = typed.and_then(|typed| typed.entries.text(name));
            found.map(str::to_owned)
        };
        Self {
            system: text(&["systemPrompt"]),
            messages: messages.collect(),
            facts,
            tools: tools.collect(),
            answer: typed_text("/text").unwrap_or_default(),
            model: typed_text("/model").unwrap_or_else(|| "a person".into()),
            json: typed
                .and_then(|typed| typed.json.clone())
                .unwrap_or_default(),
        }
    }
}

/// The content of a message: its texts, or JSON of other content.
fn content_text(content: RawRef<'_>) -> String {
    let blocks = object::elements(content).unwrap_or_else(|| vec![content]);
    let blocks = blocks.into_iter().map(|block| {
        let text = object::find(block, &["text"]).and_then(RawRef::text);
        match text {
            Some(text) => text.into_owned(),
            None if block.as_str().len() > MAX_BLOCK_BYTES => {
                let kind = object::find(block, &["type"]).and_then(RawRef::text);
                format!(
                    "[{}, {}]",
                    kind.unwrap_or_default(),
                    crate::format::bytes(block.as_str().len())
                )
            }
            None => pretty(block),
        }
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// `POST /requests/{id}`: answers a request of a server.
async fn answer(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<String>,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::ANSWER)?;
    let workspace = app.workspace(&viewer)?;
    let pending: PendingId = id.parse()?;
    let item = workspace.pending_item(pending)?;
    let kind = item.request.kind;
    let answer = match read_answer(kind, item.request.params.as_ref(), &fields) {
        Ok(Given::Answer(answer)) => answer,
        Ok(Given::Changed(entries)) => {
            let typed = ResponseFormInput {
                id,
                entries,
                json: None,
                faults: Faults::new(),
            };
            return changed(&app, &viewer, kind, typed, StatusCode::OK).await;
        }
        Err(faults) => {
            let typed = ResponseFormInput::of(id, &fields, faults);
            return changed(&app, &viewer, kind, typed, StatusCode::UNPROCESSABLE_ENTITY).await;
        }
    };
    match workspace.answer(pending, answer, Some(viewer.name().into())) {
        Ok(()) => Ok(to_tab(&app, kind).into_response()),
        Err(error) => refused(&app, &viewer, kind, error.to_string()).await,
    }
}

/// `POST /requests/task/{task}/{key}`: answers a request of a task in the store, for its owner.
async fn answer_task(
    State(app): State<App>,
    viewer: Viewer,
    Path((task, key)): Path<(String, String)>,
    fields: FormFields,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::ANSWER)?;
    let not_found = || ConsoleError::not_found("there is no such task, or it is not yours");
    let id: TaskId = task.parse().map_err(|_| not_found())?;
    let (scope, key) = (viewer.scope(), InputKey::new(key));
    let found = app.engine().get(&scope, id).await?;
    let open = match &found {
        Snapshot::Open(task) => task.outstanding().and_then(|open| open.get(&key)).cloned(),
        Snapshot::Ended(_) => None,
    };
    // The form is on the page of the task, or among the requests.
    let page = if fields.get("from") == "task" {
        FormPage::Task(id)
    } else {
        FormPage::Requests(
            open.as_ref()
                .map_or(InputKind::ElicitForm, |open| open.kind),
        )
    };
    let Some(request) = open else {
        let why = not_sent(&app, id, &key);
        return page.refused(&app, &viewer, why).await;
    };
    let typed = match read_answer(request.kind, request.params.as_ref(), &fields) {
        Ok(Given::Answer(answer)) => {
            let response = response(request.kind, answer);
            return match answer_stored(&app, &viewer, id, key, response).await {
                Ok(()) => Ok(page.done(&app).into_response()),
                Err(error) if error.status == StatusCode::CONFLICT => {
                    page.refused(&app, &viewer, error.message).await
                }
                Err(error) => Err(error),
            };
        }
        Ok(Given::Changed(entries)) => ResponseFormInput {
            id: task_card_id(id, &key),
            entries,
            json: None,
            faults: Faults::new(),
        },
        Err(faults) => ResponseFormInput::of(task_card_id(id, &key), &fields, faults),
    };
    let status = if typed.faults.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    page.changed(&app, &viewer, typed, status).await
}

/// The page with the form of a request of a stored task.
#[derive(Clone, Copy)]
enum FormPage {
    Task(TaskId),
    Requests(InputKind),
}

impl FormPage {
    fn done(self, app: &App) -> Redirect {
        match self {
            Self::Task(id) => Redirect::to(&format!("{}/tasks/{id}", app.base())),
            Self::Requests(kind) => to_tab(app, kind),
        }
    }

    async fn refused(
        self,
        app: &App,
        viewer: &Viewer,
        why: String,
    ) -> Result<Response, ConsoleError> {
        match self {
            Self::Task(id) => {
                let page = task::page(app, viewer, id, None, Some(why)).await?;
                Ok((StatusCode::CONFLICT, page).into_response())
            }
            Self::Requests(kind) => refused(app, viewer, kind, why).await,
        }
    }

    async fn changed(
        self,
        app: &App,
        viewer: &Viewer,
        typed: ResponseFormInput,
        status: StatusCode,
    ) -> Result<Response, ConsoleError> {
        match self {
            Self::Task(id) => {
                let page = task::page(app, viewer, id, Some(&typed), None).await?;
                Ok((status, page).into_response())
            }
            Self::Requests(kind) => changed(app, viewer, kind, typed, status).await,
        }
    }
}

/// Sends the response to a request of a stored task. The first answer counts; the error of a later
/// one says who was first.
pub(crate) async fn answer_stored(
    app: &App,
    viewer: &Viewer,
    id: TaskId,
    key: InputKey,
    response: InputResponse,
) -> Result<(), ConsoleError> {
    let scope = viewer.scope();
    let found = app.engine().get(&scope, id).await?;
    let is_open = match &found {
        Snapshot::Open(task) => task
            .outstanding()
            .is_some_and(|open| open.get(&key).is_some()),
        Snapshot::Ended(_) => false,
    };
    // The engine ignores a second answer, so the first one is recorded here.
    let by: Arc<str> = viewer.name().into();
    if !is_open || app.answered().claim(id, key.clone(), by).is_some() {
        return Err(ConsoleError::conflict(not_sent(app, id, &key)));
    }
    let provided = BTreeMap::from([(key.clone(), response)]);
    let provided = app
        .engine()
        .provide_input(viewer.actor(), id, provided)
        .await;
    if provided.is_err() {
        app.answered().forget(id, &key);
    }
    Ok(provided.map(drop)?)
}

/// Why an answer was not sent.
fn not_sent(app: &App, id: TaskId, key: &InputKey) -> String {
    let why = app.answered().who(id, key).map_or_else(
        || "the task no longer waits for it".to_owned(),
        |who| format!("it was already answered by {who}"),
    );
    format!("your answer was not sent: {why}")
}

/// What a form submission means.
enum Given {
    Answer(Answer),
    /// The structure of the form changed.
    Changed(Entries),
}

/// The answer in a submitted form, or what is wrong with it.
fn read_answer(
    kind: InputKind,
    params: Option<&Raw>,
    fields: &FormFields,
) -> Result<Given, Faults> {
    let wrong = |why: String| Err(Faults::from([(String::new(), why)]));
    let op = fields.get("op");
    match op {
        "decline" => return Ok(Given::Answer(Answer::Decline)),
        "cancel" => return Ok(Given::Answer(Answer::Cancel)),
        _ => {}
    }
    let mut entries = fields.entries();
    if let Some(list) = op.strip_prefix("add:") {
        entries.add_item(list);
        return Ok(Given::Changed(entries));
    }
    if let Some(item) = op.strip_prefix("remove:") {
        entries.remove_item(item);
        return Ok(Given::Changed(entries));
    }
    let respond = |result: &serde_json::Value| {
        let result =
            Raw::encode(result).map_err(|error| Faults::from([(String::new(), error.to_string())]));
        Ok(Given::Answer(Answer::Respond(result?)))
    };
    match kind {
        InputKind::ElicitForm => {
            let empty = Raw::empty_object();
            let form = Form::of_schema(schema(params.unwrap_or(&empty).borrow()));
            let content = if form.json_only.is_some() {
                match RawRef::parse(fields.get("json")) {
                    Ok(value) if value.is_object() => {
                        let faults = form.check(value);
                        if !faults.is_empty() {
                            return Err(faults);
                        }
                        value.to_raw()
                    }
                    _ => return wrong("type a JSON object".into()),
                }
            } else {
                form.read(&entries)?
            };
            let answer = format!(r#"{{"action":"accept","content":{}}}"#, content.as_str());
            match Raw::parse(answer) {
                Ok(answer) => Ok(Given::Answer(Answer::Respond(answer))),
                Err(error) => wrong(error.to_string()),
            }
        }
        InputKind::ElicitUrl => respond(&json!({ "action": "accept" })),
        InputKind::Sample | InputKind::SampleWithTools if op == "answer-json" => {
            match RawRef::parse(fields.get("json")) {
                Ok(value) if value.is_object() => {
                    Ok(Given::Answer(Answer::Respond(value.to_raw())))
                }
                Ok(_) => wrong("the answer must be a JSON object".into()),
                Err(error) => wrong(format!("this is not JSON: {error}")),
            }
        }
        InputKind::Sample | InputKind::SampleWithTools => {
            let text = entries.text("/text").unwrap_or_default();
            if text.trim().is_empty() {
                return wrong("write the answer of the model first".into());
            }
            respond(&json!({
                "role": "assistant",
                "content": { "type": "text", "text": text },
                "model": entries.text("/model").filter(|model| !model.is_empty()).unwrap_or("a person"),
                "stopReason": "endTurn",
            }))
        }
        InputKind::Roots => {
            let lines = fields
                .get("json")
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty());
            let lines: Vec<_> = lines.collect();
            if let Some(line) = lines.iter().find(|line| !line.starts_with("file://")) {
                return wrong(format!("{line} does not begin with file://"));
            }
            let roots: Vec<_> = lines.into_iter().map(|uri| json!({ "uri": uri })).collect();
            respond(&json!({ "roots": roots }))
        }
    }
}

/// The response to a task in the store.
fn response(kind: InputKind, answer: Answer) -> InputResponse {
    match answer {
        Answer::Respond(result) => InputResponse::Result(result),
        Answer::Reject(error) => InputResponse::Error(error),
        Answer::Decline => outlast::client::decline(kind),
        Answer::Cancel => outlast::client::dismiss(kind),
        _ => {
            InputResponse::Error(ErrorObject::new(codes::INTERNAL_ERROR, "unknown answer").to_raw())
        }
    }
}

impl ResponseFormInput {
    fn of(id: String, fields: &FormFields, faults: Faults) -> Self {
        Self {
            id,
            entries: fields.entries(),
            json: Some(fields.get("json").to_owned()),
            faults,
        }
    }
}

/// The page again, with what was typed.
async fn changed(
    app: &App,
    viewer: &Viewer,
    kind: InputKind,
    typed: ResponseFormInput,
    status: StatusCode,
) -> Result<Response, ConsoleError> {
    let page = page(app, viewer, tab(kind), Some(typed), None).await?;
    Ok((status, render(&page)?).into_response())
}

/// The page again, with the reason why the answer was not sent.
async fn refused(
    app: &App,
    viewer: &Viewer,
    kind: InputKind,
    why: String,
) -> Result<Response, ConsoleError> {
    let page = page(app, viewer, tab(kind), None, Some(why)).await?;
    Ok((StatusCode::CONFLICT, render(&page)?).into_response())
}

fn to_tab(app: &App, kind: InputKind) -> Redirect {
    Redirect::to(&format!("{}/requests?tab={}", app.base(), tab(kind)))
}

/// The tab of the page.
pub(crate) fn tab(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Sample | InputKind::SampleWithTools => "sampling",
        InputKind::ElicitForm | InputKind::ElicitUrl | InputKind::Roots => "elicitations",
    }
}

fn what(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Sample | InputKind::SampleWithTools => "Sampling",
        InputKind::ElicitForm => "Form",
        InputKind::ElicitUrl => "Page",
        InputKind::Roots => "Roots",
    }
}

/// Requests of every kind, for programs.
const ALL_TABS: &str = "all";

/// How many requests that have left are shown.
const MAX_SHOWN_DEPARTURES: usize = 12;

/// How many waiting tasks of the store are shown.
const MAX_TASKS: usize = 100;

/// Content that is larger is named, not shown.
const MAX_BLOCK_BYTES: usize = 4_096;
