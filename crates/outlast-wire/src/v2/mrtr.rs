//! Multi round-trip requests: a result with input requests, and the retry with the responses
//! (V2-MRTR).

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::{Fields, quoted};
use crate::neutral::AskView;
use crate::object::{self, NotAnObject, pick};
use crate::raw::{Raw, RawRef};
use crate::v2::ask::{Answer, Ask, read_answers, read_asks, write_answers, write_asks};

/// A result of type `input_required`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequired {
    /// The input requests. Empty if only a retry is needed.
    pub asks: Vec<Ask>,
    /// The state that the retry must repeat, byte for byte (V2-MRTR-8).
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads a result of that type. Returns `None` if it has neither input requests nor a state
    /// (V2-MRTR-2), or invalid input requests.
    pub fn read(result: RawRef<'_>) -> Option<Self> {
        let [asks, state] = pick(result, ["inputRequests", "requestState"]).ok()?;
        asks.or(state)?;
        Some(Self {
            asks: match asks {
                Some(asks) => read_asks(asks)?,
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
pub fn input_required_result(asks: &[AskView<'_>], state: Option<&str>) -> Option<Raw> {
    if asks.is_empty() && state.is_none() {
        return None;
    }
    Some(Raw::written(|out| {
        let mut fields = Fields::begin(out);
        fields.text("resultType", "input_required");
        if !asks.is_empty() {
            fields.nested("inputRequests", |out| write_asks(out, asks));
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
    pub answers: Vec<Answer>,
    /// The state as the client returned it. It is untrusted (V2-MRTR-5).
    pub state: Option<String>,
}

impl Retry {
    /// Reads the params of a call. A first attempt has neither member.
    pub fn read(params: RawRef<'_>) -> Result<Self, ErrorObject> {
        let [answers, state] = pick(params, ["inputResponses", "requestState"])
            .map_err(|error| invalid_params(error.to_string()))?;
        Ok(Self {
            answers: match answers {
                Some(answers) => read_answers(answers)
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
    let mut answers = String::new();
    write_answers(&mut answers, &retry.answers);
    let with = object::set(params, &["inputResponses"], RawRef::scanned(&answers))?;
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
        let ask = AskView {
            key: "k",
            method: "roots/list",
            params: None,
        };
        let result = input_required_result(&[ask], Some("sealed \u{1}")).unwrap();
        let read = InputRequired::read(result.borrow()).unwrap();
        assert_eq!(read.state.as_deref(), Some("sealed \u{1}"));
        assert_eq!(read.asks[0].key, "k");
        assert_eq!(InputRequired::read(RawRef::parse("{}").unwrap()), None);
    }

    /// V2-MRTR-8, V2-MRTR-9.
    #[test]
    fn a_retry_echoes_the_state_and_keeps_the_params() {
        let params =
            RawRef::parse(r#"{"name":"x","arguments":{"n":1.0},"requestState":"old"}"#).unwrap();
        let answer = Answer {
            key: "k".into(),
            result: Raw::parse("{}".into()).unwrap(),
        };
        let retry = Retry {
            answers: vec![answer],
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
