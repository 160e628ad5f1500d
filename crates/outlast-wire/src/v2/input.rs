//! `inputRequests` and `inputResponses`: input requests and responses by key.

use crate::json::write::ObjectWriter;
use crate::neutral::InputRequestView;
use crate::object::{members, pick};
use crate::raw::{Raw, RawRef};

/// An input request of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequestEntry {
    /// Its key within its task or request.
    pub key: String,
    /// The method, such as `elicitation/create`.
    pub method: String,
    /// Its parameters, not parsed.
    pub params: Option<Raw>,
}

/// An input response of a client: a bare result (V2-UPD-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputResponseEntry {
    /// The key of the input request.
    pub key: String,
    /// The result, not parsed.
    pub result: Raw,
}

/// Reads `inputRequests`. Returns `None` if it is not a map of requests.
pub fn read_input_requests(requests: RawRef<'_>) -> Option<Vec<InputRequestEntry>> {
    let entry = |key: String, request: RawRef<'_>| {
        let [method, params] = pick(request, ["method", "params"]).ok()?;
        Some(InputRequestEntry {
            key,
            method: method?.text()?.into_owned(),
            params: params
                .filter(|params| !params.is_null())
                .map(RawRef::to_raw),
        })
    };
    by_key(requests)?
        .into_iter()
        .map(|(key, request)| entry(key, request))
        .collect()
}

/// Reads `inputResponses`. Returns `None` if it is not an object. The caller validates the values
/// after it has dropped the keys without an open input request: an invalid value under such a key
/// is not an error (V2-UPD-12).
pub fn read_input_responses(responses: RawRef<'_>) -> Option<Vec<InputResponseEntry>> {
    let entry = |(key, result): (String, RawRef<'_>)| InputResponseEntry {
        key,
        result: result.to_raw(),
    };
    Some(by_key(responses)?.into_iter().map(entry).collect())
}

/// Appends `inputRequests`.
pub(super) fn write_input_requests(out: &mut String, input_requests: &[InputRequestView<'_>]) {
    let mut fields = ObjectWriter::begin(out);
    for request in input_requests {
        fields.keyed(request.key, |out| {
            let mut fields = ObjectWriter::begin(out);
            fields.text("method", request.method);
            if let Some(params) = request.params {
                fields.json("params", params.as_str());
            }
            fields.end();
        });
    }
    fields.end();
}

/// Appends `inputResponses`.
pub(super) fn write_input_responses(out: &mut String, input_responses: &[InputResponseEntry]) {
    let mut fields = ObjectWriter::begin(out);
    for response in input_responses {
        fields.keyed(&response.key, |out| out.push_str(response.result.as_str()));
    }
    fields.end();
}

/// Returns the members of a map. If a key occurs twice, the last one counts.
fn by_key(map: RawRef<'_>) -> Option<Vec<(String, RawRef<'_>)>> {
    let all = members(map).ok()?;
    let mut seen = std::collections::BTreeSet::new();
    let mut kept: Vec<_> = all
        .into_iter()
        .rev()
        .filter(|member| seen.insert(member.name.clone()))
        .map(|member| (member.name.into_owned(), member.value))
        .collect();
    kept.reverse();
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_requests_read_back() {
        let params = Raw::parse(r#"{"message":"?"}"#.into()).unwrap();
        let input_requests = [
            InputRequestView {
                key: "a",
                method: "elicitation/create",
                params: Some(&params),
            },
            InputRequestView {
                key: "b\"",
                method: "roots/list",
                params: None,
            },
        ];
        let mut text = String::new();
        write_input_requests(&mut text, &input_requests);
        let read = read_input_requests(RawRef::parse(&text).unwrap()).unwrap();
        let views: Vec<_> = read
            .iter()
            .map(|entry| InputRequestView {
                key: &entry.key,
                method: &entry.method,
                params: entry.params.as_ref(),
            })
            .collect();
        assert_eq!(views, input_requests);
    }

    #[test]
    fn any_input_response_is_passed_on() {
        let text = r#"{"a":1,"b":{"action":"accept"},"a":null}"#;
        let input_responses = read_input_responses(RawRef::parse(text).unwrap()).unwrap();
        let pairs: Vec<_> = input_responses
            .iter()
            .map(|entry| (&*entry.key, entry.result.as_str()))
            .collect();
        assert_eq!(pairs, [("b", r#"{"action":"accept"}"#), ("a", "null")]);
        assert_eq!(read_input_responses(RawRef::parse("[]").unwrap()), None);
        assert_eq!(
            read_input_requests(RawRef::parse(r#"{"a":{}}"#).unwrap()),
            None
        );
    }
}
