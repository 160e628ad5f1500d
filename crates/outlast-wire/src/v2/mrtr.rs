//! Multi round-trip requests: a result with input requests, and the retry with the responses
//! (V2-MRTR).

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::{ObjectWriter, quoted};
use crate::neutral::InputRequestView;
use crate::object::{self, NotAnObject, pick};
use crate::raw::{Raw, RawRef};
use crate::v2::input::{
    InputRequestEntry, InputResponseEntry, read_input_requests, read_input_responses,
    write_input_requests, write_input_responses,
};

/// A result of type `input_required`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequired {
    /// The input requests. Empty if only a retry is needed.
    pub input_requests: Vec<InputRequestEntry>,
    /// The state that the retry must repeat, byte for byte (V2-MRTR-8).
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads a result of that type. Returns `None` if it has neither input requests nor a state
    /// (V2-MRTR-2), or invalid input requests.
    pub fn read(result: RawRef<'_>) -> Option<Self> {
        let [input_requests, state] = pick(result, ["inputRequests", "requestState"]).ok()?;
        input_requests.or(state)?;
        Some(Self {
            input_requests: match input_requests {
                Some(input_requests) => read_input_requests(input_requests)?,
                None => Vec::new(),
            },
            state: match state {
                Some(state) => Some(state.text()?.into_owned()),
                None => None,
            },
        })
    }
}

/// Writes a result of that type, or `None` without input requests and state (V2-MRTR-2).
pub fn input_required_result(
    input_requests: &[InputRequestView<'_>],
    state: Option<&str>,
) -> Option<Raw> {
    if input_requests.is_empty() && state.is_none() {
        return None;
    }
    Some(Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("resultType", "input_required");
        if !input_requests.is_empty() {
            fields.nested("inputRequests", |out| {
                write_input_requests(out, input_requests);
            });
        }
        if let Some(state) = state {
            fields.text("requestState", state);
        }
        fields.end();
    }))
}

/// The members that a retry adds to the params of the first attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The input responses, not parsed and not validated.
    pub input_responses: Vec<InputResponseEntry>,
    /// The state as the client returned it. It is untrusted (V2-MRTR-5).
    pub state: Option<String>,
}

impl Retry {
    /// Reads the params of a call. A first attempt has neither member.
    pub fn read(params: RawRef<'_>) -> Result<Self, ErrorObject> {
        let [input_responses, state] = pick(params, ["inputResponses", "requestState"])
            .map_err(|error| invalid_params(error.to_string()))?;
        Ok(Self {
            input_responses: match input_responses {
                Some(input_responses) => read_input_responses(input_responses)
                    .ok_or_else(|| invalid_params("`inputResponses` must be an object"))?,
                None => Vec::new(),
            },
            state: match state {
                Some(state) => Some(
                    state
                        .text()
                        .ok_or_else(|| invalid_params("`requestState` must be a string"))?
                        .into_owned(),
                ),
                None => None,
            },
        })
    }
}

/// The params of the first attempt with the responses and the state of this retry only (V2-MRTR-9).
pub fn retry_params(params: RawRef<'_>, retry: &Retry) -> Result<Raw, NotAnObject> {
    let mut input_responses = String::new();
    write_input_responses(&mut input_responses, &retry.input_responses);
    let with = object::set(
        params,
        &["inputResponses"],
        RawRef::scanned(&input_responses),
    )?;
    match &retry.state {
        Some(state) => object::set(
            with.borrow(),
            &["requestState"],
            RawRef::scanned(&quoted(state)),
        ),
        None => object::remove(with.borrow(), &["requestState"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_requests_and_state_read_back() {
        assert_eq!(input_required_result(&[], None), None);
        let ask = InputRequestView {
            key: "k",
            method: "roots/list",
            params: None,
        };
        let result = input_required_result(&[ask], Some("sealed \u{1}")).unwrap();
        let read = InputRequired::read(result.borrow()).unwrap();
        assert_eq!(read.state.as_deref(), Some("sealed \u{1}"));
        assert_eq!(read.input_requests[0].key, "k");
        assert_eq!(InputRequired::read(RawRef::parse("{}").unwrap()), None);
    }

    /// V2-MRTR-8, V2-MRTR-9.
    #[test]
    fn a_retry_echoes_the_state_and_keeps_the_params() {
        let params =
            RawRef::parse(r#"{"name":"x","arguments":{"n":1.0},"requestState":"old"}"#).unwrap();
        let answer = InputResponseEntry {
            key: "k".into(),
            result: Raw::parse("{}".into()).unwrap(),
        };
        let retry = Retry {
            input_responses: vec![answer],
            state: None,
        };
        let again = retry_params(params, &retry).unwrap();
        assert_eq!(
            again.as_str(),
            r#"{"name":"x","arguments":{"n":1.0},"inputResponses":{"k":{}}}"#
        );
        assert_eq!(Retry::read(again.borrow()), Ok(retry));
        assert_eq!(
            Retry::read(RawRef::parse("{}").unwrap()),
            Ok(Retry::default())
        );
        assert!(Retry::read(RawRef::parse(r#"{"requestState":1}"#).unwrap()).is_err());
    }
}
