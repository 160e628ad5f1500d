//! Requests that the backend handles: `tools/list`, prompts, resources, completion, custom methods.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::Edit;
use outlast_wire::tool;
use outlast_wire::{codes, v1};

use super::ModernRequest;
use super::finish::DraftReply;
use crate::server::delivery::tickets;
use crate::server::{IncomingRequest, Reply};

impl ModernRequest {
    /// Forwards a request that is neither a task method nor a tool call.
    pub(super) async fn forward(
        &self,
        request: IncomingRequest,
    ) -> Result<DraftReply, ErrorObject> {
        let runner = self.server.backend.runner_for(&request.method);
        if let Some(runner) = runner.filter(|_| request.method != tool::LIST) {
            return self.run_request(request, runner).await;
        }
        let client = self.client();
        let reply = match request.method.as_str() {
            tool::LIST => {
                let params = request.params.as_ref();
                let listed = self.server.backend.list_tools(&client, params).await;
                match (without_execution(listed)?, self.wait_policy(&client)) {
                    (Reply::Result(page), Some(_)) => {
                        Reply::Result(tickets::add_ticket_tools(page.borrow()).unwrap_or(page))
                    }
                    (other, _) => other,
                }
            }
            _ => self.server.backend.request(&client, request).await,
        };
        Ok(reply.into())
    }
}

/// Tools as V2 lists them: without `execution` (V2-TLS-2).
fn without_execution(listed: Reply) -> Result<Reply, ErrorObject> {
    let Reply::Result(listed) = listed else {
        return Ok(listed);
    };
    let edited = tool::edit_list(listed.borrow(), |tool| match v1::strip_execution(tool) {
        Ok(stripped) => Edit::Replace(stripped),
        Err(_) => Edit::Drop,
    });
    edited
        .map(Reply::Result)
        .map_err(|_| codes::internal("the list of tools is not an object"))
}
