//! Input requests of a handler: each belongs to one of its calls.

#![expect(
    deprecated,
    reason = "rmcp marks what 2026-07-28 deprecates; clients of 2025-11-25 have it"
)]

use std::sync::Arc;

use ::rmcp::model::{
    ClientResult, CreateMessageResult, ElicitResult, ErrorData, GetExtensions, JsonRpcMessage,
    ListRootsResult, RequestId, ServerRequest,
};
use ::rmcp::service::OriginatingRequestId;
use outlast_engine::engine::{CallContext, InputError};
use outlast_engine::{InputKind, InputRequest, InputResponse};
use outlast_wire::{Raw, RawRef, codes, object};

use super::messages;
use super::running_handler::{CallLookupError, Shared};
use crate::input_check;

impl Shared {
    /// Responds to a request of the handler in a spawned task.
    pub(super) fn handle_request(self: &Arc<Self>, id: RequestId, request: ServerRequest) {
        let shared = self.clone();
        let handle_request = id.clone();
        let asking = tokio::spawn(async move {
            let answer = match shared.request_input(&request).await {
                Ok(result) => JsonRpcMessage::response(result, handle_request.clone()),
                Err(error) => JsonRpcMessage::error(error, Some(handle_request.clone())),
            };
            shared.take_input_request(&handle_request);
            shared.respond(answer).await;
        });
        self.add_input_request(id, asking.abort_handle());
    }

    async fn request_input(&self, request: &ServerRequest) -> Result<ClientResult, ErrorData> {
        let params = messages::request_params(request);
        let kind = match request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::CreateMessageRequest(_) if has(&params, "tools") => {
                InputKind::SampleWithTools
            }
            ServerRequest::CreateMessageRequest(_) => InputKind::Sample,
            ServerRequest::ListRootsRequest(_) => InputKind::Roots,
            ServerRequest::ElicitRequest(_) if is_url(&params) => InputKind::ElicitUrl,
            ServerRequest::ElicitRequest(_) => InputKind::ElicitForm,
            _ => {
                let why = "the client supports only sampling, elicitation and roots";
                return Err(messages::error_for_handler(codes::METHOD_NOT_FOUND, why));
            }
        };
        let call = self.call_of(request)?;
        let answered = call
            .request_input(InputRequest::new(kind, params.clone()))
            .await;
        match answered.map(|answer| input_check::checked(kind, params.as_ref(), answer)) {
            Ok(InputResponse::Result(result)) => read(kind, &result),
            Ok(InputResponse::Error(error)) => Err(error.open().unwrap_or_else(|_| {
                messages::error_for_handler(
                    codes::INTERNAL_ERROR,
                    "the client responded with a malformed error",
                )
            })),
            Err(error @ InputError::Unsupported(_)) => Err(messages::error_for_handler(
                codes::METHOD_NOT_FOUND,
                error.to_string(),
            )),
            Err(error) => Err(messages::error_for_handler(
                codes::INTERNAL_ERROR,
                error.to_string(),
            )),
        }
    }

    /// The call of an input request. rmcp marks requests that are sent inside a handler.
    fn call_of(&self, request: &ServerRequest) -> Result<CallContext, ErrorData> {
        let origin = request.extensions().get::<OriginatingRequestId>();
        self.call(origin.map(|origin| &origin.0)).map_err(|error| {
            let why = match error {
                CallLookupError::NoCall => "an input request can be sent only while a call runs",
                CallLookupError::SeveralCalls => {
                    "several calls run and this request names none of them; send it from the handler of the call, not from a spawned task"
                }
            };
            messages::error_for_handler(codes::INVALID_REQUEST, why)
        })
    }
}

/// A response as rmcp's type.
fn read(kind: InputKind, result: &Raw) -> Result<ClientResult, ErrorData> {
    let read = match kind {
        InputKind::Sample | InputKind::SampleWithTools => result
            .open()
            .map(|result: CreateMessageResult| ClientResult::CreateMessageResult(Box::new(result))),
        InputKind::Roots => result
            .open()
            .map(|result: ListRootsResult| ClientResult::ListRootsResult(result)),
        InputKind::ElicitForm | InputKind::ElicitUrl => result
            .open()
            .map(|result: ElicitResult| ClientResult::ElicitResult(result)),
    };
    read.map_err(|error| {
        let why = format!(
            "the client's response to {} is invalid: {error}",
            kind.word()
        );
        messages::error_for_handler(codes::INTERNAL_ERROR, why)
    })
}

fn has(params: &Option<Raw>, name: &str) -> bool {
    let found = params
        .as_ref()
        .and_then(|params| object::find(params.borrow(), &[name]));
    found.is_some_and(|value| !value.is_null())
}

fn is_url(params: &Option<Raw>) -> bool {
    let mode = params
        .as_ref()
        .and_then(|params| object::find(params.borrow(), &["mode"]));
    mode.and_then(RawRef::text).as_deref() == Some("url")
}
