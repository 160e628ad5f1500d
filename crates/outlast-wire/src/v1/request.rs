//! The `task` member that requests a task (V1-CREATE-1).

use std::borrow::Cow;

use crate::codes::invalid_params;
use crate::envelope::{ErrorObject, Id};
use crate::json::write::ObjectWriter;
use crate::meta;
use crate::neutral::MAX_SAFE_INTEGER;
use crate::object::{self, NotAnObject, pick};
use crate::peer::millis;
use crate::raw::{Raw, RawRef};

/// A request for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskRequest {
    /// The requested TTL in milliseconds from creation. Zero requests the shortest.
    pub ttl_ms: Option<u64>,
}

/// The params of a `tools/call` without the arguments, found in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    task: Option<RawRef<'a>>,
    meta: Option<RawRef<'a>>,
}

impl<'a> ToolCall<'a> {
    /// Reads the params. Returns `None` if they name no tool.
    pub fn read(params: RawRef<'a>) -> Option<Self> {
        let [name, task, meta] = pick(params, ["name", "task", meta::META]).ok()?;
        let name = name?.text()?;
        Some(Self { name, task, meta })
    }

    /// The request for a task, as [`TaskRequest::read`] returns it.
    pub fn task_request(&self) -> Result<Option<TaskRequest>, ErrorObject> {
        TaskRequest::of(self.task)
    }

    /// The token with which the caller requests progress (V1-PRG-1).
    pub fn progress_token(&self) -> Option<Id> {
        let token = object::find(self.meta?, &[meta::PROGRESS_TOKEN])?;
        Id::read(token).ok()
    }
}

impl TaskRequest {
    /// The member `task` of the params of a call.
    pub fn to_raw(self) -> Raw {
        let mut task = String::new();
        let mut fields = ObjectWriter::begin(&mut task);
        if let Some(ttl) = self.ttl_ms {
            fields.number("ttl", ttl.min(MAX_SAFE_INTEGER));
        }
        fields.end();
        RawRef::scanned(&task).to_raw()
    }

    /// Reads `params.task`: absent and null request no task, an object requests one, anything else
    /// is invalid.
    ///
    /// A null TTL counts as absent and a fraction is rounded up. A negative value or one that is
    /// not a number is invalid (A1-11).
    pub fn read(params: Option<RawRef<'_>>) -> Result<Option<Self>, ErrorObject> {
        let Some(params) = params else {
            return Ok(None);
        };
        let [task] = pick(params, ["task"]).map_err(|error| invalid_params(error.to_string()))?;
        Self::of(task)
    }

    fn of(task: Option<RawRef<'_>>) -> Result<Option<Self>, ErrorObject> {
        let Some(task) = task.filter(|task| !task.is_null()) else {
            return Ok(None);
        };
        let [ttl] = pick(task, ["ttl"]).map_err(|_| invalid_params("`task` must be an object"))?;
        let ttl_ms = match ttl.filter(|ttl| !ttl.is_null()) {
            None => None,
            Some(ttl) => Some(millis(ttl).ok_or_else(|| {
                invalid_params("`task.ttl` must be a number of milliseconds, not negative")
            })?),
        };
        Ok(Some(Self { ttl_ms }))
    }
}

/// Returns `params` with a request for a task.
pub fn augment(params: RawRef<'_>, task_request: TaskRequest) -> Result<Raw, NotAnObject> {
    object::set(params, &["task"], task_request.to_raw().borrow())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::INVALID_PARAMS;

    #[test]
    fn an_object_requests_a_task_and_null_does_not() {
        assert_eq!(TaskRequest::read(None), Ok(None));
        for (params, expected) in [
            ("{}", None),
            (r#"{"task":null}"#, None),
            (r#"{"task":{}}"#, Some(None)),
            (r#"{"task":{"ttl":null,"x":1}}"#, Some(None)),
            (r#"{"task":{"ttl":60000}}"#, Some(Some(60_000))),
            (r#"{"task":{"ttl":0}}"#, Some(Some(0))),
            (r#"{"task":{"ttl":0.2}}"#, Some(Some(1))),
            (r#"{"task":{"ttl":1e300}}"#, Some(Some(MAX_SAFE_INTEGER))),
        ] {
            let task_request = TaskRequest::read(Some(RawRef::parse(params).unwrap()));
            assert_eq!(
                task_request,
                Ok(expected.map(|ttl_ms| TaskRequest { ttl_ms })),
                "{params}"
            );
        }
    }

    #[test]
    fn one_pass_reads_the_same_as_single_lookups() {
        for params in [
            r#"{"name":"x","arguments":{"name":"y","task":{}}}"#,
            r#"{"task":{"ttl":7},"n\u0061me":"x","_meta":{"progressToken":"t"}}"#,
            r#"{"name":"x","task":true,"_meta":null}"#,
            r#"{"name":7}"#,
            "{}",
        ] {
            let params = RawRef::parse(params).unwrap();
            let call = ToolCall::read(params);
            let name = call.as_ref().map(|call| call.name.clone());
            assert_eq!(name, crate::tool::called(params), "{params:?}");
            let Some(call) = call else { continue };
            assert_eq!(
                call.task_request(),
                TaskRequest::read(Some(params)),
                "{params:?}"
            );
            let token = meta::progress_token(params);
            assert_eq!(call.progress_token(), token, "{params:?}");
        }
    }

    /// A1-11.
    #[test]
    fn an_invalid_ttl_is_refused() {
        for params in [
            r#"{"task":[]}"#,
            r#"{"task":true}"#,
            r#"{"task":{"ttl":-1}}"#,
            r#"{"task":{"ttl":"60"}}"#,
        ] {
            let refused = TaskRequest::read(Some(RawRef::parse(params).unwrap())).unwrap_err();
            assert_eq!(refused.code, INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn a_task_request_reads_back() {
        let params = RawRef::parse(r#"{"name":"x"}"#).unwrap();
        for task_request in [TaskRequest::default(), TaskRequest { ttl_ms: Some(7) }] {
            let with = augment(params, task_request).unwrap();
            assert_eq!(
                TaskRequest::read(Some(with.borrow())),
                Ok(Some(task_request))
            );
        }
    }
}
