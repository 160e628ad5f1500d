//! One task: its history, arguments, input requests and outcome.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use outlast::server::Scopes;
use outlast_engine::task::{TimelineEntry, TimelineEvent};
use outlast_engine::{RetryClass, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use serde::Deserialize;

use super::form_parts::FormPart;
use super::requests::{self, RequestBody, RequestCard, ResponseFormInput};
use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::format;
use crate::json_tree::{self, Children};
use crate::layout::{Html, Layout, Section, render};
use crate::outcome_view::{self, ContentBlock, OutcomeView};
use crate::status_text;
use crate::task_row::TaskRow;

#[derive(Template)]
#[template(path = "task.html")]
struct TaskPage {
    layout: Layout,
    task: TaskRow,
    entries: Vec<TimelineLine>,
    dropped: u32,
    attempt: u32,
    method: String,
    is_repeatable: bool,
    is_cancelling: bool,
    waited: Option<String>,
    arguments: Option<Children>,
    requests: Vec<RequestCard>,
    /// The input requests that no longer wait, and why.
    answered: Vec<AnsweredRequest>,
    /// Why an answer was not sent.
    refused: Option<String>,
    outcome: Option<OutcomeView>,
    structured: Option<Children>,
    error_data: Option<Children>,
    other: Option<Children>,
    can_cancel: bool,
    can_call: bool,
    can_answer: bool,
    is_operator: bool,
    now: Timestamp,
}

/// A line of the timeline.
struct TimelineLine {
    at: Timestamp,
    /// The time since the creation.
    after: String,
    kind: &'static str,
    title: String,
    detail: String,
}

/// An input request that no longer waits.
struct AnsweredRequest {
    id: String,
    why: String,
}

/// `GET /tasks/ID`.
pub(crate) async fn task(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<String>,
) -> Result<Html, ConsoleError> {
    page(&app, &viewer, parse(&id)?, None, None).await
}

/// The page, with what was typed into a form whose answer was not sent.
pub(crate) async fn page(
    app: &App,
    viewer: &Viewer,
    id: TaskId,
    typed: Option<&ResponseFormInput>,
    refused: Option<String>,
) -> Result<Html, ConsoleError> {
    let task = app.engine().load(&viewer.scope(), id).await?;
    if app.deletions().contains(id) {
        return Err(ConsoleError::not_found("the task was deleted"));
    }
    let row = TaskRow::of(app.engine(), &task.clone().into());
    let ended = if outcome_view::has_outcome(row.status) {
        app.engine().outcome(&viewer.scope(), id).await?
    } else {
        None
    };
    let tree = |part: &str, path: &str, raw: &Raw| {
        let url = format!("{}/tasks/{id}/tree?part={part}", app.base());
        json_tree::children(raw, url, path, 0)
    };
    let outcome = ended.as_ref().and_then(OutcomeView::of);
    let body = ended.as_ref().and_then(|ended| ended.body.as_ref());
    let of_body = |shows: bool, path: &str| {
        let body = body.filter(|_| shows)?;
        tree("outcome", path, body)
    };
    let view = outcome.as_ref();
    let structured = of_body(
        view.is_some_and(|view| view.has_structured),
        "/structuredContent",
    );
    let data = view
        .and_then(|view| view.error.as_ref())
        .is_some_and(|error| error.has_data);
    let error_data = of_body(data, "/data");
    let other = of_body(view.is_some_and(|view| view.is_other), "");
    let arguments = arguments(&task);
    let waited = task.lifetime.waited_ms
        + task
            .lifetime
            .waiting_since
            .map_or(0, |since| app.engine().now().since(since));
    render(&TaskPage {
        layout: Layout::new(app, viewer, Section::Tasks).titled(row.name()),
        entries: entries(app, &task),
        dropped: task.timeline.dropped,
        attempt: task.attempt.0,
        method: task.origin.method.to_string(),
        is_repeatable: task.origin.retry == RetryClass::Rerun,
        is_cancelling: task.cancel.is_some() && row.is_open(),
        waited: (waited > 0).then(|| format::duration(waited)),
        arguments: arguments
            .as_ref()
            .and_then(|raw| tree("arguments", "", raw)),
        requests: requests::cards_of_task(app, &task, typed),
        answered: answered(app, &task),
        refused,
        outcome,
        structured,
        error_data,
        other,
        can_cancel: viewer.can(Scopes::CANCEL),
        can_call: viewer.can(Scopes::CALL),
        can_answer: viewer.can(Scopes::ANSWER),
        is_operator: viewer.is_operator(),
        now: app.engine().now(),
        task: row,
    })
}

/// The query of [`tree`].
#[derive(Deserialize)]
pub(crate) struct TreeParams {
    part: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    raw: u8,
}

/// `GET /tasks/ID/tree`: the children of one value of the arguments or the outcome.
pub(crate) async fn tree(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<String>,
    Query(params): Query<TreeParams>,
) -> Result<Response, ConsoleError> {
    let id = parse(&id)?;
    let no_value = || ConsoleError::not_found("the task has no such value");
    let root = match params.part.as_str() {
        "arguments" => arguments(&*app.engine().load(&viewer.scope(), id).await?),
        "outcome" => {
            let ended = app.engine().outcome(&viewer.scope(), id).await?;
            ended.and_then(|ended| ended.body)
        }
        _ => None,
    };
    let root = root.ok_or_else(no_value)?;
    if params.raw == 1 {
        let value = json_tree::find(root.as_str(), &params.path).ok_or_else(no_value)?;
        return Ok(download(
            value.to_owned().into_bytes(),
            "application/json",
            "value.json",
        ));
    }
    let url = format!("{}/tasks/{id}/tree?part={}", app.base(), params.part);
    let children = json_tree::children(&root, url, &params.path, params.offset);
    Ok(render(&children.ok_or_else(no_value)?)?.into_response())
}

/// `GET /tasks/ID/content/N`: an image or a file of the outcome.
pub(crate) async fn content(
    State(app): State<App>,
    viewer: Viewer,
    Path((id, at)): Path<(String, usize)>,
) -> Result<Response, ConsoleError> {
    let ended = app.engine().outcome(&viewer.scope(), parse(&id)?).await?;
    let body = ended.and_then(|ended| ended.body);
    let found = body.and_then(|body| outcome_view::block_bytes(body.as_str(), at));
    let (bytes, image) =
        found.ok_or_else(|| ConsoleError::not_found("there is no such content"))?;
    Ok(match image {
        Some(media_type) => {
            let media_type = HeaderValue::from_str(&media_type);
            let media_type = media_type.map_err(|_| ConsoleError::invalid("no media type"))?;
            ([(header::CONTENT_TYPE, media_type)], bytes).into_response()
        }
        None => download(bytes, "application/octet-stream", "content"),
    })
}

/// A file that browsers store and never show.
pub(crate) fn download(bytes: Vec<u8>, media_type: &'static str, name: &str) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    (headers, bytes).into_response()
}

/// The id in a path.
pub(crate) fn parse(id: &str) -> Result<TaskId, ConsoleError> {
    id.parse().map_err(|_| {
        ConsoleError::not_found("there is no such task").next("check the id: it has 26 characters")
    })
}

/// The arguments of the call: for a tool its `arguments`, else all parameters.
pub(crate) fn arguments(task: &Task) -> Option<Raw> {
    let params = task.origin.params.as_ref()?;
    if task.origin.tool.is_none() {
        return Some(params.clone());
    }
    let arguments = json_tree::find(params.as_str(), "/arguments")?;
    Raw::parse(arguments.to_owned()).ok()
}

/// The input requests of the timeline that no longer wait.
fn answered(app: &App, task: &Task) -> Vec<AnsweredRequest> {
    let entries = task.timeline.entries.iter();
    let left = entries.filter_map(|entry| match &entry.event {
        TimelineEvent::InputProvided(key) => Some((
            key,
            app.answered().who(task.id, key).map_or_else(
                || "it was answered".to_owned(),
                |who| format!("it was answered by {who}"),
            ),
        )),
        TimelineEvent::InputWithdrawn(key) => {
            Some((key, "the tool no longer asks for it".to_owned()))
        }
        _ => None,
    });
    let mut left: Vec<_> = left
        .map(|(key, why)| AnsweredRequest {
            id: requests::task_card_id(task.id, key),
            why,
        })
        .collect();
    if task.state.ending().is_some() {
        let asked = task.timeline.entries.iter().filter_map(|entry| {
            let TimelineEvent::InputRequested(key) = &entry.event else {
                return None;
            };
            Some(requests::task_card_id(task.id, key))
        });
        for id in asked {
            if !left.iter().any(|item| item.id == id) {
                let why = "the task has ended".to_owned();
                left.push(AnsweredRequest { id, why });
            }
        }
    }
    left
}

/// The timeline. A resume state that was saved several times in a row is one line.
fn entries(app: &App, task: &Task) -> Vec<TimelineLine> {
    let all = &task.timeline.entries;
    let is_saved = |at: usize| all[at].event == TimelineEvent::ResumeStateSaved;
    let shown = (0..all.len()).filter(|&at| at == 0 || !is_saved(at) || !is_saved(at - 1));
    shown
        .map(|at| TimelineLine::of(app, &all[at], task))
        .collect()
}

impl TimelineLine {
    fn of(app: &App, entry: &TimelineEntry, task: &Task) -> Self {
        let plain = |kind, title: &str| (kind, title.to_owned(), String::new());
        let (kind, title, detail) = match &entry.event {
            TimelineEvent::Created => plain("created", "Created"),
            TimelineEvent::Claimed(attempt) => (
                "restart",
                format!("Attempt {} started", attempt.0),
                "The process that ran the task stopped; another attempt continues.".to_owned(),
            ),
            TimelineEvent::Status(text) => {
                ("status", "Status".to_owned(), status_text::readable(text))
            }
            TimelineEvent::ResumeStateSaved => plain("note", "Resume state saved"),
            TimelineEvent::InputRequested(key) => (
                "input",
                "Input requested".to_owned(),
                key.as_str().to_owned(),
            ),
            TimelineEvent::InputProvided(key) => (
                "input",
                "Input provided".to_owned(),
                match app.answered().who(task.id, key) {
                    Some(who) => format!("{} by {who}", key.as_str()),
                    None => key.as_str().to_owned(),
                },
            ),
            TimelineEvent::InputWithdrawn(key) => (
                "note",
                "Input request withdrawn".to_owned(),
                key.as_str().to_owned(),
            ),
            TimelineEvent::CancelRequested => plain("cancelled", "Cancellation requested"),
            TimelineEvent::Detached => plain("note", "Work handed over to another program"),
            TimelineEvent::Extended(ttl_ms) => {
                let ttl = format::duration(*ttl_ms);
                (
                    "note",
                    "TTL extended".to_owned(),
                    format!("{ttl} after the creation"),
                )
            }
            TimelineEvent::Ended => match task.state.ending() {
                Some(outlast_engine::Ending::Result) => plain("completed", "Completed"),
                Some(outlast_engine::Ending::Cancelled) => plain("cancelled", "Cancelled"),
                Some(_) => (
                    "failed",
                    "Failed".to_owned(),
                    status_text::readable(task.message.as_deref().unwrap_or_default()),
                ),
                None => plain("note", "Ended"),
            },
        };
        Self {
            at: entry.at,
            after: format::duration(entry.at.since(task.created)),
            kind,
            title,
            detail,
        }
    }
}
