//! Runs a hosted task by dispatching its request to the handler. Cancelling the task drops the
//! future, which withdraws the request (S0-74).

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{ErrorCode, InputKind, InputRequest, InputResponse, Origin, Outcome};
use outlast_wire::envelope::ErrorView;
use outlast_wire::{RawRef, codes, object};

use super::abort::AbortReasons;
use super::{OnDecline, ReceiverOptions, WaitingStatus};
use crate::client::handler::{ClientHandler, ServerInputRequest};

/// The runner of hosted tasks.
pub(super) struct HandlerRunner {
    pub(super) handler: Arc<dyn ClientHandler>,
    pub(super) options: ReceiverOptions,
    pub(super) reasons: AbortReasons,
}

#[async_trait]
impl Runner for HandlerRunner {
    async fn run(&self, _: Arc<Origin>, cx: CallContext) -> Outcome {
        let Some(request) = cx.local_data::<ServerInputRequest>() else {
            return Outcome::error(
                ErrorCode(codes::INTERNAL_ERROR),
                "the input request of the task is missing",
            );
        };
        let request = Arc::new(ServerInputRequest {
            hosted_task: Some(cx.id().to_string()),
            ..(*request).clone()
        });
        // Dropped in the reverse order: the handler learns the reason before its future is dropped.
        let mut answer = self.handler.handle((*request).clone());
        let pending = self
            .reasons
            .begin(cx.id(), self.handler.clone(), request.clone());
        let answer = match self.options.status_while_waiting {
            WaitingStatus::Working => {
                cx.status(&self.options.waiting_message);
                (&mut answer).await
            }
            WaitingStatus::InputRequired => {
                let input_request = InputRequest::new(request.kind, None);
                tokio::select! {
                    answer = &mut answer => answer,
                    // This input request never gets a response. It only sets the status while the
                    // handler works, and is dropped with it.
                    Err(error) = cx.request_input(input_request) => {
                        return Outcome::error(ErrorCode(codes::INTERNAL_ERROR), error.to_string());
                    }
                }
            }
        };
        pending.answered();
        self.outcome(request.kind, answer)
    }
}

impl HandlerRunner {
    fn outcome(&self, kind: InputKind, answer: InputResponse) -> Outcome {
        let elicits = matches!(kind, InputKind::ElicitForm | InputKind::ElicitUrl);
        match answer {
            InputResponse::Result(result)
                if elicits
                    && self.options.on_decline == OnDecline::Fails
                    && action(result.borrow()).as_deref() == Some("decline") =>
            {
                let code = ErrorCode(codes::DECLINED_BY_USER);
                Outcome::error(code, "User declined elicitation request")
            }
            InputResponse::Result(result) => Outcome::Result(result),
            InputResponse::Error(error) => match ErrorView::read(error.borrow()) {
                Some(view) => {
                    let (code, message) = (ErrorCode(view.code), view.message.as_ref().into());
                    Outcome::Error(error.clone(), code, Some(message))
                }
                None => Outcome::error(
                    ErrorCode(codes::INTERNAL_ERROR),
                    "the input response is not a valid result",
                ),
            },
        }
    }
}

fn action(result: RawRef<'_>) -> Option<String> {
    let action = object::find(result, &["action"])?;
    Some(action.text()?.into_owned())
}
