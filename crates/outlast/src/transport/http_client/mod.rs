//! Streamable HTTP of both eras as a client: every message is a POST, and the response is JSON or a
//! stream. A session has a general stream by GET, and ends with DELETE.
//!
//! This module handles bytes, headers and sessions. If the server does not know the session any
//! more, the [`Link`] ends; the [client side](crate::client) opens another.

mod direct;
mod endpoint;
mod events;
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

use super::link::{Incoming, Kind, Link, LinkError, Outgoing, Parcel, QUEUE};
pub(crate) use direct::DirectRequests;
use endpoint::Endpoint;

pub use options::HttpClientOptions;
pub use session::{SavedSession, Session};

/// Opens a connection to the server at a URL. It sends nothing yet.
pub fn connect(options: &HttpClientOptions) -> Result<Link, LinkError> {
    let endpoint = Arc::new(Endpoint::new(options)?);
    let (outgoing, sent) = mpsc::channel(QUEUE);
    let (tell, incoming) = mpsc::channel(QUEUE);
    let direct = Arc::new(DirectRequests::new(endpoint.clone(), tell.clone()));
    let carrier = Carrier {
        endpoint,
        direct: direct.clone(),
        tell,
        work: JoinSet::new(),
        posts: HashMap::new(),
        listens: false,
        patience: options.listen,
    };
    tokio::spawn(carrier.carry(sent));
    Ok(Link {
        direct: Some(direct),
        ..Link::new(outgoing, incoming)
    })
}

/// How long to wait for the rejection of requests in flight when the session is gone.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Sends and receives the messages of one link.
struct Carrier {
    endpoint: Arc<Endpoint>,
    direct: Arc<DirectRequests>,
    tell: mpsc::Sender<Incoming>,
    work: JoinSet<Done>,
    posts: HashMap<Id, AbortHandle>,
    listens: bool,
    /// How long the first request waits for the general stream.
    patience: Duration,
}

/// The result of a piece of work.
enum Done {
    /// The link continues.
    Fine,
    /// The session has ended, and the link with it.
    Over(LinkError),
}

impl Carrier {
    async fn carry(mut self, mut sent: mpsc::Receiver<Outgoing>) {
        let error = loop {
            tokio::select! {
                out = sent.recv() => match out {
                    Some(out) => if let Some(error) = self.send(out).await {
                        break error;
                    },
                    None => {
                        self.work.abort_all();
                        self.endpoint.say_goodbye().await;
                        break LinkError::Closed;
                    }
                },
                Some(done) = self.work.join_next() => {
                    self.posts.retain(|_, post| !post.is_finished());
                    if let Ok(Done::Over(error)) = done {
                        break error;
                    }
                }
                () = self.direct.session_gone() => break LinkError::SessionGone,
                // Both ends of the link were dropped.
                () = self.tell.closed() => {
                    self.work.abort_all();
                    self.endpoint.say_goodbye().await;
                    return;
                }
            }
        };
        if error == LinkError::SessionGone {
            self.refuse_rest(sent).await;
        }
        let _ = self.tell.send(Incoming::Closed(error)).await;
    }

    /// Waits for the rejections of requests that were sent, and fails those that were not, so that
    /// each request knows whether it failed because of the session.
    async fn refuse_rest(&mut self, mut sent: mpsc::Receiver<Outgoing>) {
        let refused = async {
            self.posts.retain(|_, post| !post.is_finished());
            while !self.posts.is_empty() {
                tokio::select! {
                    Some(out) = sent.recv() => self.refuse(out).await,
                    Some(_) = self.work.join_next() => {}
                    else => break,
                }
                self.posts.retain(|_, post| !post.is_finished());
            }
            self.direct.idle().await;
        };
        let _ = tokio::time::timeout(LAST_ANSWERS, refused).await;
        sent.close();
        while let Some(out) = sent.recv().await {
            self.refuse(out).await;
        }
    }

    async fn refuse(&self, out: Outgoing) {
        if let Outgoing::Message(parcel) = out
            && let Some(id) = parcel.request().cloned()
        {
            let error = LinkError::SessionGone;
            let _ = self.tell.send(Incoming::Failed { id, error }).await;
        }
    }

    async fn send(&mut self, out: Outgoing) -> Option<LinkError> {
        match out {
            Outgoing::Message(parcel) => return self.post(parcel).await,
            Outgoing::Opened { version } => self.endpoint.agree(&version),
            // V2-CANC-1: closing the connection is the cancellation.
            Outgoing::Abandon(id) | Outgoing::Withdraw { id, .. } => {
                if let Some(post) = self.posts.remove(&id) {
                    post.abort();
                }
            }
        }
        None
    }

    async fn post(&mut self, parcel: Parcel) -> Option<LinkError> {
        let id = parcel.request().cloned();
        let opened = parcel.kind == Kind::OneWay && self.endpoint.is_open() && !self.listens;
        let work = post::deliver(self.endpoint.clone(), parcel, self.tell.clone());
        if opened {
            // The message that completes the handshake precedes all others and the general stream.
            if let Done::Over(error) = work.await {
                return Some(error);
            }
            self.listens = true;
            let (known, answered) = oneshot::channel();
            self.work.spawn(listen::listen(
                self.endpoint.clone(),
                self.tell.clone(),
                known,
            ));
            // No request is sent before the server has the general stream.
            let _ = tokio::time::timeout(self.patience, answered).await;
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
