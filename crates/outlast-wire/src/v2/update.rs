//! `tasks/update`: input responses for a task.

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::params::task_id;
use crate::raw::{Raw, RawRef};
use crate::v2::input::{InputResponseEntry, read_input_responses, write_input_responses};

/// The params of `tasks/update`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The task.
    pub task: String,
    /// The input responses, not parsed and not validated.
    pub input_responses: Vec<InputResponseEntry>,
}

impl Update {
    /// Reads the params. Both members are required (V2-UPD-7, V2-UPD-18).
    pub fn read(params: Option<RawRef<'_>>) -> Result<Self, ErrorObject> {
        let task = task_id(params)?.into_owned();
        let input_responses = params
            .and_then(|params| pick(params, ["inputResponses"]).ok()?[0])
            .and_then(read_input_responses)
            .ok_or_else(|| invalid_params("`inputResponses` must be an object"))?;
        Ok(Self {
            task,
            input_responses,
        })
    }
}

/// The params that send `input_responses` to `task`.
pub fn update_params(task: &str, input_responses: &[InputResponseEntry]) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("taskId", task);
        fields.nested("inputResponses", |out| {
            write_input_responses(out, input_responses);
        });
        fields.end();
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::INVALID_PARAMS;

    #[test]
    fn an_update_reads_back() {
        let result = Raw::parse(r#"{"action":"decline"}"#.into()).unwrap();
        let input_responses = vec![InputResponseEntry {
            key: "k".into(),
            result,
        }];
        let params = update_params("t", &input_responses);
        let read = Update::read(Some(params.borrow())).unwrap();
        assert_eq!(
            read,
            Update {
                task: "t".into(),
                input_responses
            }
        );
    }

    /// V2-UPD-18.
    #[test]
    fn an_update_without_input_responses_is_invalid() {
        for params in [
            "{}",
            r#"{"taskId":"t"}"#,
            r#"{"taskId":"t","inputResponses":[]}"#,
            r#"{"inputResponses":{}}"#,
        ] {
            let refused = Update::read(Some(RawRef::parse(params).unwrap())).unwrap_err();
            assert_eq!(refused.code, INVALID_PARAMS, "{params}");
        }
    }
}
