//! Converts raw messages to rmcp's types and back. Members that rmcp's types do not have are lost
//! on the way to the handler only.

use ::rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetExtensions, RequestId, ServerNotification,
    ServerRequest,
};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes, log, method, object, tool, v1};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::HttpParts;

/// A request for the handler.
pub(super) fn request(method: &str, params: Option<&Raw>) -> Result<ClientRequest, ErrorObject> {
    let request: ClientRequest = typed(method, params.map(Raw::borrow))?;
    // rmcp parses invalid params of a known method as a custom request.
    match &request {
        ClientRequest::CustomRequest(_) if TYPED_METHODS.contains(&method) => {
            let why = format!("the params of {method} are invalid");
            Err(codes::invalid_params(why))
        }
        // The handler is a legacy server without tasks.
        ClientRequest::DiscoverRequest(_)
        | ClientRequest::SubscriptionsListenRequest(_)
        | ClientRequest::GetTaskRequest(_)
        | ClientRequest::UpdateTaskRequest(_)
        | ClientRequest::CancelTaskRequest(_) => Err(codes::method_not_found(method)),
        _ => Ok(request),
    }
}

/// Adds the head of the HTTP request, as rmcp's own server does.
pub(super) fn with_http(mut request: ClientRequest, http: Option<&HttpParts>) -> ClientRequest {
    if let Some(http) = http {
        request.extensions_mut().insert(http.clone());
    }
    request
}

/// A notification for the handler.
pub(super) fn notification(
    method: &str,
    params: Option<RawRef<'_>>,
) -> Result<ClientNotification, ErrorObject> {
    typed(method, params)
}

/// A cancellation of a request.
pub(super) fn cancelled(request: &RequestId) -> Option<ClientNotification> {
    let params = serde_json::json!({ "requestId": request });
    let params = Raw::encode(&params).ok()?;
    notification(outlast_wire::notice::CANCELLED, Some(params.borrow())).ok()
}

/// The params of a request of the handler.
pub(super) fn request_params(request: &ServerRequest) -> Option<Raw> {
    params(request)
}

/// The method and the params of a notification of the handler.
pub(super) fn method_and_params(
    notification: &ServerNotification,
) -> Option<(String, Option<Raw>)> {
    let raw = Raw::encode(notification).ok()?;
    let [method, params] = object::pick(raw.borrow(), ["method", "params"]).ok()?;
    Some((method?.text()?.into_owned(), params.map(RawRef::to_raw)))
}

/// An error response of the handler.
pub(super) fn error_of_handler(error: &ErrorData) -> ErrorObject {
    let object = ErrorObject::new(i64::from(error.code.0), error.message.clone());
    match error.data.as_ref().map(Raw::encode) {
        Some(Ok(data)) => object.with_data(data),
        _ => object,
    }
}

/// An error for the handler.
pub(super) fn error_for_handler(code: i64, why: impl Into<String>) -> ErrorData {
    let code = i32::try_from(code).unwrap_or(codes::INTERNAL_ERROR as i32);
    ErrorData::new(::rmcp::model::ErrorCode(code), why.into(), None)
}

fn params(message: &impl Serialize) -> Option<Raw> {
    let raw = Raw::encode(message).ok()?;
    let [params] = object::pick(raw.borrow(), ["params"]).ok()?;
    params.map(RawRef::to_raw)
}

fn typed<T: DeserializeOwned>(method: &str, params: Option<RawRef<'_>>) -> Result<T, ErrorObject> {
    #[derive(Serialize)]
    struct Message<'a> {
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<RawRef<'a>>,
    }
    let invalid = |error: serde_json::Error| codes::invalid_params(format!("{method}: {error}"));
    let text = serde_json::to_string(&Message { method, params }).map_err(invalid)?;
    serde_json::from_str(&text).map_err(invalid)
}

/// Methods whose params have types in rmcp.
const TYPED_METHODS: [&str; 12] = [
    v1::method::INITIALIZE,
    method::COMPLETE,
    log::SET_LEVEL,
    method::PROMPTS_GET,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    tool::CALL,
    tool::LIST,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &str) -> Result<ClientRequest, ErrorObject> {
        request(method, Some(&Raw::parse(params.into()).unwrap()))
    }

    #[test]
    fn known_methods_are_typed_and_others_are_custom() {
        let called = read("tools/call", r#"{"name":"x","arguments":{},"unknown":1}"#);
        assert!(matches!(called, Ok(ClientRequest::CallToolRequest(_))));
        let own = read("acme/anything", r#"{"a":1}"#);
        assert!(matches!(own, Ok(ClientRequest::CustomRequest(_))));
        assert!(matches!(
            request("prompts/list", None),
            Ok(ClientRequest::ListPromptsRequest(_))
        ));
    }

    #[test]
    fn the_error_for_invalid_params_names_the_method() {
        let invalid = read("resources/read", r#"{"uri":7}"#).unwrap_err();
        assert_eq!(invalid.code, codes::INVALID_PARAMS);
        assert!(
            invalid.message.contains("resources/read"),
            "{}",
            invalid.message
        );
    }

    #[test]
    fn task_and_modern_methods_do_not_reach_the_handler() {
        for method in ["tasks/get", "tasks/cancel", "server/discover"] {
            let refused = read(method, r#"{"taskId":"t"}"#).map(|_| ()).unwrap_err();
            assert_eq!(refused.code, codes::METHOD_NOT_FOUND, "{method}");
        }
    }
}
