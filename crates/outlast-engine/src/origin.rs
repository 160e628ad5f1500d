//! The request that a task runs, in neutral form, and which input requests its caller can answer.

use std::sync::Arc;

use outlast_wire::Raw;
use serde::{Deserialize, Serialize};

use crate::input::InputKinds;

/// The request that a task runs. Never changes.
///
/// It is exhaustive on purpose: a store writes every field, so that a new field must not be missed
/// there. [`Origin::new`] makes one without the optional fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The method, such as `tools/call`.
    pub method: Arc<str>,
    /// The tool, where the method has one.
    pub tool: Option<Arc<str>>,
    /// The parameters, not parsed.
    pub params: Option<Raw>,
    /// The name of its runner. It has the same meaning after a restart.
    pub runner: Arc<str>,
    /// The token for progress notifications to the caller.
    pub progress_token: Option<Raw>,
    /// Whether it may run again after its executor was lost.
    pub retry: RetryClass,
    /// The input requests that the caller can answer.
    pub accepts: InputKinds,
}

/// Whether a call may run again if it is unknown how far the last attempt came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// Never: the tool may have had an effect.
    #[default]
    Never,
    /// Yes, a bounded number of times: the tool declares that it only reads or is idempotent.
    Rerun,
}

impl Origin {
    /// A request of `method` without a tool, params and a progress token, which is never run again.
    pub fn new(
        method: impl Into<Arc<str>>,
        runner: impl Into<Arc<str>>,
        accepts: InputKinds,
    ) -> Self {
        Self {
            method: method.into(),
            tool: None,
            params: None,
            runner: runner.into(),
            progress_token: None,
            retry: RetryClass::Never,
            accepts,
        }
    }

    /// The size of the payloads in bytes.
    pub fn size(&self) -> usize {
        let raw = |raw: &Option<Raw>| raw.as_ref().map_or(0, Raw::size);
        raw(&self.params) + raw(&self.progress_token)
    }

    /// Whether `other` is the same request, down to the bytes of its parameters.
    pub fn same_request(&self, other: &Self) -> bool {
        self.method == other.method
            && self.tool == other.tool
            && self.params == other.params
            && self.runner == other.runner
    }
}
