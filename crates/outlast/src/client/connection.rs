//! A connection that is opened again after it is lost, as far as the options allow.
//!
//! A session that the server has dropped is replaced at once (V1-SESS-5). A child process that has
//! ended is started again, with growing delays, if the options say so. Requests in flight fail;
//! their senders decide whether to retry them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Backoff;
use tokio::sync::watch;

use super::conversation::Conversation;
use super::era::{ClientDescription, Era, OpenFailure, OpenTimeouts, open_conversation};
use super::error::Error;
use super::observer::MessageObserver;
use super::request_ids::RequestIds;
use super::rpc::RpcChannel;
use super::rpc_handler::RpcHandler;
use super::target::Target;
use crate::transport::link::TransportError;

/// When and how often a lost connection is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconnectPolicy {
    /// The delay before the first attempt. It doubles with each further attempt, and each delay is
    /// shortened at random by up to a half.
    pub first_delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
    /// How many attempts in a row may fail.
    pub max_attempts: u32,
}

outlast_engine::option_setters! { ReconnectPolicy:
    set with_first_delay(first_delay: Duration);
    set with_max_delay(max_delay: Duration);
    set with_max_attempts(max_attempts: u32);
}

/// First delay 0.5 s, longest delay 30 s, ten attempts.
impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_attempts: 10,
        }
    }
}

/// The state of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Requests can be sent.
    Open,
    /// The connection was lost for this reason and is being opened again.
    Reconnecting(TransportError),
    /// The connection has ended for this reason and is not opened again.
    Closed(TransportError),
}

/// The changes of the state of a connection.
#[derive(Clone)]
pub struct ConnectionChanges(pub(super) ConversationWatch);

impl ConnectionChanges {
    /// Waits for the next change and returns the state; `None` after the client was dropped.
    pub async fn next(&mut self) -> Option<ConnectionState> {
        self.0.changed().await
    }
}

/// Opens conversations with one server.
pub(crate) struct Connector {
    /// The name of the server in logs.
    pub(crate) name: Arc<str>,
    pub(crate) target: Target,
    pub(crate) era: Era,
    pub(crate) description: ClientDescription,
    pub(crate) timeouts: OpenTimeouts,
    pub(crate) reconnect: Option<ReconnectPolicy>,
    pub(crate) inbound: Arc<dyn RpcHandler>,
    pub(crate) observer: Option<Arc<dyn MessageObserver>>,
    pub(crate) ids: Arc<RequestIds>,
}

/// A connection that reconnects. Dropping it closes it.
pub(crate) struct ReconnectingConnection {
    state: ConversationWatch,
    closing: watch::Sender<bool>,
}

/// The conversations of a connection, one after the other. It does not keep the connection open.
#[derive(Clone)]
pub(crate) struct ConversationWatch(watch::Receiver<State>);

#[derive(Clone)]
enum State {
    Open(Arc<Conversation>),
    /// The connection is lost for this reason and is being opened again.
    Reconnecting(TransportError),
    Closed(TransportError),
}

impl ReconnectingConnection {
    /// Opens a connection. The first attempt must succeed.
    pub(crate) async fn open(opener: Connector) -> Result<Self, Error> {
        let conversation = opener.open().await?;
        let (sender, state) = watch::channel(State::Open(conversation.clone()));
        let (closing, closed) = watch::channel(false);
        tokio::spawn(opener.run(conversation, sender, closed));
        let state = ConversationWatch(state);
        Ok(Self { state, closing })
    }

    /// The conversations of this connection.
    pub(crate) fn conversations(&self) -> ConversationWatch {
        self.state.clone()
    }

    /// Waits for the open conversation; fails if the connection has ended.
    pub(crate) async fn conversation(&self) -> Result<Arc<Conversation>, Error> {
        self.state.conversation().await
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn end_reason(&self) -> Option<TransportError> {
        match &*self.state.0.borrow() {
            State::Closed(error) => Some(error.clone()),
            State::Open(_) | State::Reconnecting(_) => None,
        }
    }

    /// Closes the connection and waits until it is closed.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut state = self.state.0.clone();
        let _ = state
            .wait_for(|state| matches!(state, State::Closed(_)))
            .await;
    }
}

impl ConversationWatch {
    /// Waits for the open conversation; fails if the connection has ended.
    pub(crate) async fn conversation(&self) -> Result<Arc<Conversation>, Error> {
        self.first(|_| true).await
    }

    /// Waits for the next conversation after `last`; fails if the connection has ended.
    pub(crate) async fn after(
        &self,
        last: &Weak<Conversation>,
    ) -> Result<Arc<Conversation>, Error> {
        self.first(|conversation| !Weak::ptr_eq(&Arc::downgrade(conversation), last))
            .await
    }

    /// The current state.
    pub(super) fn state(&self) -> ConnectionState {
        match &*self.0.borrow() {
            // A conversation on a closed channel is about to be replaced.
            State::Open(conversation) if conversation.channel.is_closed() => {
                ConnectionState::Reconnecting(TransportError::Closed)
            }
            State::Open(_) => ConnectionState::Open,
            State::Reconnecting(reason) => ConnectionState::Reconnecting(reason.clone()),
            State::Closed(reason) => ConnectionState::Closed(reason.clone()),
        }
    }

    /// Waits for the next change of the state; `None` after the end of the connection.
    pub(super) async fn changed(&mut self) -> Option<ConnectionState> {
        self.0.changed().await.ok()?;
        Some(self.state())
    }

    async fn first(
        &self,
        wanted: impl Fn(&Arc<Conversation>) -> bool,
    ) -> Result<Arc<Conversation>, Error> {
        let mut state = self.0.clone();
        let found = state
            .wait_for(|state| match state {
                State::Open(conversation) => {
                    !conversation.channel.is_closed() && wanted(conversation)
                }
                State::Reconnecting(_) => false,
                State::Closed(_) => true,
            })
            .await;
        match found.as_deref() {
            Ok(State::Open(conversation)) => Ok(conversation.clone()),
            Ok(State::Closed(error)) => Err(error.clone().into()),
            Ok(State::Reconnecting(_)) | Err(_) => Err(TransportError::Closed.into()),
        }
    }
}

impl Drop for ReconnectingConnection {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

impl Connector {
    async fn open(&self) -> Result<Arc<Conversation>, Error> {
        let era = match self.era {
            Era::PreferLegacy if self.target.is_only_modern() => Era::Auto,
            era => era,
        };
        match self.attempt(era).await {
            // Some servers exit if the first message is not a handshake.
            Err(OpenFailure::ClosedOnProbe(error)) if era == Era::Auto => {
                tracing::info!(
                    server = &*self.name,
                    error = error.brief(),
                    "the server closed the connection on the era probe; trying the legacy handshake"
                );
                self.attempt(Era::Legacy).await
            }
            Err(OpenFailure::Failed(error))
                if era == Era::PreferLegacy && refuses_handshake(&error) =>
            {
                let opened = self.attempt(Era::Auto).await;
                if matches!(&opened, Ok(conversation) if conversation.server.is_modern()) {
                    self.target.remember_only_modern();
                }
                opened
            }
            opened => opened,
        }
        .map_err(|(OpenFailure::Failed(error) | OpenFailure::ClosedOnProbe(error))| error)
    }

    async fn attempt(&self, era: Era) -> Result<Arc<Conversation>, OpenFailure> {
        let link = self
            .target
            .link()
            .map_err(|error| OpenFailure::Failed(error.into()))?;
        let channel = RpcChannel::start(
            link,
            self.ids.clone(),
            self.inbound.clone(),
            self.observer.clone(),
        );
        let why = match open_conversation(
            &channel,
            &self.target,
            era,
            &self.description,
            self.timeouts,
        )
        .await
        {
            Ok(server) => {
                let conversation = Conversation::new(channel, server, &self.description);
                // An era that the options prescribe says nothing about the server.
                if self.era == Era::Auto {
                    self.target.remember_era(conversation.server.era());
                }
                return Ok(Arc::new(conversation));
            }
            Err(why) => why,
        };
        channel.close();
        // The exit of a process is a better explanation than a missing response.
        let over = tokio::time::timeout(END_REASON_TIMEOUT, channel.wait_closed()).await;
        Err(match (why, over) {
            (
                OpenFailure::Failed(Error::Transport(_)),
                Ok(error @ TransportError::Ended { .. }),
            ) => OpenFailure::Failed(error.into()),
            (why, _) => why,
        })
    }

    /// Reopens the connection until it is closed or the options forbid it.
    async fn run(
        self,
        mut conversation: Arc<Conversation>,
        sender: watch::Sender<State>,
        mut closing: watch::Receiver<bool>,
    ) {
        loop {
            let reason = tokio::select! {
                reason = conversation.channel.wait_closed() => reason,
                () = closed(&mut closing) => {
                    conversation.channel.close();
                    let _ = conversation.channel.wait_closed().await;
                    sender.send_replace(State::Closed(TransportError::Closed));
                    return;
                }
            };
            sender.send_replace(State::Reconnecting(reason.clone()));
            tracing::info!(
                server = &*self.name,
                reason = reason.brief(),
                "connection lost"
            );
            let reconnect_after = tokio::select! {
                reconnect_after = self.reconnect_after(&reason) => reconnect_after,
                () = closed(&mut closing) => None,
            };
            match reconnect_after {
                Some(reconnect_after) => conversation = reconnect_after,
                None => {
                    sender.send_replace(State::Closed(reason));
                    return;
                }
            }
            sender.send_replace(State::Open(conversation.clone()));
        }
    }

    async fn reconnect_after(&self, reason: &TransportError) -> Option<Arc<Conversation>> {
        let gone = *reason == TransportError::SessionGone;
        if let (true, Some(session)) = (gone, self.target.session()) {
            session.forget();
        }
        let reconnect = match (gone, self.reconnect) {
            (_, Some(reconnect)) if reason.is_transient() => reconnect,
            (true, _) => ReconnectPolicy::default(),
            _ => return None,
        };
        let mut backoff = Backoff::new(reconnect.first_delay, reconnect.max_delay);
        let mut pause = if gone {
            Duration::ZERO
        } else {
            backoff.delay()
        };
        for _ in 0..reconnect.max_attempts.max(1) {
            tokio::time::sleep(pause).await;
            match self.open().await {
                Ok(conversation) => {
                    tracing::info!(server = &*self.name, "connection restored");
                    return Some(conversation);
                }
                Err(error) => {
                    pause = backoff.delay_of_at_least(error.retry_after());
                    let error = error.brief();
                    tracing::warn!(server = &*self.name, error, "could not reconnect");
                }
            }
        }
        None
    }
}

/// Whether a server that failed the handshake in this way may be a modern one. It may also have
/// exited.
fn refuses_handshake(error: &Error) -> bool {
    match error {
        Error::Peer(error) => error.refused.is_none(),
        Error::Transport(TransportError::Refused { status, .. }) => {
            !matches!(status, 401 | 403 | 407 | 429 | 503)
        }
        Error::Transport(error) => matches!(
            error,
            TransportError::Broken(_) | TransportError::Ended { .. }
        ),
        Error::Malformed(_) | Error::Unsupported(_) | Error::TimedOut(_) => true,
        Error::NotStored(_) => false,
    }
}

/// Resolves when the connection is to be closed.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// How long a connection that could not be opened may take to report the reason.
const END_REASON_TIMEOUT: Duration = Duration::from_secs(1);
