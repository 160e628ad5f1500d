//! Streamable HTTP of both eras as a client: every message is a POST, and the response is JSON or a
//! stream. A session has a general stream by GET, and ends with DELETE.
//!
//! This module handles bytes, headers and sessions. If the server does not know the session any
//! more, the [`Link`] ends; the [client side](crate::client) opens another.

mod direct_requests;
mod endpoint;
mod event_parser;
mod listen;
mod options;
mod post;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::Id;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::link::{
    Incoming, Link, MessageKind, Outgoing, OutgoingMessage, QUEUE_MESSAGES, TransportError,
};
pub(crate) use direct_requests::DirectRequests;
use endpoint::Endpoint;
pub(crate) use endpoint::{UNKNOWN_HOST, client_to};

pub use options::HttpClientOptions;
pub use session::{HttpSession, SavedSession};

/// Opens a connection to the server at a URL. It sends nothing yet.
pub fn connect(options: &HttpClientOptions) -> Result<Link, TransportError> {
    let endpoint = Arc::new(Endpoint::new(options)?);
    let (outgoing, outgoing_receiver) = mpsc::channel(QUEUE_MESSAGES);
    let (incoming_sender, incoming) = mpsc::channel(QUEUE_MESSAGES);
    let direct = Arc::new(DirectRequests::new(
        endpoint.clone(),
        incoming_sender.clone(),
    ));
    let transport = HttpTransport {
        endpoint,
        direct: direct.clone(),
        incoming_sender,
        work: JoinSet::new(),
        posts: HashMap::new(),
        listens: false,
        listen_timeout: options.listen_timeout,
    };
    tokio::spawn(transport.run(outgoing_receiver));
    Ok(Link {
        direct: Some(direct),
        ..Link::new(outgoing, incoming)
    })
}

/// How long to wait for the rejection of requests in flight when the session is gone.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends and receives the messages of one link.
struct HttpTransport {
    endpoint: Arc<Endpoint>,
    direct: Arc<DirectRequests>,
    incoming_sender: mpsc::Sender<Incoming>,
    work: JoinSet<WorkResult>,
    posts: HashMap<Id, AbortHandle>,
    listens: bool,
    /// How long the first request waits for the general stream.
    listen_timeout: Duration,
}

/// The result of a piece of work.
enum WorkResult {
    /// The link continues.
    Continue,
    /// The session has ended, and the link with it.
    Ended(TransportError),
}

impl HttpTransport {
    async fn run(mut self, mut outgoing_receiver: mpsc::Receiver<Outgoing>) {
        let error = loop {
            tokio::select! {
                out = outgoing_receiver.recv() => match out {
                    Some(out) => if let Some(error) = self.send(out).await {
                        break error;
                    },
                    None => {
                        self.work.abort_all();
                        self.endpoint.end_session().await;
                        break TransportError::Closed;
                    }
                },
                Some(done) = self.work.join_next() => {
                    self.posts.retain(|_, post| !post.is_finished());
                    if let Ok(WorkResult::Ended(error)) = done {
                        break error;
                    }
                }
                () = self.direct.session_gone() => break TransportError::SessionGone,
                // Both ends of the link were dropped.
                () = self.incoming_sender.closed() => {
                    self.work.abort_all();
                    self.endpoint.end_session().await;
                    return;
                }
            }
        };
        if error == TransportError::SessionGone {
            self.fail_remaining(outgoing_receiver).await;
        }
        let _ = self.incoming_sender.send(Incoming::Closed(error)).await;
    }

    /// Waits for the rejections of requests that were sent, and fails those that were not, so that
    /// each request knows whether it failed because of the session.
    async fn fail_remaining(&mut self, mut outgoing_receiver: mpsc::Receiver<Outgoing>) {
        let refused = async {
            self.posts.retain(|_, post| !post.is_finished());
            while !self.posts.is_empty() {
                tokio::select! {
                    Some(out) = outgoing_receiver.recv() => self.fail(out).await,
                    Some(_) = self.work.join_next() => {}
                    else => break,
                }
                self.posts.retain(|_, post| !post.is_finished());
            }
            self.direct.idle().await;
        };
        let _ = tokio::time::timeout(LAST_RESPONSES_TIMEOUT, refused).await;
        outgoing_receiver.close();
        while let Some(out) = outgoing_receiver.recv().await {
            self.fail(out).await;
        }
    }

    async fn fail(&self, out: Outgoing) {
        if let Outgoing::Message(message) = out
            && let Some(id) = message.request().cloned()
        {
            let error = TransportError::SessionGone;
            let _ = self
                .incoming_sender
                .send(Incoming::Failed { id, error })
                .await;
        }
    }

    async fn send(&mut self, out: Outgoing) -> Option<TransportError> {
        match out {
            Outgoing::Message(message) => return self.post(message).await,
            Outgoing::Opened { version } => self.endpoint.set_version(&version),
            // V2-CANC-1: closing the connection is the cancellation.
            Outgoing::Abandon(id) | Outgoing::Cancel { id, .. } => {
                if let Some(post) = self.posts.remove(&id) {
                    post.abort();
                }
            }
        }
        None
    }

    async fn post(&mut self, message: OutgoingMessage) -> Option<TransportError> {
        let id = message.request().cloned();
        let opened =
            message.kind == MessageKind::OneWay && self.endpoint.is_open() && !self.listens;
        let work = post::deliver(self.endpoint.clone(), message, self.incoming_sender.clone());
        if opened {
            // The message that completes the handshake precedes all others and the general stream.
            if let WorkResult::Ended(error) = work.await {
                return Some(error);
            }
            self.listens = true;
            let (known, answered) = oneshot::channel();
            self.work.spawn(listen::listen(
                self.endpoint.clone(),
                self.incoming_sender.clone(),
                known,
            ));
            // No request is sent before the server has the general stream.
            let _ = tokio::time::timeout(self.listen_timeout, answered).await;
            self.direct.open();
            return None;
        }
        let post = self.work.spawn(work);
        if let Some(id) = id {
            self.posts.insert(id, post);
        }
        None
    }
}
