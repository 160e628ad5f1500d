//! Ticket tools for callers without task support: wait for the task of a ticket, with its input
//! requests, poll it, or cancel it.

use std::time::Duration;

use outlast_engine::Scope;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{RawRef, v2};

use super::ModernRequest;
use super::finish::DraftReply;
use crate::server::delivery::tickets::{TicketTool, TicketToolArguments};
use crate::server::{ClientHandle, WaitPolicy};

impl ModernRequest {
    /// How long this caller waits for its calls, if it gets tickets.
    pub(super) fn wait_policy(&self, client: &ClientHandle) -> Option<WaitPolicy> {
        let policy = self.server.backend.wait_policy(client)?;
        (policy.tickets && !self.meta.tasks).then_some(policy)
    }

    /// Replies to a call of a ticket tool.
    pub(super) async fn call_ticket_tool(
        &self,
        tool: TicketTool,
        params: RawRef<'_>,
        wait_limit: Option<Duration>,
    ) -> Result<DraftReply, ErrorObject> {
        let arguments = TicketToolArguments::read(params)?;
        if tool == TicketTool::Status && arguments.task.is_none() {
            let all = self.server.task_status(&self.caller.scope(), None).await;
            return Ok(all.into());
        }
        let found = self
            .find(arguments.required_task()?.text().as_str())
            .await?;
        let (task, scope) = (found.id(), Scope::OwnedBy(found.owner().clone()));
        match tool {
            TicketTool::Status => Ok(self.server.task_status(&scope, Some(task)).await.into()),
            TicketTool::Cancel => Ok(self.server.cancel_by_ticket(&scope, task).await.into()),
            TicketTool::Wait => {
                let retry = v2::Retry::read(params)?;
                self.respond_to_task(&found, retry.input_responses).await?;
                let limit = arguments.limit.into_iter().chain(wait_limit).min();
                self.wait_for(&scope, task, limit).await
            }
        }
    }
}
