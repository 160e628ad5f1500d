//! Where a request's notifications go: onto the stream of its answer, before the answer (V2-HTTP-5).

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::envelope::write;
use tokio::sync::mpsc;

use crate::server::{Session, StreamId};

/// Where the notifications of one request go.
#[derive(Clone)]
pub(crate) enum NotificationSink {
    /// Among everything else on a pipe.
    Stdio(Arc<Session>, StreamId),
    /// Onto the stream of the answer.
    Stream(mpsc::Sender<Arc<str>>),
    /// Discard: the answer comes at once, or the caller takes no stream.
    Discard,
}

impl NotificationSink {
    /// Sends a notification. TaskWait for a reader that is behind; one that is gone ends the request soon.
    pub(super) async fn notify(&self, method: &str, params: &Raw) {
        let line = || write::notification(method, Some(params.borrow()));
        match self {
            Self::Stdio(session, stream) => session.streams.send(*stream, line()),
            Self::Stream(stream) => {
                let _ = stream.send(line().into()).await;
            }
            Self::Discard => {}
        }
    }

    /// Whether notifications travel among those of other requests.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Stdio(..))
    }
}
