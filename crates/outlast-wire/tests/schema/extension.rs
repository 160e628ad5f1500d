//! V2 task shapes, against the schema of the tasks extension.

use outlast_wire::envelope::{Id, write};
use outlast_wire::{Raw, params, v2};
use serde_json::Value;

use crate::official::Schemas;
use crate::samples::{
    filters, input_requests, input_responses, modern, outcome, raw, request, request_entries,
    tool_result, views,
};

#[test]
fn every_v2_shape_fits_the_schema_of_the_extension() {
    let schemas = Schemas::read(include_str!("../schemas/ext-tasks.json"));
    let mut shapes = Vec::new();
    for view in views() {
        shapes.push(("CreateTaskResult", v2::create_result(&view)));
        let (outcome, request_entries) = (outcome(&view), request_entries());
        let input_requests = input_requests(&request_entries);
        shapes.push((
            "GetTaskResult",
            v2::get_result(&view, Some(&outcome), &input_requests).unwrap(),
        ));
        for id in [Id::from(0), Id::text("listen")] {
            let params =
                v2::notification_params(&view, Some(&outcome), &input_requests, &id).unwrap();
            shapes.push(("TaskStatusNotificationParams", params.clone()));
            let message = write::notification(v2::method::TASKS, Some(params.borrow()));
            shapes.push(("TaskStatusNotification", raw(&message)));
        }
    }
    shapes.push(("UpdateTaskResult", v2::ack()));
    shapes.push(("CancelTaskResult", v2::ack()));
    let update = modern(&v2::update_params("t", &input_responses()));
    shapes.push(("UpdateTaskRequest", request(v2::method::UPDATE, &update)));
    let naming = modern(&params::naming("t"));
    shapes.push(("GetTaskRequest", request(v2::method::GET, &naming)));
    shapes.push(("CancelTaskRequest", request(v2::method::CANCEL, &naming)));
    let declared = v2::declare_tasks(raw("{}").borrow()).unwrap();
    shapes.push(("ClientTaskCapabilityEnvelope", declared.clone()));
    shapes.push(("ServerTaskCapabilityEnvelope", declared));
    shapes.push(("ClientTaskCapabilityEnvelope", v2::required_capability()));
    shapes.push((
        "CallToolResult",
        v2::ResultMembers::default()
            .apply(tool_result().borrow())
            .unwrap(),
    ));
    for filter in filters() {
        let notifications: Value = v2::listen_params(&filter).open().unwrap();
        let notifications = Raw::encode(&notifications["notifications"]).unwrap();
        shapes.push(("TaskSubscriptionNotifications", notifications.clone()));
        shapes.push(("TaskSubscriptionAcknowledgedNotifications", notifications));
    }
    let request_entries = request_entries();
    for (input_requests, state) in [
        (input_requests(&request_entries), None),
        (input_requests(&request_entries), Some("s")),
        (vec![], Some("s")),
    ] {
        let result = v2::input_required_result(&input_requests, state).unwrap();
        shapes.push(("InputRequiredCallToolResult", result));
    }
    schemas.accept(&shapes);
}
