//! A connection that comes back: it is opened, watched, and opened again where that is allowed.
//!
//! A session that the server has forgotten is opened anew at once (V1-SESS-5). A child that died is started again with
//! growing pauses, if the options say so. What was in flight is told that it is lost; who may repeat what is decided
//! by whoever asked.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Backoff;
use tokio::sync::watch;

use super::conversation::Conversation;
use super::era::{ClientDescription, Era, OpenFailure, OpenTimeouts, open_conversation};
use super::error::Error;
use super::request_ids::RequestIds;
use super::rpc::RpcChannel;
use super::rpc_handler::RpcHandler;
use super::target::Target;
use crate::transport::link::LinkError;

/// When a connection that was lost is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// How long to wait before the first attempt, at most; twice as long before each further one. Each wait is
    /// shortened at random by up to a half.
    pub first_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
    /// How many attempts in a row may fail.
    pub max_attempts: u32,
}

/// Half a second at first, half a minute at most, ten attempts.
impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_attempts: 10,
        }
    }
}

/// What it takes to open a conversation.
pub(crate) struct Connector {
    /// What we call the server.
    pub(crate) name: Arc<str>,
    pub(crate) target: Target,
    pub(crate) era: Era,
    pub(crate) description: ClientDescription,
    pub(crate) timeouts: OpenTimeouts,
    pub(crate) reconnect: Option<ReconnectPolicy>,
    pub(crate) inbound: Arc<dyn RpcHandler>,
    pub(crate) ids: Arc<RequestIds>,
}

/// A connection that comes back. Dropping it closes it.
pub(crate) struct ReconnectingConnection {
    state: ConversationWatch,
    closing: watch::Sender<bool>,
}

/// The conversations of a connection, one after the other, for those who do not keep it open.
#[derive(Clone)]
pub(crate) struct ConversationWatch(watch::Receiver<State>);

#[derive(Clone)]
enum State {
    Open(Arc<Conversation>),
    /// On its way back.
    Reconnecting,
    Closed(LinkError),
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

    /// Its conversations.
    pub(crate) fn conversations(&self) -> ConversationWatch {
        self.state.clone()
    }

    /// The conversation, once it is open; fails if it will not be any more.
    pub(crate) async fn conversation(&self) -> Result<Arc<Conversation>, Error> {
        self.state.conversation().await
    }

    /// Why the connection will not come back, if it will not.
    pub(crate) fn over(&self) -> Option<LinkError> {
        match &*self.state.0.borrow() {
            State::Closed(error) => Some(error.clone()),
            State::Open(_) | State::Reconnecting => None,
        }
    }

    /// Closes it and waits until that is done.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut state = self.state.0.clone();
        let _ = state
            .wait_for(|state| matches!(state, State::Closed(_)))
            .await;
    }
}

impl ConversationWatch {
    /// The conversation, once it is open; fails if it will not be any more.
    pub(crate) async fn conversation(&self) -> Result<Arc<Conversation>, Error> {
        self.first(|_| true).await
    }

    /// The next conversation after `last`, once it is open; fails if there will be none.
    pub(crate) async fn after(
        &self,
        last: &Weak<Conversation>,
    ) -> Result<Arc<Conversation>, Error> {
        self.first(|conversation| !Weak::ptr_eq(&Arc::downgrade(conversation), last))
            .await
    }

    async fn first(
        &self,
        wanted: impl Fn(&Arc<Conversation>) -> bool,
    ) -> Result<Arc<Conversation>, Error> {
        let mut state = self.0.clone();
        let settled = state
            .wait_for(|state| match state {
                State::Open(conversation) => {
                    !conversation.channel.is_closed() && wanted(conversation)
                }
                State::Reconnecting => false,
                State::Closed(_) => true,
            })
            .await;
        match settled.as_deref() {
            Ok(State::Open(conversation)) => Ok(conversation.clone()),
            Ok(State::Closed(error)) => Err(error.clone().into()),
            Ok(State::Reconnecting) | Err(_) => Err(LinkError::Closed.into()),
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
            // Some servers leave when they hear something else than a handshake first.
            Err(OpenFailure::ClosedOnProbe(error)) if era == Era::Auto => {
                tracing::info!(
                    server = &*self.name,
                    error = error.brief(),
                    "the server left when it was asked for its era"
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
        let channel = RpcChannel::begin(link, self.ids.clone(), self.inbound.clone());
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
                // What was not found out but wished for says nothing about the server.
                if self.era == Era::Auto {
                    self.target.remember_era(conversation.server.era());
                }
                return Ok(Arc::new(conversation));
            }
            Err(why) => why,
        };
        channel.close();
        // A process that ended says more than that it does not answer.
        let over = tokio::time::timeout(END_REASON_TIMEOUT, channel.over()).await;
        Err(match (why, over) {
            (OpenFailure::Failed(Error::Transport(_)), Ok(error @ LinkError::Ended { .. })) => {
                OpenFailure::Failed(error.into())
            }
            (why, _) => why,
        })
    }

    /// Keeps a connection open as long as it is wanted and the options allow.
    async fn run(
        self,
        mut conversation: Arc<Conversation>,
        sender: watch::Sender<State>,
        mut closing: watch::Receiver<bool>,
    ) {
        loop {
            let reason = tokio::select! {
                reason = conversation.channel.over() => reason,
                () = closed(&mut closing) => {
                    conversation.channel.close();
                    let _ = conversation.channel.over().await;
                    sender.send_replace(State::Closed(LinkError::Closed));
                    return;
                }
            };
            sender.send_replace(State::Reconnecting);
            tracing::info!(
                server = &*self.name,
                reason = reason.brief(),
                "the connection is lost"
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

    async fn reconnect_after(&self, reason: &LinkError) -> Option<Arc<Conversation>> {
        let gone = *reason == LinkError::SessionGone;
        if let (true, Some(session)) = (gone, self.target.session()) {
            session.forget();
        }
        let reconnect = match (gone, self.reconnect) {
            (_, Some(reconnect)) if reason.is_passing() => reconnect,
            (true, _) => ReconnectPolicy::default(),
            _ => return None,
        };
        let mut backoff = Backoff::new(reconnect.first_delay, reconnect.max_delay);
        let mut pause = if gone {
            Duration::ZERO
        } else {
            backoff.pause()
        };
        for _ in 0..reconnect.max_attempts.max(1) {
            tokio::time::sleep(pause).await;
            match self.open().await {
                Ok(conversation) => {
                    tracing::info!(server = &*self.name, "the connection is back");
                    return Some(conversation);
                }
                Err(error) => {
                    pause = backoff.pause_of_at_least(error.retry_after());
                    let error = error.brief();
                    tracing::warn!(
                        server = &*self.name,
                        error,
                        "the connection could not be made again"
                    );
                }
            }
        }
        None
    }
}

/// Whether a server that answered the handshake so may be one of the modern era. It may also have left.
fn refuses_handshake(error: &Error) -> bool {
    match error {
        Error::Peer(error) => error.refused.is_none(),
        Error::Transport(LinkError::Refused { status, .. }) => {
            !matches!(status, 401 | 403 | 407 | 429 | 503)
        }
        Error::Transport(error) => matches!(error, LinkError::Broken(_) | LinkError::Ended { .. }),
        Error::Malformed(_) | Error::Unsupported(_) | Error::TimedOut(_) => true,
        Error::NotStored(_) => false,
    }
}

/// Resolves when the connection is not wanted any more.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// How long a link that could not be opened may take to say why.
const END_REASON_TIMEOUT: Duration = Duration::from_secs(1);
