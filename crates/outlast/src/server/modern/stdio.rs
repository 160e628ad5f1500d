//! Modern requests on stdio, next to those of a legacy session (V2-ERA-8, V2-STDIO).

use std::sync::Arc;

use outlast_wire::RawRef;
use outlast_wire::envelope::{self, ErrorObject};
use tokio_util::sync::CancellationToken;

use super::request_meta::{RequestMeta, is_modern_only, missing_meta};
use super::{Caller, Closing, ModernRequest, NotificationSink};
use crate::server::legacy::InFlightGuard;
use crate::server::{IncomingRequest, Reply, ResponseStream, Scopes, Session, StreamId};

/// The metadata of a request on stdio; `None` if the request is a legacy one.
pub(crate) fn stdio_request_meta(
    request: &envelope::Request<'_>,
) -> Result<Option<RequestMeta>, ErrorObject> {
    match RequestMeta::read(request.params)? {
        None if is_modern_only(&request.method) => Err(missing_meta()),
        meta => Ok(meta),
    }
}

impl Session {
    /// Handles one modern request up to its reply on `stream`. A cancelled request is dropped and
    /// gets no further message (V2-CANC-3).
    pub(crate) fn handle_modern(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        meta: RequestMeta,
        stream: StreamId,
        closing: Closing,
    ) -> impl Future<Output = ()> + Send + use<> {
        let cancelled = CancellationToken::new();
        self.in_flight.begin(&request.id, cancelled.clone());
        let guard = InFlightGuard {
            session: self.clone(),
            id: request.id.clone(),
        };
        let incoming = IncomingRequest {
            method: request.method.into_owned(),
            params: request.params.map(RawRef::to_raw),
            owner: self.owner.clone(),
            scopes: Scopes::ALL,
            http: None,
        };
        let request = ModernRequest {
            server: self.server.clone(),
            id: request.id,
            caller: Caller::Principal(self.owner.clone()),
            meta,
            has_shared_tasks: false,
            notifications: NotificationSink::Stdio(self.clone(), stream),
            closing,
        };
        let stream = ResponseStream::on_stdio(self.clone(), stream);
        async move {
            let reply = tokio::select! {
                biased;
                reply = request.respond(incoming) => reply,
                () = cancelled.cancelled() => Reply::Nothing,
            };
            drop(guard);
            stream.finish(&request.id, &reply);
        }
    }
}
