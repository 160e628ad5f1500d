//! Forms from schema to value and back.

use serde_json::{Value, json};

use super::*;

/// The schema as it is written here: `json!` would sort the members.
fn form(schema: &str) -> Form {
    Form::of_schema(RawRef::parse(schema).expect("the schema is JSON"))
}

fn entries(pairs: &[(&str, &str)]) -> Entries {
    let pairs = pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    pairs.collect()
}

const ORDER: &str = r##"{
    "type": "object",
    "required": ["name", "address", "tags", "sure"],
    "properties": {
        "name": { "type": "string", "title": "Name", "minLength": 2, "pattern": "^[a-z]+$" },
        "zip": { "type": "integer", "minimum": 1 },
        "address": { "$ref": "#/$defs/Address" },
        "second": { "$ref": "#/$defs/Address" },
        "tags": { "type": "array", "minItems": 1, "items": { "type": "string" } },
        "rows": { "type": "array", "items": { "type": "object", "required": ["a"],
            "properties": { "a": { "type": "integer" }, "b": { "type": "boolean", "default": true } } } },
        "colours": { "type": "array", "items": { "enum": ["red", "blue"] }, "maxItems": 1 },
        "sure": { "type": "boolean" },
        "maybe": { "type": "boolean" },
        "any": {}
    },
    "$defs": { "Address": { "type": "object", "required": ["city"],
        "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } }
}"##;

#[test]
fn fields_keep_the_order_of_the_schema() {
    let form = form(
        r#"{"type":"object","properties":{"name":{},"check":{},"email":{},"age":{}},"required":["name"]}"#,
    );
    let names: Vec<_> = form.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["name", "check", "email", "age"]);
    let required: Vec<_> = form.fields.iter().map(|field| field.required).collect();
    assert_eq!(required, [true, false, false, false]);
}

#[test]
fn a_schema_without_properties_has_no_fields() {
    assert!(form(r#"{"type":"object"}"#).fields.is_empty());
    assert!(form("7").fields.is_empty());
    let read = form(r#"{"type":"object"}"#).read(&Entries::default());
    assert_eq!(read.unwrap().as_str(), "{}");
}

#[test]
fn nested_fields_lists_and_choices_become_one_value() {
    let typed = entries(&[
        ("/name", "ada"),
        ("/zip", "90071992547409931234"),
        ("/address/city", "London\r\nUK"),
        ("/tags", "2"),
        ("/tags/0", "a"),
        ("/tags/1", "b"),
        ("/rows", "1"),
        ("/rows/0/a", "7"),
        ("/colours", "\"red\""),
        ("/maybe", "false"),
        ("/any", "[1, 2.50]"),
    ]);
    let value = form(ORDER).read(&typed).unwrap();
    assert_eq!(
        value.as_str(),
        r#"{"name":"ada","zip":90071992547409931234,"address":{"city":"London\nUK"},"tags":["a","b"],"rows":[{"a":7,"b":false}],"colours":["red"],"sure":false,"maybe":false,"any":[1, 2.50]}"#
    );
}

#[test]
fn each_wrong_field_has_its_message() {
    let typed = entries(&[
        ("/name", "A"),
        ("/zip", "0"),
        ("/second", "on"),
        ("/rows", "1"),
        ("/rows/0/a", "x"),
        ("/colours", "\"red\""),
        ("/colours", "\"blue\""),
        ("/any", "{"),
    ]);
    let faults = form(ORDER).read(&typed).unwrap_err();
    let wrong: Vec<_> = faults
        .iter()
        .map(|(pointer, why)| (pointer.as_str(), why.as_str()))
        .collect();
    assert_eq!(wrong[0], ("/address/city", "this field is required"));
    assert!(wrong[1].0 == "/any" && wrong[1].1.starts_with("this is not JSON"));
    assert_eq!(
        wrong[2..],
        [
            ("/colours", "at most 1 choices"),
            ("/name", "at least 2 characters"),
            ("/rows/0/a", "type a whole number"),
            ("/second/city", "this field is required"),
            ("/tags", "at least 1 items"),
            ("/zip", "at least 1"),
        ]
    );
}

#[test]
fn the_whole_schema_is_checked_with_messages_per_field() {
    let typed = entries(&[
        ("/name", "ADA"),
        ("/address/city", "x"),
        ("/tags", "1"),
        ("/tags/0", "x"),
    ]);
    let faults = form(ORDER).read(&typed).unwrap_err();
    assert_eq!(faults.keys().collect::<Vec<_>>(), ["/name"]);
}

#[test]
fn a_value_survives_the_way_through_the_form() {
    let value = r#"{"name":"ada","zip":90071992547409931234,"address":{"city":"x"},"second":{"street":"a\nb","city":"y"},"tags":["a","b"],"rows":[{"a":7,"b":true},{"a":8,"b":false}],"colours":["blue"],"sure":true,"maybe":false,"any":{"x":1.0},"more":[1]}"#;
    let form = form(ORDER);
    let raw = RawRef::parse(value).unwrap();
    let entries = form.entries(raw).unwrap();
    assert_eq!(form.read(&entries).unwrap().as_str(), value);
}

#[test]
fn a_value_that_the_form_would_change_is_refused() {
    let form = form(ORDER);
    for (value, pointer) in [
        (r#"{"name":7}"#, "/name"),
        (r#"{"name":""}"#, "/name"),
        (r#"{"name":"a\rb"}"#, "/name"),
        (r#"{"zip":"7"}"#, "/zip"),
        (r#"{"zip":null}"#, "/zip"),
        (r#"{"rows":[]}"#, "/rows"),
        (r#"{"rows":[{"a":"x"}]}"#, "/rows/0/a"),
        (r#"{"colours":["green"]}"#, "/colours"),
        (r#"{"colours":["red","red"]}"#, "/colours"),
        (r#"{"sure":1}"#, "/sure"),
        ("[]", ""),
    ] {
        let refused = form.entries(RawRef::parse(value).unwrap()).unwrap_err();
        assert_eq!(refused.pointer, pointer, "{value}");
    }
}

#[test]
fn an_untouched_form_has_the_defaults() {
    let form = form(
        r#"{"type":"object","required":["list"],"properties":{
            "steps":{"type":"integer","default":5},"dry":{"type":"boolean","default":true},
            "mode":{"enum":["a","b"],"default":"b"},"wrong":{"type":"integer","default":"x"},
            "none":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},
            "list":{"type":"array","minItems":2,"items":{"type":"string","default":"q"}}}}"#,
    );
    let entries = form.defaults();
    let value = form.read(&entries).unwrap();
    assert_eq!(
        value.as_str(),
        r#"{"steps":5,"dry":true,"mode":"b","list":["q","q"]}"#
    );
}

#[test]
fn a_view_shows_hostile_names_as_they_are() {
    let name = "a/b~<script>\"'";
    let schema =
        json!({ "type": "object", "properties": { name: { "type": "string", "maxLength": 5 } } });
    let form = form(&schema.to_string());
    let mut typed = Entries::default();
    typed.set("/a~1b~0<script>\"'", "toolong");
    let faults = form.read(&typed).unwrap_err();
    let view = form.view(&typed, &faults);
    assert_eq!(view[0].title, name);
    assert_eq!(view[0].pointer, "/a~1b~0<script>\"'");
    assert_eq!(view[0].fault.as_deref(), Some("at most 5 characters"));
    assert!(matches!(&view[0].control, Control::Line { text, .. } if text == "toolong"));
    typed.set("/a~1b~0<script>\"'", "ok");
    let value: Value = form.read(&typed).unwrap().open().unwrap();
    assert_eq!(value, json!({ name: "ok" }));
}
