//! The work of a hosted task: asking the host. Cancelling the task drops the question, which dismisses it (S0-74).

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{Answer, AskKind, ErrorCode, Origin, Outcome, Question};
use outlast_wire::envelope::ErrorView;
use outlast_wire::{RawRef, codes, object};

use super::task_methods::AWAITING;
use super::{OnDecline, ReceiverOptions, WhileAsking};
use crate::client::handler::{Host, HostRequest};

/// Puts the questions of a server to a host.
pub(super) struct Asking {
    pub(super) host: Arc<dyn Host>,
    pub(super) options: ReceiverOptions,
}

#[async_trait]
impl Runner for Asking {
    async fn run(&self, _: Arc<Origin>, cx: CallContext) -> Outcome {
        let Some(request) = cx.parts::<HostRequest>() else {
            return Outcome::error(ErrorCode(codes::INTERNAL_ERROR), "the question is lost");
        };
        let answer = self.host.ask((*request).clone());
        let answer = match self.options.while_asking {
            WhileAsking::Working => {
                cx.status(AWAITING);
                answer.await
            }
            WhileAsking::InputRequired => {
                let question = Question::new(request.kind, None);
                tokio::select! {
                    answer = answer => answer,
                    // Nobody answers here: the question stands for the host's, and goes with it.
                    Err(error) = cx.ask(question) => {
                        return Outcome::error(ErrorCode(codes::INTERNAL_ERROR), error.to_string());
                    }
                }
            }
        };
        self.outcome(request.kind, answer)
    }
}

impl Asking {
    fn outcome(&self, kind: AskKind, answer: Answer) -> Outcome {
        let elicits = matches!(kind, AskKind::ElicitForm | AskKind::ElicitUrl);
        match answer {
            Answer::Result(result)
                if elicits
                    && self.options.on_decline == OnDecline::Fails
                    && action(result.borrow()).as_deref() == Some("decline") =>
            {
                let code = ErrorCode(codes::REFUSED_BY_PERSON);
                Outcome::error(code, "User declined elicitation request")
            }
            Answer::Result(result) => Outcome::Result(result),
            Answer::Error(error) => match ErrorView::read(error.borrow()) {
                Some(view) => {
                    let (code, message) = (ErrorCode(view.code), view.message.as_ref().into());
                    Outcome::Error(error.clone(), code, Some(message))
                }
                None => Outcome::error(
                    ErrorCode(codes::INTERNAL_ERROR),
                    "the host has no proper answer",
                ),
            },
        }
    }
}

fn action(result: RawRef<'_>) -> Option<String> {
    let action = object::find(result, &["action"])?;
    Some(action.text()?.into_owned())
}
