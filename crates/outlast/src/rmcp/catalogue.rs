//! The tools of a handler, as far as a front must know them before it calls one.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_engine::RetryClass;
use outlast_wire::object::Edit;
use outlast_wire::object::NotAnObject;
use outlast_wire::tool;
use outlast_wire::v1::{self, TaskSupport};
use outlast_wire::{Raw, RawRef, object};
use parking_lot::{Mutex, MutexGuard};

use crate::hints;

/// What is known of the tools of a handler.
#[derive(Default)]
pub(super) struct Catalogue {
    tools: Mutex<HashMap<String, Known>>,
    /// Whether the handler said that its tools are others now.
    stale: AtomicBool,
}

/// What is known of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) support: TaskSupport,
    pub(super) retry: RetryClass,
}

impl Catalogue {
    /// What is known of a tool, if it was ever listed.
    pub(super) fn get(&self, tool: &str) -> Option<Known> {
        self.tools().get(tool).copied()
    }

    /// Whether no tool was ever listed.
    pub(super) fn is_empty(&self) -> bool {
        self.tools().is_empty()
    }

    /// Whether any tool runs as a task.
    pub(super) fn any_task(&self) -> bool {
        let tools = self.tools();
        let mut all = tools.values();
        all.any(|known| known.support != TaskSupport::Forbidden)
    }

    /// Takes note of a page of tools, and returns it with the task support of each.
    pub(super) fn note(
        &self,
        page: RawRef<'_>,
        told: &BTreeMap<String, TaskSupport>,
    ) -> Result<Raw, NotAnObject> {
        let mut tools = self.tools();
        tool::edit_list(page, |tool| {
            // A tool is called by its name, and a name is where `called` looks.
            let Some(name) = tool::called(tool) else {
                return Edit::Keep;
            };
            let told = told.get(&*name).copied();
            let support = told.unwrap_or_else(|| declared(tool));
            let known = Known {
                support,
                retry: hints::retry(tool),
            };
            if tools.len() < MOST || tools.contains_key(&*name) {
                tools.insert(name.into_owned(), known);
            }
            match support {
                TaskSupport::Forbidden => Edit::Keep,
                _ => v1::set_task_support(tool, support).map_or(Edit::Keep, Edit::Replace),
            }
        })
    }

    /// What is known is not true any more.
    pub(super) fn expire(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// Whether it has to be listed again. True once for each time.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::Relaxed)
    }

    fn tools(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.tools.lock()
    }
}

/// What a tool's own definition says.
fn declared(tool: RawRef<'_>) -> TaskSupport {
    let word = object::find(tool, &["_meta", SUPPORT]).and_then(RawRef::text);
    match word.as_deref() {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        Some(_) => TaskSupport::Forbidden,
        None => v1::task_support(tool),
    }
}

/// The `_meta` key of a tool that runs as a task.
const SUPPORT: &str = "outlast/taskSupport";

/// How many tools are remembered.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_opts_in_by_its_definition_or_by_what_is_told_of_it() {
        let catalogue = Catalogue::default();
        let page = r#"{"tools":[{"name":"a","_meta":{"outlast/taskSupport":"required"}},{"name":"b","annotations":{"idempotentHint":true}},{"name":"c"}]}"#;
        let told = [("b".to_owned(), TaskSupport::Optional)].into();
        let noted = catalogue.note(RawRef::parse(page).unwrap(), &told).unwrap();
        let text = noted.as_str();
        assert!(text.contains(r#""execution":{"taskSupport":"required"}"#));
        assert!(text.contains(r#"{"name":"b","annotations":{"idempotentHint":true},"execution":{"taskSupport":"optional"}}"#));
        assert!(text.ends_with(r#"{"name":"c"}]}"#));
        assert_eq!(catalogue.get("a").unwrap().support, TaskSupport::Required);
        assert_eq!(catalogue.get("b").unwrap().retry, RetryClass::Rerun);
        assert_eq!(catalogue.get("c"), Some(Known::default()));
        assert_eq!(catalogue.get("never listed"), None);
        assert!(catalogue.any_task());
    }
}
