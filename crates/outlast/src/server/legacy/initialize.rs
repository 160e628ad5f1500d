//! `initialize`: the version is settled and each side says what it can do.

use std::sync::Arc;

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::ServerTasks;
use outlast_wire::{Raw, RawRef, codes, v1};

use crate::server::{Introduction, Peer, Reply, Session};

impl Session {
    pub(super) async fn initialize(self: &Arc<Self>, params: Option<RawRef<'_>>) -> Reply {
        match self.meet(params).await {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(error),
        }
    }

    async fn meet(self: &Arc<Self>, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        let begun = || codes::invalid_request("the session has begun already");
        if self.client().is_some() {
            return Err(begun());
        }
        let client = self.as_client(Peer::meet(params)?);
        let about = self.front.service.introduce(&client).await?;
        let capabilities = match declared(&about).filter(|_| client.peer().has_tasks()) {
            Some(tasks) => tasks
                .declare(about.capabilities.borrow())
                .map_err(|_| codes::internal("the server's capabilities are not an object"))?,
            None => about.capabilities.clone(),
        };
        let result = v1::initialize_result(
            client.version(),
            capabilities.borrow(),
            about.info.borrow(),
            about.instructions.as_deref(),
        );
        if self.introduce(client, Some(about)) {
            Ok(result)
        } else {
            Err(begun())
        }
    }
}

/// What is declared to a client that was negotiated at 2025-11-25: tasks only if some tool can run as one
/// (BR-NEG-3), the list because callers can be told apart by their sessions (V1-CAP-14).
pub(super) fn declared(about: &Introduction) -> Option<ServerTasks> {
    about.tasks.then_some(ALL)
}

pub(super) const ALL: ServerTasks = ServerTasks {
    list: true,
    cancel: true,
    tools_call: true,
};
