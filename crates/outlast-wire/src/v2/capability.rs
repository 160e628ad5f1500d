//! The declaration of the tasks extension: per request by clients, in discovery by servers.

use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// The identifier of the tasks extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Whether the capabilities of either side declare the extension: the value of its key in
/// `extensions` is an object. Null, `true` and the V1 member `tasks` (V2-CAP-14) do not declare it.
pub fn declares_tasks(capabilities: RawRef<'_>) -> bool {
    object::find(capabilities, &["extensions", EXTENSION]).is_some_and(RawRef::is_object)
}

/// Returns the capabilities with the extension declared (V2-CAP-1, V2-CAP-2).
pub fn declare_tasks(capabilities: RawRef<'_>) -> Result<Raw, NotAnObject> {
    object::set(
        capabilities,
        &["extensions", EXTENSION],
        RawRef::EMPTY_OBJECT,
    )
}

/// Returns the capabilities without the V1 declaration, which is not allowed here (V2-CAP-15).
pub fn strip_legacy_tasks(capabilities: RawRef<'_>) -> Result<Raw, NotAnObject> {
    object::remove(capabilities, &["tasks"])
}

/// The capability that a request must declare to get a task, as the data of -32021 (V2-CAP-9).
pub fn required_capability() -> Raw {
    Raw::written(|out| {
        out.push_str("{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_declares() {
        let declares = |text: &str| declares_tasks(RawRef::parse(text).unwrap());
        assert!(declares(
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        ));
        assert!(declares(
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{"x":1}}}"#
        ));
        assert!(!declares(
            r#"{"extensions":{"io.modelcontextprotocol/tasks":true}}"#
        ));
        assert!(!declares(
            r#"{"extensions":{"io.modelcontextprotocol/tasks":null}}"#
        ));
        assert!(!declares(r#"{"tasks":{"requests":{}}}"#));
        assert!(declares_tasks(required_capability().borrow()));
        let others = RawRef::parse(r#"{"tools":{},"extensions":{"a/b":{"c":1}}}"#).unwrap();
        let declared = declare_tasks(others).unwrap();
        assert_eq!(
            declared.as_str(),
            r#"{"tools":{},"extensions":{"a/b":{"c":1},"io.modelcontextprotocol/tasks":{}}}"#
        );
    }
}
