//! Questions of an upstream: each is a question of one of the calls under way.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use outlast_engine::engine::{AskError, CallContext, EngineError};
use outlast_engine::transition::Refused;
use outlast_engine::{Accepts, Answer, AskKey, Question, Timing};
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
        let mut question = Question::new(kind, request.params.map(unrelated));
        if request.key.is_some() && request.task.is_none() {
            // The upstream has answered with it instead of beginning its work: that may as well be told to our caller.
            question.timing = Timing::BeforeWork;
        }
        match put(&call, request.key, question).await {
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

/// Puts a question under the upstream's own key, or under a fresh one if it had that before (BR-IN-1).
async fn put(
    call: &CallContext,
    key: Option<Arc<str>>,
    question: Question,
) -> Result<Answer, AskError> {
    let Some(key) = key else {
        return call.ask(question).await;
    };
    match call.put(AskKey::new(&*key), question.clone()).await {
        Ok(answered) => {
            let answer = answered.answer.clone();
            if let Err(error) = answered.confirm().await {
                tracing::info!(call = %call.id(), %error, "an answer was not confirmed");
            }
            Ok(answer)
        }
        Err(AskError::Engine(EngineError::Refused(Refused::KeyReused(_)))) => {
            call.ask(question).await
        }
        Err(error) => Err(error),
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
