//! V1 shapes, against the schema of 2025-11-25.

use outlast_wire::envelope::write;
use outlast_wire::{codes, meta, params, tool, v1, version};

use crate::official::Schemas;
use crate::samples::{
    error, info, raw, request, shared_errors, shared_notifications, tool_result, views,
};

#[test]
fn every_v1_shape_fits_the_schema_of_2025_11_25() {
    let schemas = Schemas::read(include_str!("../schemas/mcp-2025-11-25.json"));
    let mut shapes = Vec::new();
    for view in views() {
        shapes.push(("Task", v1::task(&view)));
        shapes.push(("GetTaskResult", v1::task(&view)));
        shapes.push(("CancelTaskResult", v1::task(&view)));
        shapes.push(("CreateTaskResult", v1::create_result(&view, None)));
        shapes.push((
            "CreateTaskResult",
            v1::create_result(&view, Some("started")),
        ));
        shapes.push(("TaskStatusNotificationParams", v1::task(&view)));
        let status = write::notification(v1::method::STATUS, Some(v1::task(&view).borrow()));
        shapes.push(("TaskStatusNotification", raw(&status)));
        shapes.push(("ServerNotification", raw(&status)));
        shapes.push(("ClientNotification", raw(&status)));
    }
    shapes.push(("ListTasksResult", v1::list_result(views(), Some("next"))));
    shapes.push(("ListTasksResult", v1::list_result([], None)));
    shapes.push((
        "CallToolResult",
        v1::payload_result(tool_result().borrow(), "t").unwrap(),
    ));
    shapes.push((
        "GetTaskPayloadResult",
        v1::payload_result(tool_result().borrow(), "t").unwrap(),
    ));
    let marked = meta::relate(raw("{}").borrow(), "t").unwrap();
    let mark = meta::value(marked.borrow(), meta::RELATED_TASK)
        .unwrap()
        .to_raw();
    shapes.push(("RelatedTaskMetadata", mark));

    for (name, method) in [
        ("GetTaskRequest", v1::method::GET),
        ("GetTaskPayloadRequest", v1::method::RESULT),
        ("CancelTaskRequest", v1::method::CANCEL),
    ] {
        shapes.push((name, request(method, &params::naming("t"))));
    }
    shapes.push((
        "ListTasksRequest",
        request(v1::method::LIST, &params::continuing(Some("c"))),
    ));
    shapes.push((
        "ListTasksRequest",
        request(v1::method::LIST, &params::continuing(None)),
    ));
    let call = raw(r#"{"name":"x","arguments":{}}"#);
    for ttl_ms in [None, Some(60_000)] {
        let call = v1::augment(call.borrow(), v1::TaskRequest { ttl_ms }).unwrap();
        shapes.push(("CallToolRequest", request(tool::CALL, &call)));
    }

    let empty = raw("{}");
    let server = v1::ServerTasks {
        list: true,
        cancel: true,
        tools_call: true,
    };
    let server = server.declare(empty.borrow()).unwrap();
    let client = v1::ClientTasks {
        list: true,
        cancel: true,
        sampling: true,
        elicitation: true,
    };
    let client = client.declare(empty.borrow()).unwrap();
    shapes.push(("ServerCapabilities", server.clone()));
    shapes.push(("ClientCapabilities", client.clone()));
    let opening = v1::initialize_params(version::LEGACY, client.borrow(), info().borrow());
    shapes.push((
        "InitializeRequest",
        request(v1::method::INITIALIZE, &opening),
    ));
    let answer = v1::initialize_result(
        version::LEGACY,
        server.borrow(),
        info().borrow(),
        Some("hi"),
    );
    shapes.push(("InitializeResult", answer));
    let plain_tool = raw(r#"{"name":"x","inputSchema":{"type":"object"}}"#);
    for support in [
        v1::TaskSupport::Optional,
        v1::TaskSupport::Required,
        v1::TaskSupport::Forbidden,
    ] {
        shapes.push((
            "Tool",
            v1::set_task_support(plain_tool.borrow(), support).unwrap(),
        ));
    }
    let elicitations =
        r#"[{"mode":"url","elicitationId":"e","url":"https://example.org","message":"sign in"}]"#;
    let first = codes::url_elicitation_required("sign in first", raw(elicitations).borrow());
    shapes.push(("URLElicitationRequiredError", error(&first)));
    shapes.extend(shared_notifications());
    shapes.extend(shared_errors());
    schemas.accept(&shapes);
}
