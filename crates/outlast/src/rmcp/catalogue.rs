//! What must be known of a handler's tools before they are called.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_engine::RetryClass;
use outlast_wire::object::Edit;
use outlast_wire::object::NotAnObject;
use outlast_wire::tool;
use outlast_wire::v1::{self, TaskSupport};
use outlast_wire::{Raw, RawRef, object};
use parking_lot::{Mutex, MutexGuard};

use crate::annotations;

/// The traits of a handler's tools.
#[derive(Default)]
pub(super) struct Catalogue {
    tools: Mutex<HashMap<String, HandlerTool>>,
    /// Whether the handler has announced a change of its tools.
    stale: AtomicBool,
}

/// The traits of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HandlerTool {
    pub(super) support: TaskSupport,
    pub(super) retry: RetryClass,
}

impl Catalogue {
    /// The traits of a tool, if it was listed.
    pub(super) fn get(&self, tool: &str) -> Option<HandlerTool> {
        self.tools().get(tool).copied()
    }

    /// Whether no tool was listed.
    pub(super) fn is_empty(&self) -> bool {
        self.tools().is_empty()
    }

    /// Whether any tool runs as a task.
    pub(super) fn any_task(&self) -> bool {
        let tools = self.tools();
        let mut all = tools.values();
        all.any(|known| known.support != TaskSupport::Forbidden)
    }

    /// Records a page of tools, and returns it with the task support of each.
    pub(super) fn record_page(
        &self,
        page: RawRef<'_>,
        configured: &BTreeMap<String, TaskSupport>,
    ) -> Result<Raw, NotAnObject> {
        let mut tools = self.tools();
        tool::edit_list(page, |tool| {
            // A tool without a name cannot be called.
            let Some(name) = tool::called(tool) else {
                return Edit::Keep;
            };
            let configured = configured.get(&*name).copied();
            let support = configured.unwrap_or_else(|| declared(tool));
            let known = HandlerTool {
                support,
                retry: annotations::retry_class(tool),
            };
            if tools.len() < MAX_TOOLS || tools.contains_key(&*name) {
                tools.insert(name.into_owned(), known);
            }
            match support {
                TaskSupport::Forbidden => Edit::Keep,
                _ => v1::set_task_support(tool, support).map_or(Edit::Keep, Edit::Replace),
            }
        })
    }

    /// Marks the traits as outdated.
    pub(super) fn expire(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// Whether the tools must be listed again. Returns true once for each change.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::Relaxed)
    }

    fn tools(&self) -> MutexGuard<'_, HashMap<String, HandlerTool>> {
        self.tools.lock()
    }
}

/// The task support in the tool's definition.
fn declared(tool: RawRef<'_>) -> TaskSupport {
    let word = object::find(tool, &["_meta", TASK_SUPPORT_KEY]).and_then(RawRef::text);
    match word.as_deref() {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        Some(_) => TaskSupport::Forbidden,
        None => v1::task_support(tool),
    }
}

/// The `_meta` key of a tool that runs as a task.
const TASK_SUPPORT_KEY: &str = "outlast/taskSupport";

/// The maximum of recorded tools.
const MAX_TOOLS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_opts_in_by_its_definition_or_by_configuration() {
        let catalogue = Catalogue::default();
        let page = r#"{"tools":[{"name":"a","_meta":{"outlast/taskSupport":"required"}},{"name":"b","annotations":{"idempotentHint":true}},{"name":"c"}]}"#;
        let configured = [("b".to_owned(), TaskSupport::Optional)].into();
        let recorded = catalogue
            .record_page(RawRef::parse(page).unwrap(), &configured)
            .unwrap();
        let text = recorded.as_str();
        assert!(text.contains(r#""execution":{"taskSupport":"required"}"#));
        assert!(text.contains(r#"{"name":"b","annotations":{"idempotentHint":true},"execution":{"taskSupport":"optional"}}"#));
        assert!(text.ends_with(r#"{"name":"c"}]}"#));
        assert_eq!(catalogue.get("a").unwrap().support, TaskSupport::Required);
        assert_eq!(catalogue.get("b").unwrap().retry, RetryClass::Rerun);
        assert_eq!(catalogue.get("c"), Some(HandlerTool::default()));
        assert_eq!(catalogue.get("never listed"), None);
        assert!(catalogue.any_task());
    }
}
