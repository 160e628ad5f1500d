//! `initialize`: negotiates the version and exchanges capabilities.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::ServerTasks;
use outlast_wire::{Raw, RawRef, codes, v1};

use super::LegacyRequest;
use crate::server::{BackendDescription, ClientInfo, Reply};

impl LegacyRequest<'_> {
    pub(super) async fn initialize(self, params: Option<RawRef<'_>>) -> Reply {
        match self.negotiate(params).await {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(error),
        }
    }

    async fn negotiate(self, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        let already_initialized = || codes::invalid_request("the session is already initialized");
        if self.session.client().is_some() {
            return Err(already_initialized());
        }
        let client = self.session.client_handle(ClientInfo::negotiate(params)?);
        let description = self.session.server.describe(&client).await?;
        let capabilities =
            match declared_tasks(&description).filter(|_| client.client_info().has_tasks()) {
                Some(tasks) => tasks
                    .declare(description.capabilities.borrow())
                    .map_err(|_| codes::internal("the server's capabilities are not an object"))?,
                None => description.capabilities.clone(),
            };
        let result = v1::initialize_result(
            client.version(),
            capabilities.borrow(),
            description.info.borrow(),
            description.instructions.as_deref(),
        );
        if self.session.set_client(client, Some(description)) {
            Ok(result)
        } else {
            Err(already_initialized())
        }
    }
}

/// The task capabilities for a client of 2025-11-25: only if some tool can run as a task
/// (BR-NEG-3). `list` is offered because sessions tell callers apart (V1-CAP-14).
pub(super) fn declared_tasks(description: &BackendDescription) -> Option<ServerTasks> {
    description.tasks.then_some(ALL_TASK_METHODS)
}

pub(super) const ALL_TASK_METHODS: ServerTasks = ServerTasks {
    list: true,
    cancel: true,
    tools_call: true,
};
