//! Tools and their results, as far as both generations agree. They are not parsed as a whole.

use std::borrow::Cow;

use crate::codes;
use crate::envelope::ErrorObject;
use crate::object::{self, Edit, NotAnObject, pick};
use crate::raw::{Raw, RawRef};

/// The method that calls a tool.
pub const CALL: &str = "tools/call";
/// The method that lists tools.
pub const LIST: &str = "tools/list";

/// The name of the tool in `tools/call` params.
pub fn called(params: RawRef<'_>) -> Option<Cow<'_, str>> {
    object::find(params, &["name"])?.text()
}

/// Refuses `tools/call` params whose `arguments` are not an object. `null` counts as absent.
pub fn check_arguments(params: RawRef<'_>) -> Result<(), ErrorObject> {
    let arguments = object::find(params, &["arguments"]).filter(|found| !found.is_null());
    if arguments.is_none_or(RawRef::is_object) {
        Ok(())
    } else {
        Err(codes::invalid_params("`arguments` must be an object"))
    }
}

/// Whether a result has the flag `isError`.
pub fn is_error(result: RawRef<'_>) -> bool {
    object::find(result, &["isError"]).and_then(RawRef::boolean) == Some(true)
}

/// The first text block of a tool result, for use as a status message (A1-2).
pub fn first_text(result: RawRef<'_>) -> Option<String> {
    let content = object::elements(object::find(result, &["content"])?)?;
    content.into_iter().find_map(|block| {
        let [kind, text] = pick(block, ["type", "text"]).ok()?;
        (kind?.text()? == "text").then_some(())?;
        Some(text?.text()?.into_owned())
    })
}

/// Applies `edit` to every tool of a `tools/list` result. Everything else keeps its bytes.
pub fn edit_list(
    result: RawRef<'_>,
    edit: impl FnMut(RawRef<'_>) -> Edit,
) -> Result<Raw, NotAnObject> {
    match edited_tools(result, edit)? {
        Some(tools) => object::set(result, &["tools"], tools.borrow()),
        None => Ok(result.to_raw()),
    }
}

/// Applies `edit` to every tool of a `tools/list` result and returns the array of tools. `None` if
/// all are unchanged.
pub fn edited_tools(
    result: RawRef<'_>,
    mut edit: impl FnMut(RawRef<'_>) -> Edit,
) -> Result<Option<Raw>, NotAnObject> {
    let [tools] = pick(result, ["tools"])?;
    let tools = tools.and_then(object::elements).unwrap_or_default();
    let edits: Vec<_> = tools.into_iter().map(|tool| (tool, edit(tool))).collect();
    if edits.iter().all(|(_, edit)| *edit == Edit::Keep) {
        return Ok(None);
    }
    let mut list = String::from("[");
    for (tool, edit) in &edits {
        let kept = match edit {
            Edit::Drop => continue,
            Edit::Keep => tool.as_str(),
            Edit::Replace(new) => new.as_str(),
        };
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(kept);
    }
    list.push(']');
    Ok(Some(RawRef::scanned(&list).to_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_first_text_are_seen() {
        let result = raw(
            r#"{"content":[{"type":"image"},{"type":"text","text":"no\u0021"}],"isError":true}"#,
        );
        assert!(is_error(result));
        assert_eq!(first_text(result).as_deref(), Some("no!"));
        assert!(!is_error(raw(r#"{"isError":"true"}"#)));
        assert_eq!(first_text(raw(r#"{"content":"x"}"#)), None);
    }

    #[test]
    fn a_list_is_edited_tool_by_tool() {
        let list =
            raw(r#"{"tools":[{"name":"a", "x":1.0},{"name":"b"},{"name":"c"}],"nextCursor":"n"}"#);
        let edited = edit_list(list, |tool| match called(tool).as_deref() {
            Some("b") => Edit::Drop,
            Some("c") => Edit::Replace(Raw::parse(r#"{"name":"d"}"#.into()).unwrap()),
            _ => Edit::Keep,
        });
        assert_eq!(
            edited.unwrap().as_str(),
            r#"{"tools":[{"name":"a", "x":1.0},{"name":"d"}],"nextCursor":"n"}"#
        );
    }

    #[test]
    fn a_list_without_edits_is_the_same_list() {
        for list in [
            r#"{"tools": [ {"name":"a"} , {} ]}"#,
            r#"{"tools":7}"#,
            "{}",
        ] {
            let edited = edit_list(raw(list), |_| Edit::Keep).unwrap();
            assert_eq!(edited.as_str(), list);
        }
    }

    fn raw(text: &str) -> RawRef<'_> {
        RawRef::parse(text).unwrap()
    }
}
