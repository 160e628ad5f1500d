//! Modern requests on a pipe, among those of a legacy session (V2-ERA-8, V2-STDIO).

use std::sync::Arc;

use outlast_wire::RawRef;
use outlast_wire::envelope::{self, ErrorObject};
use tokio_util::sync::CancellationToken;

use super::request_meta::{Said, is_modern_only, nothing_said};
use super::{Closing, Outlet, Request, Visitor};
use crate::server::legacy::Known;
use crate::server::{Incoming, Reply, ResponseStream, Session, StreamId};

/// What a request on a pipe says about itself, or `None` if it is the session's.
pub(crate) fn said_on_pipe(request: &envelope::Request<'_>) -> Result<Option<Said>, ErrorObject> {
    match Said::read(request.params)? {
        None if is_modern_only(&request.method) => Err(nothing_said()),
        said => Ok(said),
    }
}

impl Session {
    /// The work of one modern request, to its answer on `stream`. Cancelling the request drops it, and then nothing
    /// more is said of it (V2-CANC-3).
    pub(crate) fn take_modern(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        said: Said,
        stream: StreamId,
        closing: Closing,
    ) -> impl Future<Output = ()> + Send + use<> {
        let cancelled = CancellationToken::new();
        self.in_flight.begin(&request.id, cancelled.clone());
        let known = Known {
            session: self.clone(),
            id: request.id.clone(),
        };
        let incoming = Incoming {
            method: request.method.into_owned(),
            params: request.params.map(RawRef::to_raw),
            owner: self.owner.clone(),
            http: None,
        };
        let request = Request {
            front: self.front.clone(),
            id: request.id,
            visitor: Visitor::Known(self.owner.clone()),
            said,
            outlet: Outlet::Pipe(self.clone(), stream),
            closing,
        };
        let stream = ResponseStream::on_pipe(self.clone(), stream);
        async move {
            let reply = tokio::select! {
                biased;
                reply = request.answer(incoming) => reply,
                () = cancelled.cancelled() => Reply::Nothing,
            };
            drop(known);
            stream.finish(&request.id, &reply);
        }
    }
}
