//! What a tool asks of its callers, and when its calls become tasks.

use std::sync::Arc;

use outlast_engine::InputKind;
use outlast_wire::Raw;
use outlast_wire::headers::{self, HeaderParam};
use outlast_wire::v1::TaskSupport;
use serde_json::Value;

use super::Tool;
use crate::server::{PreparedCall, TaskPolicy};

impl Tool {
    /// The same tool, whose calls become tasks at this moment, where the server decides that. Without a word, a tool
    /// that must run as a task is one at once, and one that may is one after [`TaskPolicy::DEFAULT_GRACE`].
    pub fn deliver(mut self, delivery: TaskPolicy) -> Self {
        self.delivery = Some(delivery);
        self
    }

    /// The same tool, which is of no use to a caller that cannot answer such questions: it is refused before
    /// anything runs (V2-META-5).
    pub fn needs(mut self, kinds: impl IntoIterator<Item = InputKind>) -> Self {
        self.needs = kinds.into_iter().collect();
        self
    }

    /// A call of it, which `runner` runs.
    pub(crate) fn prepared(&self, runner: Arc<str>) -> PreparedCall {
        PreparedCall {
            runner,
            support: self.support,
            retry: self.hints.retry(),
            immediate: self.immediate.clone(),
            task_policy: self.delivery(),
            ttl: None,
            needs: self.needs,
            headers: self.headers.clone(),
            reservation: None,
            prestarts: false,
        }
    }

    fn delivery(&self) -> TaskPolicy {
        self.delivery.unwrap_or(match self.support {
            TaskSupport::Required => TaskPolicy::Always,
            TaskSupport::Forbidden | TaskSupport::Optional => TaskPolicy::default(),
        })
    }
}

/// The arguments of a schema that are repeated in headers (V2-PARAM-1).
pub(super) fn mirrored(tool: &str, schema: &Value) -> Arc<[HeaderParam]> {
    let schema = Raw::from(schema);
    match headers::annotations(schema.borrow()) {
        Ok(params) => params.into(),
        Err(error) => {
            // V2-PARAM-3: clients leave such a tool out.
            tracing::warn!(tool, %error, "a schema is of no use over HTTP");
            Arc::default()
        }
    }
}
