//! Dispatches the input requests of a modern server to the handler, whether they come from a task
//! or precede a result (V2-UPD-3).

use std::sync::Arc;

use outlast_engine::{InputKind, InputKinds, InputResponse};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v2::InputRequestEntry;
use outlast_wire::version::Era;
use outlast_wire::{Raw, RawRef, codes};

use crate::input_check;

use crate::client::error::PeerError;
use crate::client::handler::{ClientHandler, ServerInputRequest, dismiss};
use crate::client::inbound::InboundHandler;
use crate::client::validate_request::validate_request;

/// Dispatches input requests to the handler.
#[derive(Clone)]
pub(crate) struct InputDispatcher {
    server: Arc<str>,
    handler: Arc<dyn ClientHandler>,
    accepts: InputKinds,
    call: Option<Arc<str>>,
}

/// Why an input request has no response. The protocol has no way to report this to the server
/// (V2-MRTR-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputRefusal {
    /// It was not dispatched: its kind was not declared, or its params are invalid.
    Invalid(PeerError),
    /// The handler refused it.
    Denied(PeerError),
}

impl InputDispatcher {
    /// Creates a dispatcher to the client's handler, for the call of this name.
    pub(crate) fn new(inbound: &InboundHandler, call: Option<Arc<str>>) -> Self {
        Self {
            server: inbound.server.clone(),
            handler: inbound.handler.clone(),
            accepts: inbound.accepts,
            call,
        }
    }

    /// The kind of an input request, or why it cannot be dispatched.
    pub(crate) fn validate(
        &self,
        input_request: &InputRequestEntry,
    ) -> Result<InputKind, InputRefusal> {
        let kind = validate_request(
            &input_request.method,
            input_request.params.as_ref(),
            self.accepts,
            Era::Modern,
        );
        kind.map_err(|error| {
            let key = &input_request.key;
            let why = &error.message;
            let why = format!("the server's input request `{key}` cannot be handled: {why}");
            InputRefusal::Invalid(ErrorObject::new(error.code, why).into())
        })
    }

    /// Dispatches an input request and returns its result (V2-UPD-7).
    pub(crate) async fn dispatch(
        &self,
        input_request: InputRequestEntry,
        task: Option<String>,
    ) -> Result<Raw, InputRefusal> {
        let kind = self.validate(&input_request)?;
        let request = ServerInputRequest {
            request: None,
            kind,
            server: self.server.clone(),
            call: self.call.clone(),
            key: Some(input_request.key.as_str().into()),
            task,
            hosted_task: None,
            params: input_request.params,
        };
        let in_task = request.task.is_some();
        let response = match (self.handler.handle(request).await, kind) {
            // A2-19: an elicitation has a result for a refusal.
            (InputResponse::Error(_), InputKind::ElicitForm | InputKind::ElicitUrl) => {
                dismiss(kind)
            }
            // A declined sampling request does not cancel its task.
            (InputResponse::Error(error), InputKind::Sample | InputKind::SampleWithTools)
                if in_task && is_declined(error.borrow()) =>
            {
                InputResponse::Result(input_check::declined_sample())
            }
            (response, _) => response,
        };
        let improper = || codes::internal("the input response is not a valid result").into();
        match response {
            InputResponse::Result(result) if result.borrow().is_object() => Ok(result),
            InputResponse::Result(_) => Err(InputRefusal::Denied(improper())),
            InputResponse::Error(error) => {
                let read = PeerError::read(error.borrow());
                Err(InputRefusal::Denied(read.unwrap_or_else(improper)))
            }
        }
    }
}

/// Whether an error says that the user declined (V1-SAMP-4).
fn is_declined(error: RawRef<'_>) -> bool {
    PeerError::read(error).is_some_and(|error| error.code == input_check::DECLINED)
}

impl InputRefusal {
    pub(crate) fn into_error(self) -> PeerError {
        match self {
            Self::Invalid(error) | Self::Denied(error) => error,
        }
    }
}
