//! Sample values for all types.

use outlast_wire::envelope::{ErrorObject, Id, write};
use outlast_wire::log::{self, Level, Log};
use outlast_wire::neutral::{Ending, InputRequestView, Phase, TaskView};
use outlast_wire::notice::{self, Progress};
use outlast_wire::v2::{self, Filter, InputResponseEntry};
use outlast_wire::{Raw, RawRef, Timestamp, codes, version};

pub(crate) fn views() -> Vec<TaskView<'static>> {
    let phases = [
        Phase::Working,
        Phase::AwaitingInput,
        Phase::Ended(Ending::Result),
        Phase::Ended(Ending::ToolError),
        Phase::Ended(Ending::Error),
        Phase::Ended(Ending::Cancelled),
    ];
    let bare = |phase| TaskView {
        id: "7f3a",
        phase,
        message: None,
        created: Timestamp(1_785_196_800_000),
        updated: Timestamp(1_785_196_800_500),
        ttl_ms: None,
        poll_interval_ms: None,
    };
    let full = |phase| TaskView {
        message: Some("line\n\"quoted\" \u{1f600}"),
        ttl_ms: Some(u64::MAX),
        poll_interval_ms: Some(0),
        ..bare(phase)
    };
    phases
        .into_iter()
        .flat_map(|phase| [bare(phase), full(phase)])
        .collect()
}

pub(crate) fn outcome(view: &TaskView<'_>) -> Raw {
    match view.phase {
        Phase::Ended(Ending::Error) => codes::task_cancelled("t").to_raw(),
        _ => tool_result(),
    }
}

pub(crate) fn tool_result() -> Raw {
    raw(
        r#"{"content":[{"type":"text","text":"done"}],"isError":false,"structuredContent":{"n":1},"_meta":{"k":1}}"#,
    )
}

pub(crate) fn request_entries() -> Vec<(&'static str, &'static str, Option<Raw>)> {
    let form = raw(
        r#"{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"b":{"type":"string"}}}}"#,
    );
    let sampling =
        raw(r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}"#);
    vec![
        ("a", "elicitation/create", Some(form)),
        ("b", "sampling/createMessage", Some(sampling)),
        ("c", "roots/list", None),
    ]
}

pub(crate) fn input_requests<'a>(
    request_entries: &'a [(&'static str, &'static str, Option<Raw>)],
) -> Vec<InputRequestView<'a>> {
    let view =
        |(key, method, params): &'a (&'static str, &'static str, Option<Raw>)| InputRequestView {
            key,
            method,
            params: params.as_ref(),
        };
    request_entries.iter().map(view).collect()
}

pub(crate) fn input_responses() -> Vec<InputResponseEntry> {
    let result = raw(r#"{"action":"accept","content":{"b":"main"}}"#);
    vec![InputResponseEntry {
        key: "a".into(),
        result,
    }]
}

pub(crate) fn filters() -> Vec<Filter> {
    let all = Filter {
        tools_list_changed: true,
        prompts_list_changed: true,
        resources_list_changed: true,
        resource_subscriptions: vec!["file:///x".into()],
        task_ids: Some(vec!["t".into()]),
    };
    vec![Filter::default(), all]
}

pub(crate) fn shared_notifications() -> Vec<(&'static str, Raw)> {
    let message = |method, params: Raw| raw(&write::notification(method, Some(params.borrow())));
    let report = |token, total, words: Option<&str>| {
        let progress = Progress {
            token,
            progress: 0.5,
            total,
            message: words.map(Into::into),
        };
        message(notice::PROGRESS, progress.to_raw())
    };
    let log = |logger: Option<&str>, data: &str| {
        let log = Log {
            level: Level::Notice,
            logger: logger.map(Into::into),
            data: raw(data),
        };
        message(log::MESSAGE, log.to_raw())
    };
    let cancel = |id: &Id, reason| message(notice::CANCELLED, notice::cancelling(id, reason));
    vec![
        (
            "ProgressNotification",
            report(Id::from(1), Some(2.0), Some("half")),
        ),
        ("ProgressNotification", report(Id::text("p"), None, None)),
        ("LoggingMessageNotification", log(None, "\"text\"")),
        ("LoggingMessageNotification", log(Some("part"), "null")),
        ("CancelledNotification", cancel(&Id::from(1), None)),
        (
            "CancelledNotification",
            cancel(&Id::text("x"), Some("enough")),
        ),
    ]
}

pub(crate) fn shared_errors() -> Vec<(&'static str, Raw)> {
    let nameless = write::error(None, codes::invalid_request("no").to_raw().borrow());
    vec![
        ("Error", codes::task_expired().to_raw()),
        ("Error", codes::task_cancelled("t").to_raw()),
        ("JSONRPCErrorResponse", error(&codes::invalid_params("no"))),
        ("JSONRPCErrorResponse", raw(&nameless)),
        ("JSONRPCMessage", error(&codes::task_not_found())),
    ]
}

pub(crate) fn request(method: &str, params: &Raw) -> Raw {
    raw(&write::request(&Id::from(1), method, Some(params.borrow())))
}

pub(crate) fn error(error: &ErrorObject) -> Raw {
    raw(&write::error(Some(&Id::from(1)), error.to_raw().borrow()))
}

pub(crate) fn modern(params: &Raw) -> Raw {
    let capabilities = v2::declare_tasks(RawRef::parse("{}").unwrap()).unwrap();
    let params = Some(params.borrow());
    v2::request_params(
        params,
        version::MODERN,
        capabilities.borrow(),
        Some(info().borrow()),
    )
    .unwrap()
}

pub(crate) fn info() -> Raw {
    raw(r#"{"name":"outlast","version":"0.1.0"}"#)
}

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}
