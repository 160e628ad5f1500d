//! An rmcp server as a [`Backend`].

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes};
use tokio::time::timeout;

use super::runner::for_handler;
use super::{Rmcp, messages};
use crate::server::{Backend, BackendDescription, ClientHandle, PreparedCall, Reply};

#[async_trait]
impl Backend for Rmcp {
    async fn describe(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<BackendDescription, ErrorObject> {
        Ok(self.connection(client).await?.description.clone())
    }

    async fn list_tools(&self, client: &Arc<ClientHandle>, params: Option<&Raw>) -> Reply {
        match self.page(client, params).await {
            Ok(page) => Reply::Result(page),
            Err(error) => Reply::from(error),
        }
    }

    async fn prepare(
        &self,
        client: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject> {
        let connection = self.connection(client).await?;
        let catalogue = &connection.shared.catalogue;
        if catalogue.take_stale() {
            self.within_start_timeout(connection.list_all_tools(self))
                .await?;
        }
        let configured = self.tasks.get(tool).copied();
        if catalogue.get(tool).is_none() && configured.is_none() {
            // A handler need not announce a change of its tools.
            self.within_start_timeout(connection.list_all_tools(self))
                .await?;
            // A handler that lists no tools may still have some, and rejects unknown ones itself.
            if catalogue.get(tool).is_none() && !catalogue.is_empty() {
                return Ok(None);
            }
        }
        // `Rmcp::task` also counts for tools that are not listed.
        let known = catalogue.get(tool).unwrap_or_default();
        Ok(Some(PreparedCall {
            runner: self.runner.clone(),
            support: configured.unwrap_or(known.support),
            retry: known.retry,
            ..PreparedCall::new()
        }))
    }

    /// Every method: a handler can send input requests during any request.
    fn runner_for(&self, _: &str) -> Option<Arc<str>> {
        Some(self.runner.clone())
    }

    fn notification(&self, client: &Arc<ClientHandle>, method: &str, params: Option<RawRef<'_>>) {
        // Without a running handler there is nothing to notify.
        let Some(connection) = self.running(client) else {
            return;
        };
        if let Ok(notification) = messages::notification(method, params) {
            connection.notify(notification);
        }
    }
}

impl Rmcp {
    async fn page(
        &self,
        client: &Arc<ClientHandle>,
        params: Option<&Raw>,
    ) -> Result<Raw, ErrorObject> {
        let connection = self.connection(client).await?;
        let params = params.map(for_handler);
        let list = messages::request(outlast_wire::tool::LIST, params.as_ref())?;
        let page = self
            .within_start_timeout(connection.request(list, None))
            .await?;
        let recorded = connection
            .shared
            .catalogue
            .record_page(page.borrow(), &self.tasks);
        recorded.map_err(|_| codes::internal("the list of tools is not an object"))
    }

    /// The response of the handler, within the start timeout.
    pub(super) async fn within_start_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, ErrorObject>>,
    ) -> Result<T, ErrorObject> {
        timeout(self.start_timeout, answer)
            .await
            .unwrap_or_else(|_| {
                let limit = self.start_timeout.as_secs_f64();
                let why = format!(
                    "the server did not respond within {limit} s (setting `start_timeout`)"
                );
                Err(codes::internal(why))
            })
    }
}
