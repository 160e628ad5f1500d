//! Typed filters around `tools/list` and the task methods (S3-21, S3-22).
//!
//! The values keep the JSON of the server unless a filter changes it, so that members of both eras
//! and of extensions pass through.

use std::marker::PhantomData;

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::{self, TaskSupport};
use outlast_wire::{Raw, RawRef, codes, object, tool, v2};
use serde_json::{Map, Value, json};

use super::middleware::RequestContext;
use super::{IncomingRequest, Middleware, Next, Reply};

/// A request on its way to the server. [`FilteredRequest::run`] sends it on and returns its `T`.
pub struct FilteredRequest<'a, T> {
    request: IncomingRequest,
    next: Next<'a>,
    result: PhantomData<fn() -> T>,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The reply is this JSON-RPC error object.
    #[error("the request failed: {}", .0.as_str())]
    Error(Raw),
    /// The request was cancelled, so that it has no reply.
    #[error("the request was cancelled")]
    Cancelled,
}

/// A task as a response describes it. The response to `tasks/cancel` of 2026-07-28 has no members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo(Raw);

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskList(Raw);

/// A page of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolList(Raw);

/// One tool of a [`ToolList`].
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool(Map<String, Value>);

impl<'a, T: From<Raw>> FilteredRequest<'a, T> {
    fn new(request: IncomingRequest, next: Next<'a>) -> Self {
        Self {
            request,
            next,
            result: PhantomData,
        }
    }

    /// The request.
    pub fn request(&self) -> &IncomingRequest {
        &self.request
    }

    /// Sends messages to the client, and sees the cancellation of the request.
    pub fn context(&self) -> RequestContext<'a> {
        self.next.context()
    }

    /// The task id in the params.
    pub fn task_id(&self) -> Option<String> {
        self.param("taskId")
    }

    /// The cursor in the params.
    pub fn cursor(&self) -> Option<String> {
        self.param("cursor")
    }

    /// The input responses in the params, by the key of their request.
    pub fn input_responses(&self) -> Map<String, Value> {
        match self.params().remove("inputResponses") {
            Some(Value::Object(responses)) => responses,
            _ => Map::new(),
        }
    }

    /// Replaces the task id.
    pub fn with_task_id(self, id: &str) -> Self {
        self.with_param("taskId", id.into())
    }

    /// Replaces the input responses.
    pub fn with_input_responses(self, responses: Map<String, Value>) -> Self {
        self.with_param("inputResponses", Value::Object(responses))
    }

    fn with_param(mut self, name: &str, value: Value) -> Self {
        let mut params = self.params();
        params.insert(name.to_owned(), value);
        self.request.params = Some(Raw::from(&Value::Object(params)));
        self
    }

    fn params(&self) -> Map<String, Value> {
        let params = self.request.params.as_ref();
        let params = params.and_then(|params| params.open().ok());
        params.unwrap_or_default()
    }

    /// Sends the request to the inner middleware and the server.
    pub async fn run(self) -> Result<T, RequestError> {
        match self.next.run(self.request).await {
            Reply::Result(result) => Ok(T::from(result)),
            Reply::Error(error) => Err(RequestError::Error(error)),
            Reply::Nothing => Err(RequestError::Cancelled),
        }
    }

    fn param(&self, name: &str) -> Option<String> {
        let params = self.request.params.as_ref()?;
        text(params, name)
    }
}

/// Runs the typed filter of `middleware` for a request.
pub(super) async fn run(
    middleware: &dyn Middleware,
    request: IncomingRequest,
    next: Next<'_>,
) -> Reply {
    match request.method.as_str() {
        tool::LIST => {
            let list = FilteredRequest::new(request, next);
            reply(middleware.list_tools(list).await.map(|list| list.0))
        }
        v1::method::GET => {
            let get = FilteredRequest::new(request, next);
            reply(middleware.get_task(get).await.map(|task| task.0))
        }
        v1::method::RESULT => {
            let result = FilteredRequest::new(request, next);
            reply(middleware.task_result(result).await)
        }
        v1::method::CANCEL => {
            let cancel = FilteredRequest::new(request, next);
            reply(middleware.cancel_task(cancel).await.map(|task| task.0))
        }
        v2::method::UPDATE => {
            let update = FilteredRequest::new(request, next);
            reply(middleware.update_task(update).await)
        }
        v1::method::LIST => {
            let list = FilteredRequest::new(request, next);
            reply(middleware.list_tasks(list).await.map(|list| list.0))
        }
        _ => next.run(request).await,
    }
}

fn reply(result: Result<Raw, RequestError>) -> Reply {
    match result {
        Ok(result) => Reply::Result(result),
        Err(RequestError::Error(error)) => Reply::Error(error),
        Err(RequestError::Cancelled) => Reply::Nothing,
    }
}

impl RequestError {
    /// The error −32602 with this text.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        codes::invalid_params(message.into()).into()
    }
}

impl From<ErrorObject> for RequestError {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error.to_raw())
    }
}

impl TaskInfo {
    /// Its id.
    pub fn id(&self) -> Option<String> {
        text(&self.0, "taskId")
    }

    /// Its status, such as `working`.
    pub fn status(&self) -> Option<String> {
        text(&self.0, "status")
    }

    /// Its status message.
    pub fn status_message(&self) -> Option<String> {
        text(&self.0, "statusMessage")
    }

    /// Replaces the status message.
    pub fn set_status_message(&mut self, message: &str) {
        self.set("statusMessage", message.into());
    }

    /// Sets a member of its JSON object.
    pub fn set(&mut self, name: &str, value: Value) {
        edit(&mut self.0, |task| {
            task.insert(name.to_owned(), value);
        });
    }

    /// Its JSON object.
    pub fn raw(&self) -> &Raw {
        &self.0
    }
}

impl TaskList {
    /// The tasks of this page.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        let tasks = object::find(self.0.borrow(), &["tasks"]).and_then(object::elements);
        let tasks = tasks.unwrap_or_default().into_iter();
        tasks.map(|task| TaskInfo(task.to_raw())).collect()
    }

    /// The cursor of the next page.
    pub fn next_cursor(&self) -> Option<String> {
        text(&self.0, "nextCursor")
    }

    /// Keeps only the tasks for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&TaskInfo) -> bool) {
        edit(&mut self.0, |page| {
            if let Some(Value::Array(tasks)) = page.get_mut("tasks") {
                tasks.retain(|task| keep(&TaskInfo(Raw::from(task))));
            }
        });
    }

    /// Its JSON object.
    pub fn raw(&self) -> &Raw {
        &self.0
    }
}

impl ToolList {
    /// Passes each tool to `change`, and keeps those for which it returns true.
    pub fn retain_mut(&mut self, mut change: impl FnMut(&mut ListedTool) -> bool) {
        edit(&mut self.0, |page| {
            let Some(Value::Array(tools)) = page.get_mut("tools") else {
                return;
            };
            tools.retain_mut(|tool| {
                let Value::Object(members) = tool else {
                    return true;
                };
                let mut listed = ListedTool(std::mem::take(members));
                let keep = change(&mut listed);
                *members = listed.0;
                keep
            });
        });
    }

    /// The cursor of the next page.
    pub fn next_cursor(&self) -> Option<String> {
        text(&self.0, "nextCursor")
    }

    /// Its JSON object.
    pub fn raw(&self) -> &Raw {
        &self.0
    }
}

impl ListedTool {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// A member of its JSON object.
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets a member of its JSON object.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Sets `execution.taskSupport` (S3-4). It changes the list only: the tool decides whether a
    /// call of it can be a task.
    pub fn set_task_support(&mut self, support: TaskSupport) {
        self.set("execution", json!({ "taskSupport": support.as_str() }));
    }
}

impl From<Raw> for TaskInfo {
    fn from(raw: Raw) -> Self {
        Self(raw)
    }
}

impl From<Raw> for TaskList {
    fn from(raw: Raw) -> Self {
        Self(raw)
    }
}

impl From<Raw> for ToolList {
    fn from(raw: Raw) -> Self {
        Self(raw)
    }
}

fn text(object: &Raw, name: &str) -> Option<String> {
    let found = object::find(object.borrow(), &[name]);
    found.and_then(RawRef::text).map(|text| text.into_owned())
}

/// Changes a JSON object. Other JSON stays as it is.
fn edit(raw: &mut Raw, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Ok(mut members) = raw.open::<Map<String, Value>>() {
        change(&mut members);
        *raw = Raw::from(&Value::Object(members));
    }
}
