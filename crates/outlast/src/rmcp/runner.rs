//! Executes the requests of clients by their handler.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{Origin, Outcome};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, meta, tool};

use super::{Rmcp, messages};
use crate::server::{ClientHandle, RequestParts};

#[async_trait]
impl Runner for Rmcp {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        let work = self.respond(&call, cx.clone());
        // Dropping the work cancels it in the handler.
        let answered = tokio::select! {
            biased;
            answered = work => answered,
            () = cx.cancelled() => return Outcome::Cancelled,
        };
        match answered {
            Ok(result) if &*call.method == tool::CALL => Outcome::of_tool(result),
            Ok(result) => Outcome::Result(result),
            Err(error) => error.into(),
        }
    }
}

impl Rmcp {
    async fn respond(&self, call: &Origin, cx: CallContext) -> Result<Raw, ErrorObject> {
        let arrival = cx.local_data::<RequestParts>();
        let client = match &arrival {
            Some(arrival) => arrival.client.clone(),
            // The call comes from a previous run of this process.
            None => Arc::new(ClientHandle::absent(cx.owner().clone(), call.accepts)),
        };
        let connection = self.connection(&client).await?;
        let params = call.params.as_ref().map(for_handler);
        let request = messages::request(&call.method, params.as_ref())?;
        let http = arrival.as_ref().and_then(|arrival| arrival.http.as_deref());
        let request = messages::with_http(request, http);
        let token = call.progress_token.as_ref();
        let token = token.and_then(|token| Id::read(token.borrow()).ok());
        connection.request(request, Some((cx, token))).await
    }
}

/// Removes what the handler must not get: the task request, because tasks are ours, and the `_meta`
/// of the modern era, in which it could not send requests.
pub(super) fn for_handler(params: &Raw) -> Raw {
    let keys = [
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
        meta::CLIENT_INFO,
        meta::LOG_LEVEL,
    ];
    meta::strip(params, &["task"], &keys)
}
