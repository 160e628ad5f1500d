//! Helper tools for callers that take no tasks: what a ticket names can be waited for, looked at and cancelled.

use std::time::Duration;

use outlast_engine::Scope;
use outlast_wire::RawRef;
use outlast_wire::envelope::ErrorObject;

use super::Request;
use crate::front::tickets::{self, Helper, Wish};
use crate::front::{Client, Holding, Reply};

impl Request {
    /// How calls of this caller are held, if it gets tickets.
    pub(super) fn holding(&self, client: &Client) -> Option<Holding> {
        let holding = self.front.service.holding(client)?;
        (holding.tickets && !self.said.tasks).then_some(holding)
    }

    /// Answers a helper tool. A task that asks something waits: there is no way to put its questions here.
    pub(super) async fn help(
        &self,
        helper: Helper,
        params: RawRef<'_>,
        patience: Option<Duration>,
    ) -> Result<Reply, ErrorObject> {
        let wish = Wish::read(params)?;
        if helper == Helper::Status && wish.task.is_none() {
            return Ok(self.front.status_of(&self.visitor.scope(), None).await);
        }
        let found = self.find(wish.needed()?.text().as_str()).await?;
        let (task, scope) = (found.id(), Scope::Of(found.owner().clone()));
        Ok(match helper {
            Helper::Status => self.front.status_of(&scope, Some(task)).await,
            Helper::Cancel => self.front.stop(&scope, task).await,
            Helper::Wait => {
                let waiting = self.front.engine.wait(&scope, task);
                match wish.time.into_iter().chain(patience).min() {
                    Some(time) => match tokio::time::timeout(time, waiting).await {
                        Ok(settled) => tickets::settled(task, settled),
                        Err(_) => self.front.ticket(&scope, task).await,
                    },
                    None => tickets::settled(task, waiting.await),
                }
            }
        })
    }
}
