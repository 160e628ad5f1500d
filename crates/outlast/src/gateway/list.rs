//! Lists of an upstream as our clients see them: cursors that are ours, tools that say how the gateway runs them.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::Edit;
use outlast_wire::object::NotAnObject;
use outlast_wire::tool;
use outlast_wire::v1::{self, TaskSupport};
use outlast_wire::{Raw, RawRef, codes, object, params};

use super::settings::{Settings, TaskMode};

/// Params of a list with the upstream's cursor in the place of ours.
pub(super) fn for_upstream(asked: &Raw) -> Result<Raw, ErrorObject> {
    let Some(cursor) = params::cursor(Some(asked.borrow()))? else {
        return Ok(asked.clone());
    };
    let theirs = cursor.strip_prefix(MARK);
    let theirs = theirs.ok_or_else(|| codes::invalid_params("invalid cursor"))?;
    let theirs = Raw::encode(theirs).map_err(|error| codes::internal(error.to_string()))?;
    object::set(asked.borrow(), &["cursor"], theirs.borrow())
        .map_err(|_| codes::invalid_params("params must be an object"))
}

/// A page with our cursor in the place of the upstream's: one that is empty is a cursor, too (BR-LIST-10).
pub(super) fn for_client(page: Raw) -> Result<Raw, NotAnObject> {
    let next = object::find(page.borrow(), &["nextCursor"]).and_then(RawRef::text);
    let ours = next.and_then(|next| Raw::encode(&format!("{MARK}{next}")).ok());
    match ours {
        Some(ours) => object::set(page.borrow(), &["nextCursor"], ours.borrow()),
        None => Ok(page),
    }
}

/// Tools of a legacy server for a modern client, without annotations that mean something only there (BR-LIST-7).
pub(super) fn without_headers(page: Raw) -> Result<Raw, NotAnObject> {
    if !page.as_str().contains(HEADER) {
        return Ok(page);
    }
    tool::edit_list(page.borrow(), |tool| {
        let schema = object::find(tool, &["inputSchema", "properties"]);
        let fields = schema.and_then(|schema| object::members(schema).ok());
        let fields = fields.unwrap_or_default().into_iter();
        let marked = fields.filter(|field| object::find(field.value, &[HEADER]).is_some());
        let edited = marked.fold(tool.to_raw(), |tool, field| {
            let path = ["inputSchema", "properties", &field.name, HEADER];
            object::remove(tool.borrow(), &path).unwrap_or(tool)
        });
        Edit::Replace(edited)
    })
}

/// A page of tools, each with the support for tasks that it has here.
pub(super) fn tools(page: RawRef<'_>, settings: &Settings) -> Result<Raw, NotAnObject> {
    tool::edit_list(page, |tool| {
        let Some(name) = tool::called(tool) else {
            return Edit::Keep;
        };
        let shown = match support(settings.task(&name)) {
            TaskSupport::Forbidden => v1::strip_execution(tool),
            other => v1::set_task_support(tool, other),
        };
        shown.map_or(Edit::Keep, Edit::Replace)
    })
}

/// How a tool may be called here: the gateway can run every tool either way (BR-LIST-1, BR-LIST-3, BR-LIST-4).
pub(super) fn support(mode: TaskMode) -> TaskSupport {
    match mode {
        TaskMode::Auto | TaskMode::Always => TaskSupport::Optional,
        TaskMode::Never => TaskSupport::Forbidden,
    }
}

/// Whether requests of this method are answered by pages.
pub(super) fn is_list(method: &str) -> bool {
    method.ends_with("/list")
}

/// The annotation of an argument that is repeated in a header.
const HEADER: &str = "x-mcp-header";

/// What our cursors begin with.
const MARK: &str = "o.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::ToolSettings;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.into()).unwrap()
    }

    #[test]
    fn cursors_are_wrapped_and_not_read() {
        // BR-LIST-10.
        let page = for_client(raw(r#"{"prompts":[], "x" : 1.0,"nextCursor":""}"#)).unwrap();
        assert_eq!(
            page.as_str(),
            r#"{"prompts":[], "x" : 1.0,"nextCursor":"o."}"#
        );
        let last = r#"{"prompts":[ ]}"#;
        assert_eq!(for_client(raw(last)).unwrap().as_str(), last);
        let asked = for_upstream(&raw(r#"{"cursor":"o.a\"b","_meta":{"k":1}}"#)).unwrap();
        assert_eq!(asked.as_str(), r#"{"cursor":"a\"b","_meta":{"k":1}}"#);
        let foreign = for_upstream(&raw(r#"{"cursor":"a"}"#));
        assert_eq!(foreign.unwrap_err().code, -32602);
    }

    #[test]
    fn an_annotation_of_the_other_era_goes_and_nothing_else() {
        // BR-LIST-7.
        let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"q":{"type":"string","x-mcp-header":"Q"},"r":{ "type" : "string"}}}}]}"#;
        assert_eq!(
            without_headers(raw(page)).unwrap().as_str(),
            r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"r":{ "type" : "string"}}}}]}"#
        );
    }

    #[test]
    fn every_tool_may_be_called_either_way_unless_it_is_never_a_task() {
        // BR-LIST-1, BR-LIST-3, BR-LIST-4, BD-13.
        let page = r#"{"tools":[{"name":"must","execution":{"taskSupport":"required","x":1}},{"name":"never","execution":{"taskSupport":"optional"}},{"name":"plain", "y" : 2}]}"#;
        let mut settings = Settings::default();
        let never = ToolSettings {
            task: Some(TaskMode::Never),
            ..ToolSettings::default()
        };
        settings.tools.insert("never".into(), never);
        let shown = tools(raw(page).borrow(), &settings).unwrap();
        assert_eq!(
            shown.as_str(),
            r#"{"tools":[{"name":"must","execution":{"taskSupport":"optional","x":1}},{"name":"never"},{"name":"plain", "y" : 2,"execution":{"taskSupport":"optional"}}]}"#
        );
    }
}
