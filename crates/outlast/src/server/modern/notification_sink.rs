//! Where the notifications of a request go: on the stream of its response, before the reply
//! (V2-HTTP-5).

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::envelope::write;
use tokio::sync::mpsc;

use crate::server::{Session, StreamId};

/// Where the notifications of one request go.
#[derive(Clone)]
pub(crate) enum NotificationSink {
    /// To the shared stdio stream.
    Stdio(Arc<Session>, StreamId),
    /// To the stream of the response.
    Stream(mpsc::Sender<Arc<str>>),
    /// Nowhere: the reply is immediate, or the caller takes no stream.
    Discard,
}

impl NotificationSink {
    /// Sends a notification. Waits for a slow reader; the request of a disconnected reader is
    /// dropped soon.
    pub(in crate::server) async fn notify(&self, method: &str, params: &Raw) {
        let line = || write::notification(method, Some(params.borrow()));
        match self {
            Self::Stdio(session, stream) => session.streams.send(*stream, line()),
            Self::Stream(stream) => {
                let _ = stream.send(line().into()).await;
            }
            Self::Discard => {}
        }
    }

    /// Whether notifications share a stream with those of other requests.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Stdio(..))
    }
}
