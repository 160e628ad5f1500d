//! `tasks/get` results and task notifications: the task with its outcome or its input requests.

use crate::envelope::Id;
use crate::json::write::ObjectWriter;
use crate::meta;
use crate::neutral::{Ending, InputRequestView, Phase, TaskView};
use crate::raw::{Raw, RawRef};
use crate::v2::input::write_input_requests;
use crate::v2::result::{inlined, modern_error};
use crate::v2::task::write_fields;

/// Why a view cannot be written in V2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// The task has ended with an outcome, but the outcome is missing.
    #[error("ended task without its outcome")]
    NoOutcome,
    /// The result is not an object.
    #[error("result is not an object")]
    NotAnObject,
}

/// The response to `tasks/get`: `complete` whatever the status (V2-RT-3), with the input requests
/// while the task awaits input (V2-GET-2) and the outcome once it has one (V2-GET-3, V2-GET-5).
///
/// `outcome` is the unparsed result or error; `input_requests` are all outstanding input requests.
/// Each is used only in its phase.
pub fn get_result(
    view: &TaskView<'_>,
    outcome: Option<&Raw>,
    input_requests: &[InputRequestView<'_>],
) -> Result<Raw, Unwritable> {
    write_detailed(view, outcome, input_requests, |fields| {
        fields.text("resultType", "complete");
    })
}

/// The params of a task notification on the stream of the listen request `subscription`: the
/// content of `tasks/get` without a result type (V2-NOTIF-5, V2-NOTIF-6).
pub fn notification_params(
    view: &TaskView<'_>,
    outcome: Option<&Raw>,
    input_requests: &[InputRequestView<'_>],
    subscription: &Id,
) -> Result<Raw, Unwritable> {
    write_detailed(view, outcome, input_requests, |fields| {
        fields.nested(meta::META, |out| {
            let mut fields = ObjectWriter::begin(out);
            fields.plain(meta::SUBSCRIPTION_ID, subscription);
            fields.end();
        });
    })
}

fn write_detailed(
    view: &TaskView<'_>,
    outcome: Option<&Raw>,
    input_requests: &[InputRequestView<'_>],
    head: impl FnOnce(&mut ObjectWriter<'_>),
) -> Result<Raw, Unwritable> {
    let outcome = || outcome.map(Raw::borrow).ok_or(Unwritable::NoOutcome);
    let result;
    let error;
    let payload = match view.phase {
        Phase::Ended(Ending::Result | Ending::ToolError) => {
            result = inlined(outcome()?).map_err(|_| Unwritable::NotAnObject)?;
            Some(("result", RawRef::scanned(&result)))
        }
        Phase::Ended(Ending::Error) => {
            error = modern_error(outcome()?);
            Some(("error", error.borrow()))
        }
        Phase::Working | Phase::AwaitingInput | Phase::Ended(Ending::Cancelled) => None,
    };
    let room = payload.map_or(0, |(_, body)| body.as_str().len());
    Ok(Raw::written_with_capacity(room, |out| {
        let mut fields = ObjectWriter::begin(out);
        head(&mut fields);
        write_fields(&mut fields, view);
        if view.phase == Phase::AwaitingInput {
            fields.nested("inputRequests", |out| {
                write_input_requests(out, input_requests);
            });
        }
        if let Some((name, body)) = payload {
            fields.json(name, body.as_str());
        }
        fields.end();
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::find;
    use crate::time::Timestamp;

    #[test]
    fn each_phase_inlines_its_own_payload_and_no_other() {
        let result = raw(r#"{"content":[],"isError":true}"#);
        let error = raw(r#"{"code":-32603,"message":"no","x":[1.0]}"#);
        let input_requests = [InputRequestView {
            key: "k",
            method: "roots/list",
            params: None,
        }];
        for (phase, outcome, expected) in [
            (Phase::Working, &result, None),
            (
                Phase::AwaitingInput,
                &result,
                Some(("inputRequests", r#"{"k":{"method":"roots/list"}}"#)),
            ),
            (
                Phase::Ended(Ending::ToolError),
                &result,
                Some((
                    "result",
                    r#"{"content":[],"isError":true,"resultType":"complete"}"#,
                )),
            ),
            (
                Phase::Ended(Ending::Error),
                &error,
                Some(("error", error.as_str())),
            ),
            (Phase::Ended(Ending::Cancelled), &result, None),
        ] {
            let got = get_result(&view(phase), Some(outcome), &input_requests).unwrap();
            assert_eq!(
                find(got.borrow(), &["resultType"]).unwrap().as_str(),
                "\"complete\""
            );
            for name in ["inputRequests", "result", "error"] {
                let expected = expected.filter(|(payload, _)| *payload == name);
                let found = find(got.borrow(), &[name]).map(RawRef::as_str);
                assert_eq!(found, expected.map(|(_, text)| text), "{phase:?}");
            }
        }
    }

    /// V2-NOTIF-5, V2-SUB-3.
    #[test]
    fn a_notification_names_its_subscription_with_the_same_type() {
        for id in [Id::from(0), Id::text("0")] {
            let params = notification_params(&view(Phase::Working), None, &[], &id).unwrap();
            assert_eq!(find(params.borrow(), &["resultType"]), None);
            let id_member = meta::value(params.borrow(), meta::SUBSCRIPTION_ID).unwrap();
            assert_eq!(id_member.as_str(), id.to_string());
        }
    }

    #[test]
    fn a_missing_outcome_is_an_error() {
        let ended = view(Phase::Ended(Ending::Result));
        assert_eq!(get_result(&ended, None, &[]), Err(Unwritable::NoOutcome));
        assert_eq!(
            get_result(&ended, Some(&raw("[]")), &[]),
            Err(Unwritable::NotAnObject)
        );
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn view(phase: Phase) -> TaskView<'static> {
        TaskView {
            id: "t",
            phase,
            message: None,
            created: Timestamp(0),
            updated: Timestamp(0),
            ttl_ms: Some(1),
            poll_interval_ms: None,
        }
    }
}
