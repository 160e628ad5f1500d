//! Where a task comes from: the request that made it, in neutral form, and what its caller can answer.

use std::sync::Arc;

use outlast_wire::Raw;
use serde::{Deserialize, Serialize};

use crate::input::Accepts;

/// The request a task runs. Never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The method, such as `tools/call`.
    pub method: Arc<str>,
    /// The tool, where the method has one.
    pub tool: Option<Arc<str>>,
    /// The parameters, unopened.
    pub params: Option<Raw>,
    /// Which runner runs it: a name that means the same after a restart.
    pub runner: Arc<str>,
    /// The token under which the caller wants progress.
    pub progress_token: Option<Raw>,
    /// Whether it may run again after its executor died.
    pub retry: Retry,
    /// What the caller can be asked.
    pub accepts: Accepts,
}

/// Whether a call may run a second time when nobody knows how far the first came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Never: the tool may have done something already.
    #[default]
    Never,
    /// Yes, a bounded number of times: the tool says it only reads, or that repeating it is harmless.
    Rerun,
}

impl Origin {
    /// A request of `method` without a tool, params and a progress token, which is never run again.
    pub fn new(method: impl Into<Arc<str>>, runner: impl Into<Arc<str>>, accepts: Accepts) -> Self {
        Self {
            method: method.into(),
            tool: None,
            params: None,
            runner: runner.into(),
            progress_token: None,
            retry: Retry::Never,
            accepts,
        }
    }

    /// How many bytes of payload the origin carries.
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
