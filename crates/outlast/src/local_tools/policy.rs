//! When the calls of a tool become tasks, and which capabilities they need.

use std::sync::Arc;

use outlast_engine::InputKind;
use outlast_wire::Raw;
use outlast_wire::headers::{self, HeaderParam};
use outlast_wire::v1::TaskSupport;
use serde_json::Value;

use super::Tool;
use crate::server::{PreparedCall, TaskPolicy};

impl Tool {
    /// Sets when calls become tasks, if the server decides that. By default, a tool that must run
    /// as a task becomes one at once, and a tool that can becomes one after
    /// [`TaskPolicy::DEFAULT_GRACE`].
    pub fn task_policy(mut self, task_policy: TaskPolicy) -> Self {
        self.task_policy = Some(task_policy);
        self
    }

    /// Sets the input kinds that the tool requires. A call from a client that does not support them
    /// is rejected (V2-META-5).
    pub fn needs(mut self, kinds: impl IntoIterator<Item = InputKind>) -> Self {
        self.needs = kinds.into_iter().collect();
        self
    }

    /// A call of this tool, executed by `runner`.
    pub(crate) fn prepared(&self, runner: Arc<str>) -> PreparedCall {
        PreparedCall {
            runner,
            support: self.support,
            retry: self.hints.retry(),
            immediate: self.immediate.clone(),
            task_policy: self.effective_task_policy(),
            ttl: None,
            needs: self.needs,
            headers: self.headers.clone(),
            reservation: None,
            prestarts: false,
        }
    }

    fn effective_task_policy(&self) -> TaskPolicy {
        self.task_policy.unwrap_or(match self.support {
            TaskSupport::Required => TaskPolicy::Always,
            TaskSupport::Forbidden | TaskSupport::Optional => TaskPolicy::default(),
        })
    }
}

/// The arguments of a schema that are repeated in headers (V2-PARAM-1).
pub(super) fn header_params(tool: &str, schema: &Value) -> Arc<[HeaderParam]> {
    let schema = Raw::from(schema);
    match headers::annotations(schema.borrow()) {
        Ok(params) => params.into(),
        Err(error) => {
            // V2-PARAM-3: clients ignore such a tool.
            tracing::warn!(tool, %error, "the input schema has invalid header annotations");
            Arc::default()
        }
    }
}
