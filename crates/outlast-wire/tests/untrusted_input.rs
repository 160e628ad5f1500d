//! Parsers with untrusted input: a value or a typed error, never a panic, and never a changed byte
//! in relayed data.

use outlast_wire::envelope::{ErrorView, Id};
use outlast_wire::notice::Progress;
use outlast_wire::v2::{DetailedTask, Discover, Payload};
use outlast_wire::{
    NotATask, PeerTask, Raw, RawRef, Status, Timestamp, headers, meta, notice, object, params,
    tool, v1, v2,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

proptest! {
    #[test]
    fn every_reader_survives_every_value(value in any_mess()) {
        let raw = Raw::encode(&value).unwrap();
        let it = raw.borrow();
        let _ = (v1::read_task(it), v1::read_created(it), v1::read_list(it));
        let _ = (v1::TaskRequest::read(Some(it)), v1::Initialize::read(it), v1::task_support(it));
        let _ = (v1::ServerTasks::read(it), v1::ClientTasks::read(it), v1::payload_result(it, "t"));
        let _ = (v2::read_created(it), v2::read_detailed(it), v2::subscription(it));
        let _ = (v2::Update::read(Some(it)), v2::InputRequired::read(it), v2::Retry::read(it));
        let _ = (v2::Filter::read(Some(it)), Discover::read(it), v2::CacheHint::read(it));
        let _ = (v2::RequestMeta::read(Some(it)), v2::ResultType::of(it), v2::declares_tasks(it));
        let _ = (v2::inlined(it), v2::modern_error(it), v2::read_input_requests(it), v2::read_input_responses(it));
        let _ = (params::task_id(Some(it)), params::cursor(Some(it)), Progress::read(it));
        let _ = (notice::cancelled_request(it), ErrorView::read(it), Id::read(it));
        let _ = (tool::called(it), tool::is_error(it), tool::first_text(it));
        let _ = (meta::related_task(it), meta::progress_token(it), object::members(it));
        let _ = headers::annotations(it);
    }

    /// V1-RES-3, V2-GET-6: relayed data keeps every member, in both directions.
    #[test]
    fn a_relayed_result_keeps_other_members_byte_for_byte(object in any_object(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        let raw = Raw::parse(text.unwrap()).unwrap();
        let v1 = v1::payload_result(raw.borrow(), "t").unwrap();
        let v2 = Raw::parse(v2::inlined(v1.borrow()).unwrap().into_owned()).unwrap();
        for relayed in [&v1, &v2] {
            let (before, after) = (others(&raw), others(relayed));
            prop_assert_eq!(before, after);
        }
        prop_assert_eq!(meta::related_task(v1.borrow()), Some("t".to_owned()));
        prop_assert_eq!(object::find(v1.borrow(), &["resultType"]), None);
        prop_assert_eq!(meta::related_task(v2.borrow()), None);
        prop_assert_eq!(v2::ResultType::of(v2.borrow()), v2::ResultType::Complete);
    }
}

#[test]
fn a_v2_task_is_read_with_its_payload() {
    let detailed = |status: &str, more: &str| {
        let text = format!(
            r#"{{"resultType":"complete","taskId":"t","status":"{status}","ttlMs":1.5{more}}}"#
        );
        v2::read_detailed(RawRef::parse(&text).unwrap())
    };
    let everything = r#","result":{"x":1.0},"error":{"code":1,"message":"m"},"inputRequests":{"k":{"method":"roots/list"}}"#;
    let payload = |status| detailed(status, everything).unwrap().payload;
    assert_eq!(payload("working"), Payload::Nothing);
    assert_eq!(payload("cancelled"), Payload::Nothing);
    assert_eq!(
        payload("completed"),
        Payload::Result(Raw::parse(r#"{"x":1.0}"#.into()).unwrap())
    );
    assert!(matches!(payload("failed"), Payload::Error(error) if error.as_str().contains("\"m\"")));
    assert!(
        matches!(payload("input_required"), Payload::InputRequests(input_requests) if input_requests[0].key == "k")
    );
    assert_eq!(
        detailed("completed", ""),
        Ok(DetailedTask {
            task: bare(),
            payload: Payload::Nothing
        })
    );
    assert!(matches!(detailed("unknown", ""), Err(NotATask::Unknown(_))));
}

/// A2-39.
#[test]
fn server_info_is_read_from_either_place() {
    for place in [
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}"#,
        r#""serverInfo":{"name":"s"}"#,
    ] {
        let text = format!(r#"{{"supportedVersions":["2026-07-28"],"capabilities":{{}},{place}}}"#);
        let discovered = Discover::read(RawRef::parse(&text).unwrap()).unwrap();
        assert_eq!(discovered.info.unwrap().as_str(), r#"{"name":"s"}"#);
        assert_eq!(discovered.versions, ["2026-07-28"]);
    }
    assert_eq!(Discover::read(RawRef::parse("{}").unwrap()), None);
}

/// V1-ERR-1, V2-PAGE-1.
#[test]
fn ids_and_cursors_are_strings() {
    let parse = |text| RawRef::parse(text).ok();
    assert!(params::task_id(None).is_err());
    for text in ["{}", r#"{"taskId":""}"#, r#"{"taskId":7}"#] {
        assert!(params::task_id(parse(text)).is_err(), "{text}");
    }
    let contradicted =
        r#"{"taskId":"t","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"u"}}}"#;
    assert_eq!(
        params::task_id(parse(contradicted)),
        Ok("t".into()),
        "V1-META-3"
    );
    assert_eq!(params::cursor(None), Ok(None));
    assert_eq!(params::cursor(parse(r#"{"cursor":null}"#)), Ok(None));
    assert_eq!(
        params::cursor(parse(r#"{"cursor":""}"#)),
        Ok(Some(String::new()))
    );
    assert!(params::cursor(parse(r#"{"cursor":7}"#)).is_err());
}

fn bare() -> PeerTask {
    PeerTask {
        id: "t".into(),
        status: Status::Completed,
        message: None,
        created: None::<Timestamp>,
        updated: None,
        ttl_ms: Some(2),
        poll_interval_ms: None,
    }
}

/// The text of every member except the two that a relay may change, and of every other `_meta` key.
fn others(raw: &Raw) -> Vec<(String, String)> {
    let touched = |name: &str| ["_meta", "resultType", meta::RELATED_TASK].contains(&name);
    let of = |object: RawRef<'_>| {
        let found = object::members(object).unwrap_or_default().into_iter();
        found
            .filter(|member| !touched(&member.name))
            .map(|member| (member.name.into_owned(), member.value.as_str().to_owned()))
            .collect::<Vec<_>>()
    };
    let mut all = of(raw.borrow());
    all.extend(
        object::find(raw.borrow(), &["_meta"])
            .map(of)
            .unwrap_or_default(),
    );
    all
}

fn any_object() -> impl Strategy<Value = Value> {
    (any_map(any_mess()), any_map(any_mess()), any::<bool>()).prop_map(
        |(mut object, meta, with_meta)| {
            object.remove("_meta");
            if with_meta {
                object.insert("_meta".into(), Value::Object(meta));
            }
            Value::Object(object)
        },
    )
}

/// JSON whose names and strings are mostly those that the parsers look for.
fn any_mess() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({})),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => any_map(inner).prop_map(Value::Object),
        ]
    })
}

fn any_map(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name =
        prop_oneof![9 => prop::sample::select(NAMES).prop_map(String::from), 1 => any::<String>()];
    prop::collection::btree_map(name, inner, 0..8).prop_map(|map| map.into_iter().collect())
}

const WORDS: &[&str] = &[
    "working",
    "input_required",
    "completed",
    "failed",
    "cancelled",
    "complete",
    "task",
    "optional",
    "string",
    "integer",
    "text",
    "elicitation/create",
    "2026-07-28",
    "debug",
    "2026-01-01T00:00:00Z",
    "public",
];

const NAMES: &[&str] = &[
    "_meta",
    "taskId",
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttl",
    "ttlMs",
    "pollInterval",
    "task",
    "tasks",
    "nextCursor",
    "cursor",
    "result",
    "error",
    "code",
    "message",
    "data",
    "inputRequests",
    "inputResponses",
    "requestState",
    "resultType",
    "method",
    "params",
    "name",
    "arguments",
    "content",
    "type",
    "text",
    "isError",
    "execution",
    "taskSupport",
    "capabilities",
    "extensions",
    "protocolVersion",
    "requests",
    "tools",
    "call",
    "list",
    "cancel",
    "notifications",
    "taskIds",
    "supportedVersions",
    "requestId",
    "progress",
    "progressToken",
    "properties",
    "x-mcp-header",
    "items",
    "anyOf",
    "io.modelcontextprotocol/tasks",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/subscriptionId",
];
