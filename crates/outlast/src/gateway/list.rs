//! Converts lists of an upstream for our clients: cursors are wrapped, and tools declare the task
//! support of the gateway.

use outlast_engine::Owner;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::Edit;
use outlast_wire::object::NotAnObject;
use outlast_wire::tool;
use outlast_wire::v1::{self, TaskSupport};
use outlast_wire::{Raw, RawRef, codes, object, params};

use super::settings::{Settings, TaskMode};

/// The upstream's cursor in a client's request.
pub(super) fn upstream_cursor(params: Option<&Raw>) -> Result<Option<Raw>, ErrorObject> {
    let Some(cursor) = params::cursor(params.map(Raw::borrow))? else {
        return Ok(None);
    };
    let theirs = cursor.strip_prefix(CURSOR_PREFIX);
    let theirs = theirs.ok_or_else(|| codes::invalid_params("invalid cursor"))?;
    let theirs = Raw::encode(theirs).map_err(|error| codes::internal(error.to_string()))?;
    Ok(Some(theirs))
}

/// Our cursor for the next page, if there is one. An empty string is a cursor, too (BR-LIST-10).
pub(super) fn our_cursor(page: RawRef<'_>) -> Option<Raw> {
    let next = object::find(page, &["nextCursor"]).and_then(RawRef::text)?;
    Raw::encode(&format!("{CURSOR_PREFIX}{next}")).ok()
}

/// The tools of a page that `owner` may use, each with the gateway's task support and, if required,
/// without header annotations. `None` if no tool changes.
pub(super) fn tools(
    page: RawRef<'_>,
    settings: &Settings,
    owner: &Owner,
    headers: HeaderAnnotations,
) -> Result<Option<Raw>, NotAnObject> {
    let marked = headers == HeaderAnnotations::Removed && page.as_str().contains(HEADER_ANNOTATION);
    let allows_all = settings.allows_all(owner);
    tool::edited_tools(page, |tool| {
        let is_allowed =
            |tool| tool::called(tool).is_some_and(|name| settings.allows(owner, &name));
        if !allows_all && !is_allowed(tool) {
            return Edit::Drop;
        }
        let bare = marked.then(|| without_headers(tool));
        let tool = bare.as_ref().map_or(tool, Raw::borrow);
        let shown = tool::called(tool).and_then(|name| {
            let shown = match support(settings.task(&name)) {
                TaskSupport::Forbidden => v1::strip_execution(tool),
                other => v1::set_task_support(tool, other),
            };
            shown.ok()
        });
        shown.or(bare).map_or(Edit::Keep, Edit::Replace)
    })
}

/// What happens to annotations of arguments that are repeated in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderAnnotations {
    /// They are kept.
    Kept,
    /// They are removed, because they have a meaning for a modern client that a legacy server did
    /// not intend (BR-LIST-7).
    Removed,
}

/// A tool without header annotations.
fn without_headers(tool: RawRef<'_>) -> Raw {
    let schema = object::find(tool, &["inputSchema", "properties"]);
    let fields = schema.and_then(|schema| object::members(schema).ok());
    let fields = fields.unwrap_or_default().into_iter();
    let marked = fields.filter(|field| object::find(field.value, &[HEADER_ANNOTATION]).is_some());
    marked.fold(tool.to_raw(), |tool, field| {
        let path = ["inputSchema", "properties", &field.name, HEADER_ANNOTATION];
        object::remove(tool.borrow(), &path).unwrap_or(tool)
    })
}

/// The task support of a tool: the gateway can run every tool with or without a task (BR-LIST-1,
/// BR-LIST-3, BR-LIST-4).
pub(super) fn support(mode: TaskMode) -> TaskSupport {
    match mode {
        TaskMode::Auto | TaskMode::Always => TaskSupport::Optional,
        TaskMode::Never => TaskSupport::Forbidden,
    }
}

/// Whether the result of this method is a page of a list.
pub(super) fn is_list(method: &str) -> bool {
    method.ends_with("/list")
}

/// The annotation of an argument that is repeated in a header.
const HEADER_ANNOTATION: &str = "x-mcp-header";

/// The prefix of our cursors.
const CURSOR_PREFIX: &str = "o.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ToolSettings;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.into()).unwrap()
    }

    #[test]
    fn cursors_are_wrapped_and_not_parsed() {
        // BR-LIST-10.
        let page = raw(r#"{"prompts":[],"nextCursor":""}"#);
        assert_eq!(our_cursor(page.borrow()), Some(raw(r#""o.""#)));
        assert_eq!(our_cursor(raw(r#"{"prompts":[ ]}"#).borrow()), None);
        let params = raw(r#"{"cursor":"o.a\"b","_meta":{"k":1}}"#);
        let theirs = upstream_cursor(Some(&params)).unwrap();
        assert_eq!(theirs, Some(raw(r#""a\"b""#)));
        assert_eq!(upstream_cursor(None), Ok(None));
        let foreign = upstream_cursor(Some(&raw(r#"{"cursor":"a"}"#)));
        assert_eq!(foreign.unwrap_err().code, -32602);
    }

    #[test]
    fn only_header_annotations_are_removed() {
        // BR-LIST-7.
        let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"q":{"type":"string","x-mcp-header":"Q"},"r":{ "type" : "string"}}}}]}"#;
        let page = raw(page);
        let removed = tools(
            page.borrow(),
            &never("a"),
            &Owner::Local,
            HeaderAnnotations::Removed,
        );
        assert_eq!(
            removed.unwrap().unwrap().as_str(),
            r#"[{"name":"a","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"r":{ "type" : "string"}}}}]"#
        );
        let kept = tools(
            page.borrow(),
            &never("a"),
            &Owner::Local,
            HeaderAnnotations::Kept,
        );
        let array = object::find(page.borrow(), &["tools"]).unwrap().to_raw();
        assert_eq!(kept.unwrap().unwrap_or(array.clone()), array);
    }

    #[test]
    fn tools_have_optional_task_support_unless_never_a_task() {
        // BR-LIST-1, BR-LIST-3, BR-LIST-4, BD-13.
        let page = r#"{"tools":[{"name":"must","execution":{"taskSupport":"required","x":1}},{"name":"never","execution":{"taskSupport":"optional"}},{"name":"plain", "y" : 2}]}"#;
        let shown = tools(
            raw(page).borrow(),
            &never("never"),
            &Owner::Local,
            HeaderAnnotations::Kept,
        );
        assert_eq!(
            shown.unwrap().unwrap().as_str(),
            r#"[{"name":"must","execution":{"taskSupport":"optional","x":1}},{"name":"never"},{"name":"plain", "y" : 2,"execution":{"taskSupport":"optional"}}]"#
        );
    }

    /// Settings by which `tool` never runs as a task.
    fn never(tool: &str) -> Settings {
        let mut settings = Settings::default();
        let never = ToolSettings {
            task: Some(TaskMode::Never),
            ..ToolSettings::default()
        };
        settings.tools.insert(tool.into(), never);
        settings
    }
}
