//! Requests that the service answers: `tools/list`, prompts, resources, completion, whatever it knows.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::Edit;
use outlast_wire::tool;
use outlast_wire::{codes, v1};

use super::Request;
use super::finish::Answer;
use crate::server::delivery::tickets;
use crate::server::{Incoming, Reply};

impl Request {
    /// Answers a request that is neither about tasks nor a call of a tool.
    pub(super) async fn ask_service(&self, request: Incoming) -> Result<Answer, ErrorObject> {
        let runner = self.front.service.runs(&request.method);
        if let Some(runner) = runner.filter(|_| request.method != tool::LIST) {
            return self.run_request(request, runner).await;
        }
        let client = self.client();
        let reply = match request.method.as_str() {
            tool::LIST => {
                let params = request.params.as_ref();
                let listed = self.front.service.list_tools(&client, params).await;
                match (modern_list(listed)?, self.holding(&client)) {
                    (Reply::Result(page), Some(_)) => {
                        Reply::Result(tickets::listed(page.borrow()).unwrap_or(page))
                    }
                    (other, _) => other,
                }
            }
            _ => self.front.service.request(&client, request).await,
        };
        Ok(reply.into())
    }
}

/// Tools as V2 lists them: without a word about tasks (V2-TLS-2).
fn modern_list(listed: Reply) -> Result<Reply, ErrorObject> {
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
