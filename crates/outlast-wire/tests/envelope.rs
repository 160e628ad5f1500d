//! Laws of the envelope, for hand-written messages and for any bytes.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not see as tests"
)]

use outlast_wire::envelope::{
    Id, Limits, Malformed, MalformedKind, MalformedReason, Message, Outcome, write,
};
use outlast_wire::{Raw, RawRef, codes};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn each_kind_of_message_is_recognised() {
    let request =
        parse(r#"{"jsonrpc":"2.0","id":"a1","method":"tools/call","params":{"name":"x"}}"#);
    let Ok(Message::Request(request)) = request else {
        panic!("{request:?}");
    };
    assert_eq!(request.id, Id::text("a1"));
    assert_eq!(request.method, "tools/call");
    assert_eq!(request.params.unwrap().as_str(), r#"{"name":"x"}"#);

    let notification = parse(r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#);
    assert!(matches!(notification, Ok(Message::Notification(n)) if n.params.is_none()));

    // `null` counts as absent.
    let request = parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#);
    assert!(matches!(request, Ok(Message::Request(r)) if r.params.is_none()));

    let Ok(Message::Response(response)) = parse(r#"{"jsonrpc":"2.0","id":3,"result":{ }}"#) else {
        panic!("not a response");
    };
    assert_eq!(response.id, Some(Id::from(3)));
    assert!(matches!(response.outcome, Outcome::Result(raw) if raw.as_str() == "{ }"));
}

#[test]
fn an_error_is_parsed_and_keeps_its_text() {
    let text = r#"{"code":-32042,"message":"first","data":{"elicitations":[]},"more":1}"#;
    let message = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{text}}}"#);
    let Ok(Message::Response(response)) = parse(&message) else {
        panic!("not a response");
    };
    let Outcome::Error(error) = response.outcome else {
        panic!("not an error");
    };
    assert_eq!(
        (error.code, &*error.message),
        (codes::URL_ELICITATION_REQUIRED, "first")
    );
    assert_eq!(error.data.unwrap().as_str(), r#"{"elicitations":[]}"#);
    assert_eq!(error.raw.as_str(), text);
    assert_eq!(write::error(Some(&Id::from(3)), error.raw), message);
}

/// V1-BASE-3: an error for a message without a readable id has no id.
#[test]
fn only_an_error_may_lack_its_id() {
    for id in ["", r#""id":null,"#] {
        let text = format!(r#"{{{id}"jsonrpc":"2.0","error":{{"code":-32700,"message":"?"}}}}"#);
        assert!(matches!(parse(&text), Ok(Message::Response(r)) if r.id.is_none()));
    }
    assert_eq!(
        fault(r#"{"jsonrpc":"2.0","result":{}}"#),
        MalformedReason::NoId
    );
    assert_eq!(
        fault(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        MalformedReason::Id
    );
}

#[test]
fn each_fault_has_its_code_and_the_id_where_readable() {
    let invalid = codes::INVALID_REQUEST;
    let five = Some(Id::from(5));
    for (text, code, id, expected) in [
        (
            "",
            codes::PARSE_ERROR,
            None,
            MalformedReason::NotJson { at: 0 },
        ),
        (
            "{",
            codes::PARSE_ERROR,
            None,
            MalformedReason::NotJson { at: 1 },
        ),
        (
            r#"{"id":5,"method":"x","#,
            codes::PARSE_ERROR,
            five.clone(),
            MalformedReason::NotJson { at: 21 },
        ),
        (
            r#"{"id":5} x"#,
            codes::PARSE_ERROR,
            five.clone(),
            MalformedReason::NotJson { at: 9 },
        ),
        (
            r#"[{"jsonrpc":"2.0","id":5,"method":"x"}]"#,
            invalid,
            None,
            MalformedReason::Batch,
        ),
        ("[]", invalid, None, MalformedReason::Batch),
        ("7", invalid, None, MalformedReason::NotAnObject),
        (
            r#"{"id":5,"method":"x"}"#,
            invalid,
            five.clone(),
            MalformedReason::Version,
        ),
        (
            r#"{"jsonrpc":2.0,"id":5,"method":"x"}"#,
            invalid,
            five.clone(),
            MalformedReason::Version,
        ),
        (
            r#"{"jsonrpc":"1.0","id":5,"method":"x"}"#,
            invalid,
            five.clone(),
            MalformedReason::Version,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            invalid,
            None,
            MalformedReason::Id,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            invalid,
            None,
            MalformedReason::Id,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
            invalid,
            None,
            MalformedReason::Id,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
            invalid,
            five.clone(),
            MalformedReason::Method,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","params":[1],"id":5}"#,
            invalid,
            five.clone(),
            MalformedReason::Params,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5}"#,
            invalid,
            five.clone(),
            MalformedReason::Neither,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x","result":{}}"#,
            invalid,
            five.clone(),
            MalformedReason::Both,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x","method":"y"}"#,
            invalid,
            five.clone(),
            duplicate("method"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x","m\u0065thod":"y"}"#,
            invalid,
            five.clone(),
            duplicate("method"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x","z":1,"z":1}"#,
            invalid,
            five.clone(),
            duplicate("z"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"x"}"#,
            invalid,
            None,
            duplicate("id"),
        ),
    ] {
        let malformed = parse(text).unwrap_err();
        assert_eq!(
            malformed,
            Malformed {
                fault: expected,
                id,
                kind: MalformedKind::Request
            },
            "{text}"
        );
        assert_eq!(malformed.code(), code, "{text}");
        assert_eq!(malformed.to_error().code, code);
        assert!(
            malformed
                .to_string()
                .starts_with(|c: char| c.is_lowercase())
        );
    }
}

/// The id of a response is one of ours: no error may be sent with it.
#[test]
fn a_malformed_response_is_recognised_as_a_response() {
    for (text, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}"#,
            MalformedReason::TwoOutcomes,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"result":7}"#,
            MalformedReason::Result,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1}}"#,
            MalformedReason::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1.5,"message":""}}"#,
            MalformedReason::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":"no"}"#,
            MalformedReason::Error,
        ),
    ] {
        let malformed = parse(text).unwrap_err();
        assert_eq!(malformed.fault, expected, "{text}");
        assert_eq!(
            (malformed.kind, malformed.id),
            (MalformedKind::Response, Some(Id::from(5))),
            "{text}"
        );
    }
}

#[test]
fn size_is_checked_before_anything_is_read() {
    let limits = Limits {
        bytes: 10,
        depth: 9,
    };
    let malformed = Message::parse(b"\xff not even text", &limits).unwrap_err();
    assert_eq!(
        malformed.fault,
        MalformedReason::TooLarge {
            size: 15,
            limit: 10
        }
    );
    assert_eq!(malformed.code(), codes::INVALID_REQUEST);
}

#[test]
fn depth_is_refused_without_a_stack_and_with_the_id() {
    let deep = |levels: usize| {
        let params = format!("{}{}", "[".repeat(levels - 2), "]".repeat(levels - 2));
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{params}}},"id":5}}"#)
    };
    let limits = Limits {
        depth: 100,
        ..Limits::default()
    };
    assert!(Message::parse(deep(100).as_bytes(), &limits).is_ok());
    for levels in [101, 10_000, 1_000_000] {
        let malformed = Message::parse(deep(levels).as_bytes(), &limits).unwrap_err();
        assert_eq!(malformed.fault, MalformedReason::TooDeep { limit: 100 });
        assert_eq!(malformed.id, Some(Id::from(5)));
    }
}

#[test]
fn bytes_that_are_not_text_are_a_parse_error() {
    let malformed = Message::parse(b"{\"jsonrpc\":\"\xc3\x28\"}", &Limits::default()).unwrap_err();
    assert_eq!(
        (malformed.code(), malformed.fault),
        (codes::PARSE_ERROR, MalformedReason::NotUtf8)
    );
}

#[test]
fn duplicates_inside_a_payload_are_accepted() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}"#;
    assert!(parse(text).is_ok());
}

/// V1-STDIO-1, V2-STDIO-1.
#[test]
fn a_pretty_printed_payload_becomes_an_equivalent_line() {
    let pretty = "{\r\n  \"a\": \"line\\nbreak\"\n}";
    let line = write::result(&Id::from(1), RawRef::parse(pretty).unwrap());
    assert!(!line.contains(['\n', '\r']));
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["result"], json!({"a": "line\nbreak"}));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = Message::parse(&bytes, &Limits::default());
    }

    #[test]
    fn any_almost_message_is_read_or_refused(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..12),
    ) {
        let text = parts.concat();
        if let Err(malformed) = Message::parse(text.as_bytes(), &Limits::default()) {
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(malformed.code() == codes::PARSE_ERROR, !is_json);
        }
    }

    #[test]
    fn what_is_written_is_read_back_exactly(id in any_id(), method: String, params in any_params()) {
        let raw = Raw::encode(&params).unwrap();
        let text = write::request(&id, &method, Some(raw.borrow()));
        let Ok(Message::Request(request)) = parse(&text) else { panic!("{text}") };
        prop_assert_eq!(request.id.to_string(), id.to_string());
        prop_assert_eq!(&*request.method, &*method);
        prop_assert_eq!(request.params.unwrap().as_str(), raw.as_str());
        let text = write::result(&id, raw.borrow());
        let Ok(Message::Response(response)) = parse(&text) else { panic!("{text}") };
        prop_assert_eq!(response.outcome, Outcome::Result(raw.borrow()));
        prop_assert_eq!(response.id, Some(id));
    }
}

const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\"",
    "1",
    "-",
    "null",
    "{}",
    "\"jsonrpc\"",
    "\"2.0\"",
    "\"id\"",
    "\"method\"",
    "\"x\"",
    "\"params\"",
    "\"result\"",
    "\"error\"",
    "{\"jsonrpc\":\"2.0\"",
    ",\"id\":1",
    ",\"method\":\"x\"",
    ",\"params\":{}",
    ",\"result\":{}",
    ",\"error\":{\"code\":1,\"message\":\"\"}",
    "\\u00",
    "é",
];

fn any_id() -> impl Strategy<Value = Id> {
    prop_oneof![
        any::<i64>().prop_map(Id::from),
        any::<String>().prop_map(|text| Id::text(&text))
    ]
}

fn any_params() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any::<String>(), any::<String>(), 0..5).prop_map(|map| json!(map))
}

fn duplicate(name: &str) -> MalformedReason {
    MalformedReason::Duplicate(name.to_owned())
}

fn parse(text: &str) -> Result<Message<'_>, Malformed> {
    Message::parse(text.as_bytes(), &Limits::default())
}

fn fault(text: &str) -> MalformedReason {
    parse(text).unwrap_err().fault
}
