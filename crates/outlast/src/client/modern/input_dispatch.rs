//! Questions of a modern server: inside a task or before a result, they go to the host alike (V2-UPD-3).

use std::sync::Arc;

use outlast_engine::{Accepts, Answer, AskKind};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v2::Ask;
use outlast_wire::version::Era;
use outlast_wire::{Raw, RawRef, codes};

use crate::answers;

use crate::client::error::PeerError;
use crate::client::handler::{ClientHandler, ServerInputRequest, dismiss};
use crate::client::inbound::InboundHandler;
use crate::client::validate_request::validate_request;

/// Puts questions to a host.
#[derive(Clone)]
pub(crate) struct InputDispatcher {
    server: Arc<str>,
    handler: Arc<dyn ClientHandler>,
    accepts: Accepts,
    call: Option<Arc<str>>,
}

/// Why a question has no answer. There is no way to tell that to a server (V2-MRTR-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputRefusal {
    /// It was not put to anybody: it asks for what was not declared, or makes no sense.
    Invalid(PeerError),
    /// Whoever was asked refused.
    Denied(PeerError),
}

impl InputDispatcher {
    /// Asks the host of the client, for the call of that name.
    pub(crate) fn new(inbound: &InboundHandler, call: Option<Arc<str>>) -> Self {
        Self {
            server: inbound.server.clone(),
            handler: inbound.handler.clone(),
            accepts: inbound.accepts,
            call,
        }
    }

    /// What sort of question it is, or why it is not put to anybody.
    pub(crate) fn validate(&self, ask: &Ask) -> Result<AskKind, InputRefusal> {
        let kind = validate_request(&ask.method, ask.params.as_ref(), self.accepts, Era::Modern);
        kind.map_err(|error| {
            let key = &ask.key;
            let why = &error.message;
            let why = format!("the server's input request `{key}` cannot be answered: {why}");
            InputRefusal::Invalid(ErrorObject::new(error.code, why).into())
        })
    }

    /// The answer to a question: a bare result (V2-UPD-7).
    pub(crate) async fn dispatch(
        &self,
        ask: Ask,
        task: Option<String>,
    ) -> Result<Raw, InputRefusal> {
        let kind = self.validate(&ask)?;
        let request = ServerInputRequest {
            request: None,
            kind,
            server: self.server.clone(),
            call: self.call.clone(),
            key: Some(ask.key.as_str().into()),
            task,
            params: ask.params,
        };
        let in_task = request.task.is_some();
        let answer = match (self.handler.handle(request).await, kind) {
            // A2-19: a refusal of an elicitation can be said.
            (Answer::Error(_), AskKind::ElicitForm | AskKind::ElicitUrl) => dismiss(kind),
            // A person who declines to sample does not cancel the task.
            (Answer::Error(error), AskKind::Sample | AskKind::SampleWithTools)
                if in_task && is_declined(error.borrow()) =>
            {
                Answer::Result(answers::declined_sample())
            }
            (answer, _) => answer,
        };
        let improper = || codes::internal("the host has no proper answer").into();
        match answer {
            Answer::Result(result) if result.borrow().is_object() => Ok(result),
            Answer::Result(_) => Err(InputRefusal::Denied(improper())),
            Answer::Error(error) => {
                let read = PeerError::read(error.borrow());
                Err(InputRefusal::Denied(read.unwrap_or_else(improper)))
            }
        }
    }
}

/// Whether an error says that a person declined (V1-SAMP-4).
fn is_declined(error: RawRef<'_>) -> bool {
    PeerError::read(error).is_some_and(|error| error.code == answers::DECLINED)
}

impl InputRefusal {
    pub(crate) fn into_error(self) -> PeerError {
        match self {
            Self::Invalid(error) | Self::Denied(error) => error,
        }
    }
}
