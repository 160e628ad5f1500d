//! Parameters that are the same in both generations: a task id, a cursor.

use std::borrow::Cow;

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::raw::{Raw, RawRef};

/// Reads the `taskId` of a task method. Other members are ignored (A1-29, V1-META-5).
pub fn task_id(params: Option<RawRef<'_>>) -> Result<Cow<'_, str>, ErrorObject> {
    member(params, "taskId")?
        .and_then(RawRef::text)
        .filter(|id| !id.is_empty())
        .ok_or_else(|| invalid_params("`taskId` must be a non-empty string"))
}

/// Reads the `cursor` of a list method. An empty cursor is a cursor (V2-PAGE-1).
pub fn cursor(params: Option<RawRef<'_>>) -> Result<Option<String>, ErrorObject> {
    match member(params, "cursor")? {
        None => Ok(None),
        Some(null) if null.is_null() => Ok(None),
        Some(cursor) => match cursor.text() {
            Some(cursor) => Ok(Some(cursor.into_owned())),
            None => Err(invalid_params("`cursor` must be a string")),
        },
    }
}

/// The params with a task id.
pub fn naming(task: &str) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("taskId", task);
        fields.end();
    })
}

/// The params with a cursor.
pub fn continuing(cursor: Option<&str>) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        if let Some(cursor) = cursor {
            fields.text("cursor", cursor);
        }
        fields.end();
    })
}

fn member<'a>(params: Option<RawRef<'a>>, name: &str) -> Result<Option<RawRef<'a>>, ErrorObject> {
    let Some(params) = params else {
        return Ok(None);
    };
    let [value] = pick(params, [name]).map_err(|error| invalid_params(error.to_string()))?;
    Ok(value)
}
