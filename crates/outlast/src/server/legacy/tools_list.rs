//! `tools/list`: the backend's page, with task support for clients that can use it.

use std::sync::Arc;

use outlast_wire::object::Edit;
use outlast_wire::{Raw, RawRef, codes, object, tool, v1};

use super::LegacyRequest;
use crate::server::delivery::tickets;
use crate::server::{ClientHandle, Reply};

impl LegacyRequest<'_> {
    pub(super) async fn list_tools(
        self,
        client: &Arc<ClientHandle>,
        tasks: bool,
        params: Option<&Raw>,
    ) -> Reply {
        let gets_tickets = self
            .wait_policy(client)
            .is_some_and(|policy| policy.tickets);
        let listed = match self.session.server.backend.list_tools(client, params).await {
            Reply::Result(page) if gets_tickets => {
                Reply::Result(tickets::add_ticket_tools(page.borrow()).unwrap_or(page))
            }
            other => other,
        };
        match listed {
            Reply::Result(page) if !tasks => {
                match tool::edit_list(page.borrow(), without_support) {
                    Ok(page) => Reply::Result(page),
                    Err(_) => Reply::from(codes::internal("the list of tools is not an object")),
                }
            }
            reply => reply,
        }
    }
}

/// V1-CAP-13: a client without tasks gets no `execution` member.
fn without_support(tool: RawRef<'_>) -> Edit {
    match object::find(tool, &["execution"]).map(|_| v1::strip_execution(tool)) {
        Some(Ok(stripped)) => Edit::Replace(stripped),
        _ => Edit::Keep,
    }
}
