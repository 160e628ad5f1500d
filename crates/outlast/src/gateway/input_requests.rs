//! Input requests of an upstream: each is sent to the caller of one of the active calls.

use std::sync::Weak;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EngineError, InputError, UnconfirmedResponse};
use outlast_engine::transition::Refused;
use outlast_engine::{InputKey, InputKind, InputKinds, InputRequest, InputResponse, InputTiming};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, codes, meta, object, version};
use sha2::{Digest, Sha256};

use super::active_calls::CallLookupError;
use super::connection::Shared;
use super::url_elicitation;
use crate::client::{ClientHandler, ServerInputRequest, dismiss};
use crate::input_check;
use crate::server::RequestParts;

/// Sends the input requests of an upstream to the callers of its calls.
pub(super) struct InputRequestForwarder(pub(super) Weak<Shared>, pub(super) InputKinds);

#[async_trait]
impl ClientHandler for InputRequestForwarder {
    fn accepts(&self) -> InputKinds {
        self.1
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        let kind = request.kind;
        let Some(shared) = self.0.upgrade() else {
            return dismiss(kind);
        };
        let call = match shared
            .calls
            .find(request.call.as_deref(), request.task.as_deref())
        {
            Ok(slot) => match slot.bound().await {
                Some(call) => call,
                None => return dismiss(kind),
            },
            Err(CallLookupError::NoCall) if request.task.is_none() => {
                return send_without_call(&shared, request).await;
            }
            Err(error) => return refused(&lookup_error(error)),
        };
        let mut input_request =
            InputRequest::new(kind, request.params.clone().map(params_without_task));
        let key_prefix = key_prefix(&call, &request, &input_request);
        if kind == InputKind::ElicitUrl {
            let params = input_request.params.take();
            input_request.params = params.map(|params| url_elicitation::for_caller(params, &call));
        }
        if request.key.is_some() && request.task.is_none() {
            // The upstream returned the request instead of starting its work. Our caller can get
            // the same.
            input_request.timing = InputTiming::BeforeWork;
        }
        match send_to_caller(&shared, &call, &request, &key_prefix, input_request).await {
            Ok(answer) => {
                without_task_meta(input_check::checked(kind, request.params.as_ref(), answer))
            }
            // The gateway closes and its next run continues the task: the request stays open at the
            // upstream, and the next run sends the response.
            Err(InputError::Withdrawn) if call.is_interrupted() => std::future::pending().await,
            // BR-IN-5, BR-CAN-12: no response will come.
            Err(InputError::Withdrawn) => dismiss(kind),
            Err(error @ InputError::Unsupported(_)) => refused(&ErrorObject::new(
                codes::METHOD_NOT_FOUND,
                error.to_string(),
            )),
            Err(error) => refused(&codes::internal(error.to_string())),
        }
    }
}

/// Sends an input request that belongs to no call to one client with a session, preferably one with
/// an open stream (BR-IN-12).
async fn send_without_call(shared: &Shared, request: ServerInputRequest) -> InputResponse {
    let mut clients = shared.listeners.clients();
    clients.retain(|client| client.has_session());
    let listens = clients.iter().rposition(|client| client.is_listening());
    let params = request.params.map(params_without_task);
    let response = match listens.map_or(clients.last(), |at| clients.get(at)) {
        Some(client) => client.send_request(request.kind, params.as_ref()).await,
        None => None,
    };
    response.map_or_else(
        || refused(&lookup_error(CallLookupError::NoCall)),
        without_task_meta,
    )
}

/// The params without the id of the upstream's task.
fn params_without_task(params: Raw) -> Raw {
    meta::unrelate(params.borrow()).unwrap_or(params)
}

/// Sends an input request under the key `key_prefix`, or under a numbered variant if the call used
/// that key before (BR-IN-1). A request that a previous run of this process sent is not sent again.
async fn send_to_caller(
    shared: &Shared,
    call: &CallContext,
    request: &ServerInputRequest,
    key_prefix: &str,
    input_request: InputRequest,
) -> Result<InputResponse, InputError> {
    let has_prefix = |key: &InputKey| {
        let rest = key.as_str().strip_prefix(key_prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(NUMBER_SEPARATOR))
    };
    if let Some(recovered) = shared.calls.take_recovered(call.id(), has_prefix) {
        match recovered.response {
            // The response goes to the request from before the restart and to this one.
            Some(mut response) => {
                if let Ok(response) = response.wait_for(Option::is_some).await
                    && let Some(response) = response.clone()
                {
                    return Ok(response);
                }
            }
            None => match call.response_to(recovered.key).await {
                // It was withdrawn meanwhile.
                Err(InputError::Withdrawn) => {}
                response => return Ok(response_for_upstream(response?, request)),
            },
        }
    }
    let record = shared.calls.record(call);
    let mut key = InputKey::new(key_prefix);
    for again in 2_u32.. {
        if let Some(id) = &request.request {
            record.add_request(&key, id, call).await;
        }
        match call.request_input_as(key, input_request.clone()).await {
            Err(InputError::Engine(EngineError::Refused(Refused::KeyReused(_)))) => {
                key = InputKey::new(format!("{key_prefix}{NUMBER_SEPARATOR}{again}"));
            }
            answered => {
                let answered = answered?;
                return Ok(if record.is_stored(&answered.key).await {
                    // The next run of this process sends it if this one does not.
                    answered.response
                } else {
                    response_for_upstream(answered, request)
                });
            }
        }
    }
    Err(InputError::Withdrawn)
}

/// The response for the upstream. The response to a request of a V2 task stays stored, because the
/// upstream lists the request until it has received the response.
fn response_for_upstream(
    answered: UnconfirmedResponse,
    request: &ServerInputRequest,
) -> InputResponse {
    match (&request.key, &request.task) {
        (Some(_), Some(_)) => answered.response,
        _ => answered.confirm_soon(),
    }
}

/// The key for an input request (BR-IN-1): the upstream's key for a request of its V2 task, or
/// while rounds before the work pass through to a modern caller without a task; else a generated
/// one.
fn key_prefix(
    call: &CallContext,
    request: &ServerInputRequest,
    input_request: &InputRequest,
) -> String {
    let is_transient = || {
        let arrival = call.local_data::<RequestParts>();
        let is_modern = |arrival: &RequestParts| arrival.client.version() == version::MODERN;
        !call.is_task() && arrival.is_some_and(|arrival| is_modern(&arrival))
    };
    match &request.key {
        Some(key) if request.task.is_some() || is_transient() => key.to_string(),
        key => generated_key(key.as_deref(), input_request),
    }
}

/// A generated key, the same for equal requests.
fn generated_key(key: Option<&str>, input_request: &InputRequest) -> String {
    let params = input_request.params.as_ref();
    let bare = params.and_then(|params| object::remove(params.borrow(), &[meta::META]).ok());
    let bare = bare.as_ref().or(params).map_or("", Raw::as_str);
    let digest = Sha256::new()
        .chain_update(key.unwrap_or_default())
        .chain_update(input_request.kind.word())
        .chain_update(bare)
        .finalize();
    let hex = |byte: &u8| format!("{byte:02x}");
    let name: String = digest.iter().take(8).map(hex).collect();
    format!("q{name}")
}

/// The response without the id of our task.
pub(super) fn without_task_meta(answer: InputResponse) -> InputResponse {
    match answer {
        InputResponse::Result(result) => {
            InputResponse::Result(meta::unrelate(result.borrow()).unwrap_or(result))
        }
        error => error,
    }
}

/// BR-IN-12, BR-IN-14.
fn lookup_error(error: CallLookupError) -> ErrorObject {
    codes::invalid_params(match error {
        CallLookupError::NoCall => {
            "the request belongs to no call, and no connected client can receive it"
        }
        CallLookupError::SeveralCalls => {
            "several calls run on this connection and the request names none of them; the gateway setting `isolate: \"call\"` gives each call its own connection"
        }
    })
}

fn refused(error: &ErrorObject) -> InputResponse {
    InputResponse::Error(error.to_raw())
}

/// Separates a key and its number if the request is sent again.
const NUMBER_SEPARATOR: char = '~';
