//! Helper tools for callers that take no tasks: what a ticket names can be waited for, with its
//! questions, looked at and cancelled.

use std::time::Duration;

use outlast_engine::engine::Event;
use outlast_engine::store::Snapshot;
use outlast_engine::{Scope, Task, TaskId};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{RawRef, v2};
use tokio::time::Instant;

use super::Request;
use super::lists::finished;
use crate::front::errors::to_wire;
use crate::front::tickets::{self, Helper, Wish};
use crate::front::{Client, Holding, Reply};
use crate::sleep::sleep_until;

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
    ) -> Result<Reply, ErrorObject> {
        let wish = Wish::read(params)?;
        if helper == Helper::Status && wish.task.is_none() {
            let all = self.front.status_of(&self.visitor.scope(), None).await;
            return inline(all);
        }
        let found = self.find(wish.needed()?.text().as_str()).await?;
        let (task, scope) = (found.id(), Scope::Of(found.owner().clone()));
        match helper {
            Helper::Status => inline(self.front.status_of(&scope, Some(task)).await),
            Helper::Cancel => inline(self.front.stop(&scope, task).await),
            Helper::Wait => {
                let retry = v2::Retry::read(params)?;
                self.answer_task(&found, retry.answers).await?;
                let time = wish.time.into_iter().chain(patience).min();
                self.wait_for(&scope, task, time).await
            }
        }
    }

    /// Waits for a task: its outcome, what it asks, or a ticket when the time is over. A retry answers the questions, which
    /// have names, so that it needs no state.
    async fn wait_for(
        &self,
        scope: &Scope,
        task: TaskId,
        time: Option<Duration>,
    ) -> Result<Reply, ErrorObject> {
        let engine = &self.front.engine;
        let mut watch = engine
            .watch(scope, task)
            .await
            .map_err(|error| to_wire(&error))?;
        if let Snapshot::Open(task) = &watch.first
            && let Some(asking) = asking(task)
        {
            return Ok(asking);
        }
        let end = time.and_then(|time| Instant::now().checked_add(time));
        let mut over = std::pin::pin!(sleep_until(end));
        let mut settled = std::pin::pin!(engine.wait(scope, task));
        let mut watched = true;
        loop {
            tokio::select! {
                biased;
                event = watch.next(), if watched => match event {
                    Some(Event::Stored(task)) => if let Some(asking) = asking(&task) {
                        return Ok(asking);
                    },
                    Some(_) => {}
                    None => watched = false,
                },
                settled = &mut settled => return inline(tickets::settled(task, settled)),
                () = &mut over => return inline(self.front.ticket(scope, task).await),
            }
        }
    }
}

/// The open questions of a task as an answer, if there are any.
fn asking(task: &Task) -> Option<Reply> {
    let asks: Vec<_> = task.outstanding()?.views().collect();
    v2::input_required_result(&asks, None).map(Reply::Result)
}

fn inline(reply: Reply) -> Result<Reply, ErrorObject> {
    match reply {
        Reply::Result(result) => finished(result.borrow(), false),
        other => Ok(other),
    }
}
