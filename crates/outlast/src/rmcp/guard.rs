//! Wraps a handler: a panic becomes an error response, and a handler that does not stop is dropped.
//!
//! rmcp spawns a task for each request. Without the wrapper, a request that panics or never ends
//! would get no response, and the handler would never end.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use ::rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use ::rmcp::service::{DynService, NotificationContext, RequestContext};
use ::rmcp::{RoleServer, Service};
use futures_util::FutureExt as _;
use tokio::sync::watch;

/// A wrapped handler.
pub(super) struct GuardedHandler {
    pub(super) handler: Box<dyn DynService<RoleServer>>,
    /// How long a request may continue after its cancellation.
    pub(super) grace_period: Duration,
    /// Closed when the handler is no longer needed.
    pub(super) needed: watch::Receiver<()>,
}

impl Service<RoleServer> for GuardedHandler {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let stop = context.ct.clone();
        let stopped = async {
            stop.cancelled().await;
            tokio::time::sleep(self.grace_period).await;
        };
        let work = async { DynService::handle_request(&*self.handler, request, context).await };
        tokio::select! {
            biased;
            done = AssertUnwindSafe(work).catch_unwind() => done.unwrap_or_else(|_| {
                Err(ErrorData::internal_error("the handler stopped with an internal error (panic)", None))
            }),
            // This response is discarded.
            () = stopped => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut needed = self.needed.clone();
        let over = async { while needed.changed().await.is_ok() {} };
        let work =
            async { DynService::handle_notification(&*self.handler, notification, context).await };
        tokio::select! {
            biased;
            done = AssertUnwindSafe(work).catch_unwind() => done.unwrap_or(Ok(())),
            () = over => Ok(()),
        }
    }

    fn get_info(&self) -> ServerConfig {
        DynService::get_info(&*self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        DynService::supported_protocol_versions(&*self.handler)
    }
}
