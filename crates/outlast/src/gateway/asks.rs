//! Questions of an upstream: each is a question of one of the calls under way.

use std::sync::Weak;

use async_trait::async_trait;
use outlast_engine::engine::AskError;
use outlast_engine::{Accepts, Answer, Question};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, codes, meta};

use super::connection::{Shared, Unclear};
use crate::back::{Host, HostRequest, dismiss};

/// Puts the questions of an upstream to the callers of its calls.
pub(super) struct Asks(pub(super) Weak<Shared>, pub(super) Accepts);

#[async_trait]
impl Host for Asks {
    fn accepts(&self) -> Accepts {
        self.1
    }

    async fn ask(&self, request: HostRequest) -> Answer {
        let kind = request.kind;
        let Some(shared) = self.0.upgrade() else {
            return dismiss(kind);
        };
        let call = match shared.call(request.call.as_deref()) {
            Ok(call) => call,
            Err(unclear) => return refused(&unclear_whose(unclear)),
        };
        // The task is ours to name, not the upstream's.
        let unrelated = |params: Raw| meta::unrelate(params.borrow()).unwrap_or(params);
        let question = Question::new(kind, request.params.map(unrelated));
        match call.ask(question).await {
            Ok(answer) => without_mark(answer),
            // BR-IN-5, BR-CAN-12: nobody will answer any more.
            Err(AskError::Withdrawn) => dismiss(kind),
            Err(error @ AskError::Unsupported(_)) => refused(&ErrorObject::new(
                codes::METHOD_NOT_FOUND,
                error.to_string(),
            )),
            Err(error) => refused(&codes::internal(error.to_string())),
        }
    }
}

/// An answer as the upstream may see it: without the name of our task.
fn without_mark(answer: Answer) -> Answer {
    match answer {
        Answer::Result(result) => Answer::Result(meta::unrelate(result.borrow()).unwrap_or(result)),
        error => error,
    }
}

/// BR-IN-12, BR-IN-14.
fn unclear_whose(unclear: Unclear) -> ErrorObject {
    codes::invalid_params(match unclear {
        Unclear::None => "the client can be asked only while it waits for a call",
        Unclear::Several => {
            "several calls run on this connection and the question names none (the setting `isolate: \"call\"` of the gateway gives each its own)"
        }
    })
}

fn refused(error: &ErrorObject) -> Answer {
    Answer::Error(error.to_raw())
}
