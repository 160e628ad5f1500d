//! What must be known of a tool of an upstream before it is called.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::RetryClass;
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use parking_lot::Mutex;

use crate::annotations;
use crate::client::{ToolInfo, header_params};

/// The traits of the tools of an upstream, computed once for each list.
#[derive(Default)]
pub(super) struct Catalogue(Mutex<Option<Arc<ToolIndex>>>);

struct ToolIndex {
    list: Arc<[ToolInfo]>,
    tools: HashMap<Arc<str>, ToolTraits>,
}

/// What the list says about one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToolTraits {
    pub(super) retry: RetryClass,
    /// Whether the upstream can run it as a task.
    pub(super) support: TaskSupport,
    /// Arguments that are repeated in headers (modern era).
    pub(super) headers: Arc<[HeaderParam]>,
}

impl Catalogue {
    /// The traits of a tool, if it is in `list`.
    pub(super) fn traits(&self, list: &Arc<[ToolInfo]>, tool: &str) -> Option<ToolTraits> {
        let known = {
            let mut known = self.0.lock();
            match known
                .as_ref()
                .filter(|known| Arc::ptr_eq(&known.list, list))
            {
                Some(known) => known.clone(),
                None => known.insert(Arc::new(ToolIndex::of(list))).clone(),
            }
        };
        known.tools.get(tool).cloned()
    }
}

impl ToolIndex {
    fn of(list: &Arc<[ToolInfo]>) -> Self {
        let traits = |tool: &ToolInfo| ToolTraits {
            retry: annotations::retry_class(tool.raw.borrow()),
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
