//! The protocol around V2 tasks, against the schema of 2026-07-28.

use outlast_wire::envelope::{ErrorObject, Id, write};
use outlast_wire::v2::{CacheHint, CacheScope, ResultMembers, Retry};
use outlast_wire::{codes, tool, v2, version};

use crate::official::Schemas;
use crate::samples::{
    error, filters, info, input_requests, input_responses, modern, raw, request, request_entries,
    shared_errors, shared_notifications, tool_result,
};

#[test]
fn every_v2_shape_fits_the_schema_of_2026_07_28() {
    let schemas = Schemas::read(include_str!("../schemas/mcp-2026-07-28.json"));
    let mut shapes = Vec::new();
    let capabilities = v2::declare_tasks(raw(r#"{"tools":{}}"#).borrow()).unwrap();
    let info = info();
    let cache = CacheHint {
        ttl_ms: 60_000,
        scope: CacheScope::Private,
    };
    let discovered = v2::discover_result(
        &[version::MODERN],
        capabilities.borrow(),
        Some("use it"),
        info.borrow(),
        cache,
    );
    shapes.push(("DiscoverResult", discovered));
    shapes.push(("ServerCapabilities", capabilities.clone()));
    shapes.push((
        "DiscoverRequest",
        request(v2::method::DISCOVER, &modern(&raw("{}"))),
    ));
    shapes.push((
        "CallToolRequest",
        request(tool::CALL, &modern(&raw(r#"{"name":"x"}"#))),
    ));
    let retry = Retry {
        input_responses: input_responses(),
        state: Some("s".into()),
    };
    let retry = v2::retry_params(modern(&raw(r#"{"name":"x"}"#)).borrow(), &retry).unwrap();
    shapes.push(("CallToolRequest", request(tool::CALL, &retry)));
    let request_entries = request_entries();
    for (input_requests, state) in [
        (input_requests(&request_entries), None),
        (input_requests(&request_entries), Some("s")),
        (vec![], Some("s")),
    ] {
        let result = v2::input_required_result(&input_requests, state).unwrap();
        shapes.push(("InputRequiredResult", result));
    }
    for filter in filters() {
        let listen = modern(&v2::listen_params(&filter));
        shapes.push((
            "SubscriptionsListenRequest",
            request(v2::method::LISTEN, &listen),
        ));
        let acknowledged = v2::acknowledged_params(&Id::from(0), &filter);
        let message = write::notification(v2::method::ACKNOWLEDGED, Some(acknowledged.borrow()));
        shapes.push(("SubscriptionsAcknowledgedNotification", raw(&message)));
    }
    shapes.push((
        "SubscriptionsListenResult",
        v2::listen_result(&Id::text("l")),
    ));
    let tools = raw(r#"{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}"#);
    let mut finish = ResultMembers {
        complete: true,
        cache: Some(cache),
        info: Some(info.borrow()),
    };
    shapes.push(("ListToolsResult", finish.apply(tools.borrow()).unwrap()));
    finish.cache = None;
    let called = finish.apply(tool_result().borrow()).unwrap();
    shapes.push(("CallToolResult", called));
    shapes.push(("EmptyResult", v2::ack()));

    let missing = codes::missing_capability("no tasks", v2::required_capability().borrow());
    shapes.push(("MissingRequiredClientCapabilityError", error(&missing)));
    let version = codes::unsupported_version("v999", &[version::MODERN]);
    shapes.push(("UnsupportedProtocolVersionError", error(&version)));
    shapes.push((
        "HeaderMismatchError",
        error(&codes::header_mismatch("differs")),
    ));
    shapes.push(("InvalidParamsError", codes::task_not_found().to_raw()));
    shapes.push(("InvalidRequestError", codes::invalid_request("no").to_raw()));
    shapes.push((
        "MethodNotFoundError",
        codes::method_not_found("tasks/list").to_raw(),
    ));
    shapes.push(("InternalError", codes::internal("no").to_raw()));
    shapes.push((
        "ParseError",
        ErrorObject::new(codes::PARSE_ERROR, "no").to_raw(),
    ));
    shapes.extend(shared_notifications());
    shapes.extend(shared_errors());
    schemas.accept(&shapes);
}
