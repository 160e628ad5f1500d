//! Checks input responses against their input requests (V2-UPD-12, V2-UPD-18, V2-MRTR-10, BR-IN-8).

use std::collections::BTreeMap;

use outlast_engine::{InputKey, InputKind, InputResponse, Outstanding};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{codes, v2};

use crate::input_check;

/// The input responses that match open requests. A response to any other request is ignored; a
/// malformed response rejects all of them.
pub(super) fn matching(
    open: Option<&Outstanding>,
    responses: Vec<v2::InputResponseEntry>,
) -> Result<BTreeMap<InputKey, InputResponse>, ErrorObject> {
    let mut matching = BTreeMap::new();
    for response in responses {
        let key = InputKey::new(response.key);
        let Some(request) = open.and_then(|open| open.get(&key)) else {
            continue;
        };
        let checked = input_check::check(
            request.kind,
            request.params.as_ref(),
            response.result.borrow(),
        );
        if let Err(why) = checked {
            let method = request.kind.method();
            let why = format!(
                "the input response `{}` is not a valid response to {method}: {why}",
                key.as_str()
            );
            return Err(codes::invalid_params(why));
        }
        let is_sample = matches!(request.kind, InputKind::Sample | InputKind::SampleWithTools);
        let response = if is_sample && input_check::is_declined_sample(response.result.borrow()) {
            InputResponse::Error(input_check::sampling_declined().to_raw())
        } else {
            InputResponse::Result(response.result)
        };
        matching.insert(key, response);
    }
    Ok(matching)
}

#[cfg(test)]
mod tests {
    use outlast_engine::InputRequest;
    use outlast_wire::RawRef;

    use super::*;

    fn check(kind: InputKind, answer: &str) -> Result<usize, i64> {
        let open = vec![(InputKey::new("k"), InputRequest::new(kind, None))];
        let open = Outstanding::new(open);
        let answers = RawRef::parse(answer).unwrap();
        let answers = v2::read_input_responses(answers).unwrap();
        matching(open.as_ref(), answers)
            .map(|matching| matching.len())
            .map_err(|error| error.code)
    }

    #[test]
    fn unknown_keys_are_ignored_and_a_malformed_response_rejects_all() {
        // V2-UPD-12, V2-UPD-18.
        let form = InputKind::ElicitForm;
        assert_eq!(check(form, r#"{"other":7}"#), Ok(0));
        assert_eq!(
            check(form, r#"{"other":7,"k":{"action":"decline"}}"#),
            Ok(1)
        );
        for bad in [
            r#"{"k":7}"#,
            r#"{"k":{}}"#,
            r#"{"k":{"action":"maybe"}}"#,
            r#"{"k":{"action":"accept","content":[]}}"#,
        ] {
            assert_eq!(check(form, bad), Err(-32602), "{bad}");
        }
    }

    #[test]
    fn each_kind_of_input_request_has_its_schema() {
        let sample =
            r#"{"k":{"role":"assistant","model":"m","content":{"type":"text","text":""}}}"#;
        let list = r#"{"k":{"role":"assistant","model":"m","content":[]}}"#;
        for fine in [sample, list] {
            assert_eq!(check(InputKind::Sample, fine), Ok(1));
            assert_eq!(check(InputKind::Roots, fine), Err(-32602));
            assert_eq!(check(InputKind::ElicitUrl, fine), Err(-32602));
        }
        assert_eq!(
            check(InputKind::SampleWithTools, r#"{"k":{"role":"assistant"}}"#),
            Err(-32602)
        );
        assert_eq!(check(InputKind::Roots, r#"{"k":{"roots":[]}}"#), Ok(1));
        assert_eq!(
            check(InputKind::Roots, r#"{"k":{"roots":{}}}"#),
            Err(-32602)
        );
    }
}
