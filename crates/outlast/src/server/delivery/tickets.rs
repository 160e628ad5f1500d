//! Tickets: results that name a task, for clients without task support, and the tools by which the
//! model polls it.

use std::time::Duration;

use outlast_engine::engine::{EndedTask, EngineError};
use outlast_engine::store::Snapshot;
use outlast_engine::{Ending, Origin, Scope, TaskId};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::Edit;
use outlast_wire::object::NotAnObject;
use outlast_wire::tool;
use outlast_wire::{Raw, RawRef, Timestamp, codes, object, v1};
use serde_json::{Value, json};

use crate::engine_errors::to_wire;
use crate::server::{McpServer, Reply};

/// The tools by which a ticket is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum TicketTool {
    Wait,
    Status,
    Cancel,
}

impl TicketTool {
    /// The ticket tool of that name.
    pub(in crate::server) fn named(tool: &str) -> Option<Self> {
        match tool {
            WAIT => Some(Self::Wait),
            STATUS => Some(Self::Status),
            CANCEL => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// The arguments of a ticket tool.
pub(in crate::server) struct TicketToolArguments {
    pub(in crate::server) task: Option<TaskId>,
    pub(in crate::server) limit: Option<Duration>,
}

impl TicketToolArguments {
    pub(in crate::server) fn read(params: RawRef<'_>) -> Result<Self, ErrorObject> {
        let member =
            |name| object::find(params, &["arguments", name]).filter(|found| !found.is_null());
        let task = member("taskId").map(|named| {
            let id = named.text().and_then(|text| text.trim().parse().ok());
            id.ok_or_else(codes::task_not_found)
        });
        let limit = member("seconds").map(|seconds| {
            let is_valid = |seconds: &f64| (0.0..=86_400.0).contains(seconds);
            let seconds = seconds.number().filter(is_valid);
            let seconds = seconds
                .ok_or_else(|| codes::invalid_params("`seconds` must be a number from 0 to 86400"));
            seconds.map(Duration::from_secs_f64)
        });
        Ok(Self {
            task: task.transpose()?,
            limit: limit.transpose()?,
        })
    }

    /// The task; an error if the arguments name none.
    pub(in crate::server) fn required_task(&self) -> Result<TaskId, ErrorObject> {
        self.task
            .ok_or_else(|| codes::invalid_params("`taskId` must name a task"))
    }
}

impl McpServer {
    /// The result that names a running task.
    pub(in crate::server) async fn ticket(&self, scope: &Scope, task: TaskId) -> Reply {
        match self.engine.get(scope, task).await {
            Ok(found) => {
                let description = self.describe_task(scope, &found).await;
                Reply::Result(ticket(&found, &description, self.engine.now()))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// The status of one task, or of all tasks of an owner at this endpoint.
    pub(in crate::server) async fn task_status(
        &self,
        scope: &Scope,
        task: Option<TaskId>,
    ) -> Reply {
        let tasks = match (task, scope) {
            (Some(task), _) => match self.engine.get(scope, task).await {
                Ok(found) => vec![found],
                Err(error) => return Reply::from(to_wire(&error)),
            },
            (None, Scope::OwnedBy(owner)) => match self.page(owner, None, MAX_LISTED_TASKS).await {
                Ok(page) => page.tasks,
                Err(error) => return Reply::from(to_wire(&error)),
            },
            // An anonymous caller has no list of tasks.
            (None, Scope::AnyTask) => {
                return Reply::from(codes::invalid_params("`taskId` must name a task"));
            }
        };
        let now = self.engine.now();
        let mut lines = Vec::with_capacity(tasks.len());
        for task in &tasks {
            lines.push(self.describe_task(scope, task).await);
        }
        let text = if lines.is_empty() {
            "There are no tasks.".to_owned()
        } else {
            lines.join("\n")
        };
        let tasks: Vec<_> = tasks.iter().map(|task| task_json(task, now)).collect();
        Reply::Result(result(&text, json!({ "tasks": tasks })))
    }

    /// One sentence about a task. It names the tool and its arguments, so that a model can tell its
    /// tasks apart.
    async fn describe_task(&self, scope: &Scope, task: &Snapshot) -> String {
        // A listed task that has ended has no origin, so the whole record is read.
        let origin = self.engine.load(scope, task.id()).await;
        let call = origin.ok().and_then(|task| call_summary(&task.origin));
        let call = call.map(|call| format!(" ({call})")).unwrap_or_default();
        let message = task.message().map(|message| format!(": {message}"));
        format!(
            "Task {}{call} is {}{}.",
            task.id(),
            v1::status(task.phase()).as_str(),
            message.unwrap_or_default()
        )
    }

    /// Requests the cancellation of a task.
    pub(in crate::server) async fn cancel_by_ticket(&self, scope: &Scope, task: TaskId) -> Reply {
        match self.engine.request_cancel(scope, task).await {
            Ok(()) => {
                let text = format!(
                    "Cancellation of task {task} is requested. Call {STATUS} to see how it ended."
                );
                Reply::Result(result(&text, json!({ "taskId": task.to_string() })))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }
}

/// The reply that the call itself would have had.
pub(in crate::server) fn outcome_reply(
    task: TaskId,
    settled: Result<EndedTask, EngineError>,
) -> Reply {
    let settled = match settled {
        Ok(settled) => settled,
        Err(error) => return Reply::from(to_wire(&error)),
    };
    match (settled.summary.ending, settled.body) {
        (Ending::Result | Ending::ToolError, Some(body)) => Reply::Result(body),
        (Ending::Error(_), Some(error)) => Reply::Error(error),
        (Ending::Cancelled, _) => Reply::from(codes::task_cancelled(task.text().as_str())),
        (_, None) => Reply::from(to_wire(&EngineError::Expired)),
    }
}

/// A page of tools for clients that get tickets: with the ticket tools on the last page, and
/// without `outputSchema`, which a ticket would violate.
pub(in crate::server) fn add_ticket_tools(page: RawRef<'_>) -> Result<Raw, NotAnObject> {
    let page = tool::edit_list(page, |tool| match object::find(tool, &["outputSchema"]) {
        Some(_) => object::remove(tool, &["outputSchema"]).map_or(Edit::Keep, Edit::Replace),
        None => Edit::Keep,
    })?;
    if object::find(page.borrow(), &["nextCursor"]).is_some_and(|next| !next.is_null()) {
        return Ok(page);
    }
    let tools = object::find(page.borrow(), &["tools"]).and_then(object::elements);
    let tools = tools.unwrap_or_default().into_iter();
    let added = ticket_tools().map(|tool| Raw::encode(&tool).expect("a literal is JSON"));
    let all = tools.map(|tool| tool.as_str().to_owned());
    let all: Vec<_> = all
        .chain(added.iter().map(|tool| tool.as_str().to_owned()))
        .collect();
    match Raw::parse(format!("[{}]", all.join(","))) {
        Ok(all) => object::set(page.borrow(), &["tools"], all.borrow()),
        Err(_) => Ok(page),
    }
}

fn ticket_tools() -> [Value; 3] {
    let id = json!({ "type": "string", "description": "The task id in the ticket." });
    let only_id =
        json!({ "type": "object", "properties": { "taskId": id }, "required": ["taskId"] });
    [
        json!({
            "name": WAIT,
            "title": "Wait for a task",
            "description": "Waits for a task that an earlier call left running, and returns the result of that call. If the task still runs after the wait, the reply says so: then call this tool again.",
            "inputSchema": {
                "type": "object",
                "properties": { "taskId": id, "seconds": { "type": "number", "description": "The maximum time to wait." } },
                "required": ["taskId"],
            },
            "annotations": { "readOnlyHint": true },
        }),
        json!({
            "name": STATUS,
            "title": "Task status",
            "description": "Returns the status of a task; without `taskId`, the status of all your tasks.",
            "inputSchema": { "type": "object", "properties": { "taskId": id } },
            "annotations": { "readOnlyHint": true },
        }),
        json!({
            "name": CANCEL,
            "title": "Cancel a task",
            "description": "Requests the cancellation of a task.",
            "inputSchema": only_id,
            "annotations": { "idempotentHint": true },
        }),
    ]
}

fn ticket(task: &Snapshot, description: &str, now: Timestamp) -> Raw {
    let id = task.id();
    let text = format!(
        "{description} The call continues and its result is kept. Call {WAIT} with {{\"taskId\":\"{id}\"}} to wait for it; do not repeat the call."
    );
    result(&text, json!({ "ticket": task_json(task, now) }))
}

fn result(text: &str, structured: Value) -> Raw {
    let result = json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": structured,
    });
    Raw::encode(&result).expect("a JSON value is JSON")
}

/// The tool and the beginning of its arguments.
fn call_summary(origin: &Origin) -> Option<String> {
    let tool = origin.tool.as_deref()?;
    let params = origin.params.as_ref();
    let arguments = params.and_then(|params| object::find(params.borrow(), &["arguments"]));
    let Some(arguments) = arguments.filter(|arguments| !arguments.is_null()) else {
        return Some(tool.to_owned());
    };
    let text = arguments.as_str();
    match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => Some(format!("{tool} {}…", &text[..end])),
        None => Some(format!("{tool} {text}")),
    }
}

fn task_json(task: &Snapshot, now: Timestamp) -> Value {
    let text = task.id().text();
    let view = v1::task(&task.view(&text, now));
    view.open().unwrap_or_default()
}

const WAIT: &str = "task_wait";
const STATUS: &str = "task_status";
pub(in crate::server) const CANCEL: &str = "task_cancel";

/// How many tasks `task_status` lists.
const MAX_LISTED_TASKS: usize = 20;

/// How many characters of the arguments are shown for one task.
const MAX_ARGUMENT_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_tools_are_on_the_last_page_without_output_schemas() {
        let more = r#"{"tools":[{"name":"a", "x" : 1}],"nextCursor":"n"}"#;
        let raw = |text: &'static str| RawRef::parse(text).unwrap();
        assert_eq!(add_ticket_tools(raw(more)).unwrap().as_str(), more);
        let last = add_ticket_tools(raw(r#"{"tools":[{"name":"a","outputSchema":{}}]}"#)).unwrap();
        assert!(
            last.as_str().starts_with(r#"{"tools":[{"name":"a"},{"#),
            "{}",
            last.as_str()
        );
        for name in [WAIT, STATUS, CANCEL] {
            assert!(last.as_str().contains(name));
            assert!(TicketTool::named(name).is_some());
        }
    }
}
