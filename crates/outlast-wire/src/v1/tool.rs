//! `execution.taskSupport`: whether a tool may, must or cannot run as a task (V1-TOOL-7).

use std::fmt;

use crate::json::write::quoted;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// Whether a tool runs as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// If requested.
    Optional,
    /// Always.
    Required,
}

impl TaskSupport {
    /// The word of the specification.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

impl fmt::Display for TaskSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads the task support of an unparsed tool. Absent or unknown means forbidden (V1-TOOL-7,
/// V1-TOOL-10).
pub fn task_support(tool: RawRef<'_>) -> TaskSupport {
    let word = object::find(tool, &["execution", "taskSupport"]).and_then(RawRef::text);
    match word.as_deref() {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        _ => TaskSupport::Forbidden,
    }
}

/// Returns the tool with this support (V1-TOOL-8).
pub fn set_task_support(tool: RawRef<'_>, support: TaskSupport) -> Result<Raw, NotAnObject> {
    let word = quoted(support.as_str());
    object::set(tool, &["execution", "taskSupport"], RawRef::scanned(&word))
}

/// Returns the tool without `execution`, which V2 does not have (V2-TLS-2).
pub fn strip_execution(tool: RawRef<'_>) -> Result<Raw, NotAnObject> {
    object::remove(tool, &["execution"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_absent_mean_forbidden() {
        for (tool, expected) in [
            (
                r#"{"execution":{"taskSupport":"optional"}}"#,
                TaskSupport::Optional,
            ),
            (
                r#"{"execution":{"taskSupport":"required"}}"#,
                TaskSupport::Required,
            ),
            (
                r#"{"execution":{"taskSupport":"later"}}"#,
                TaskSupport::Forbidden,
            ),
            (
                r#"{"execution":{"taskSupport":true}}"#,
                TaskSupport::Forbidden,
            ),
            (r#"{"execution":null}"#, TaskSupport::Forbidden),
            (
                r#"{"annotations":{"taskSupport":"required"}}"#,
                TaskSupport::Forbidden,
            ),
        ] {
            assert_eq!(
                task_support(RawRef::parse(tool).unwrap()),
                expected,
                "{tool}"
            );
        }
    }

    #[test]
    fn support_is_added_to_existing_members() {
        let tool = RawRef::parse(r#"{"name":"x","execution":{"y":1e0}}"#).unwrap();
        let with = set_task_support(tool, TaskSupport::Optional).unwrap();
        assert_eq!(
            with.as_str(),
            r#"{"name":"x","execution":{"y":1e0,"taskSupport":"optional"}}"#
        );
        assert_eq!(
            strip_execution(with.borrow()).unwrap().as_str(),
            r#"{"name":"x"}"#
        );
    }
}
