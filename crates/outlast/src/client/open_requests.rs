//! Responses to input requests that a server sent to a previous run of this program. They are sent
//! in the session of that run, under the ids of the requests. If the server refuses a response, the
//! poller of the task reports that (V1-INPUT-9).

use std::sync::Arc;

use super::client::Core;
use super::reference::OpenInputRequest;
use super::routes::Routes;
use super::rpc::RpcChannel;
use super::rpc_handler::HandlerReply;
use crate::transport::link::TransportError;

/// Sends the responses when they are ready. Without a connection it sends nothing, and the poller
/// reports the outage. In a new session the ids belong to other requests, so nothing is sent there
/// either.
pub(super) async fn reply_to_open_requests(
    core: &Arc<Core>,
    task: &str,
    open: Vec<OpenInputRequest>,
) {
    let Ok(conversation) = core.conversation().await else {
        return;
    };
    let channel = &conversation.channel;
    if !channel.is_resumed() {
        let routes = &core.inbound.routes;
        return routes.input_response_refused(task, TransportError::SessionGone.into());
    }
    for OpenInputRequest { id, response } in open {
        let (inbound, task) = (core.inbound.clone(), task.to_owned());
        let guard = SessionGuard {
            channel: channel.clone(),
            routes: inbound.routes.clone(),
            task: task.clone(),
            armed: true,
        };
        let work = async move {
            let Some(response) = response.await else {
                return HandlerReply::none();
            };
            let mut reply = inbound.reply_for(task, response);
            let report = reply.then.take();
            reply.then(move |delivered| {
                guard.disarm();
                if let Some(report) = report {
                    report(delivered);
                }
            })
        };
        channel.start_reply(id, Box::pin(work));
    }
}

/// Reports that a response can no longer be sent if the session ends before the server has accepted
/// or refused the response.
struct SessionGuard {
    channel: Arc<RpcChannel>,
    routes: Arc<Routes>,
    task: String,
    armed: bool,
}

impl SessionGuard {
    /// Leaves the report to the delivery, which has ended.
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if self.armed && self.channel.lost_session() {
            self.routes
                .input_response_refused(&self.task, TransportError::SessionGone.into());
        }
    }
}
