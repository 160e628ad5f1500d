//! Helper tools for callers that take no tasks: what a ticket names can be waited for, with its
//! questions, looked at and cancelled.

use std::time::Duration;

use outlast_engine::Scope;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{RawRef, v2};

use super::Request;
use super::finish::Answer;
use crate::server::delivery::tickets::{Helper, HelperArguments};
use crate::server::{Client, Holding};

impl Request {
    /// How calls of this caller are held, if it gets tickets.
    pub(super) fn holding(&self, client: &Client) -> Option<Holding> {
        let holding = self.front.service.holding(client)?;
        (holding.tickets && !self.said.tasks).then_some(holding)
    }

    /// Answers a helper tool.
    pub(super) async fn help(
        &self,
        helper: Helper,
        params: RawRef<'_>,
        patience: Option<Duration>,
    ) -> Result<Answer, ErrorObject> {
        let arguments = HelperArguments::read(params)?;
        if helper == Helper::Status && arguments.task.is_none() {
            let all = self.front.status_of(&self.visitor.scope(), None).await;
            return Ok(all.into());
        }
        let found = self.find(arguments.needed()?.text().as_str()).await?;
        let (task, scope) = (found.id(), Scope::Of(found.owner().clone()));
        match helper {
            Helper::Status => Ok(self.front.status_of(&scope, Some(task)).await.into()),
            Helper::Cancel => Ok(self.front.stop(&scope, task).await.into()),
            Helper::Wait => {
                let retry = v2::Retry::read(params)?;
                self.answer_task(&found, retry.answers).await?;
                let time = arguments.time.into_iter().chain(patience).min();
                self.wait_for(&scope, task, time).await
            }
        }
    }
}
