//! The tools of an upstream, as far as they must be known before one is called.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::RetryClass;
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use parking_lot::Mutex;

use crate::client::{ToolInfo, header_params};
use crate::hints;

/// What is known of the tools of an upstream: the same as long as its list is.
#[derive(Default)]
pub(super) struct Catalogue(Mutex<Option<Arc<Known>>>);

struct Known {
    list: Arc<[ToolInfo]>,
    tools: HashMap<Arc<str>, Traits>,
}

/// What is known of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits {
    pub(super) retry: RetryClass,
    /// Whether the upstream runs it as a task, where it says so.
    pub(super) support: TaskSupport,
    /// Arguments that are repeated in headers, where the upstream is of the era that has them.
    pub(super) headers: Arc<[HeaderParam]>,
}

impl Catalogue {
    /// What `list` says of a tool, if it is listed.
    pub(super) fn traits(&self, list: &Arc<[ToolInfo]>, tool: &str) -> Option<Traits> {
        let known = {
            let mut known = self.0.lock();
            match known
                .as_ref()
                .filter(|known| Arc::ptr_eq(&known.list, list))
            {
                Some(known) => known.clone(),
                None => known.insert(Arc::new(Known::of(list))).clone(),
            }
        };
        known.tools.get(tool).cloned()
    }
}

impl Known {
    fn of(list: &Arc<[ToolInfo]>) -> Self {
        let traits = |tool: &ToolInfo| Traits {
            retry: hints::retry(tool.raw.borrow()),
            support: tool.task_support,
            headers: header_params(tool).unwrap_or_default().into(),
        };
        Self {
            list: list.clone(),
            tools: list
                .iter()
                .map(|tool| (tool.name.clone(), traits(tool)))
                .collect(),
        }
    }
}
