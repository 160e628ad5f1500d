//! A connection that comes back: it is opened, watched, and opened again where that is allowed.
//!
//! A session that the server has forgotten is opened anew at once (V1-SESS-5). A child that died is started again with
//! growing pauses, if the options say so. What was in flight is told that it is lost; who may repeat what is decided
//! by whoever asked.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Backoff;
use tokio::sync::watch;

use super::conversation::Up;
use super::era::{Era, Introduction, Patience, Unmet, meet};
use super::error::Fault;
use super::request_ids::Ids;
use super::rpc::{Exchange, Inbound};
use super::target::Target;
use crate::transport::link::LinkError;

/// When a connection that was lost is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// How long to wait before the first attempt, at most; twice as long before each further one. Each wait is
    /// shortened at random by up to a half.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts in a row may fail.
    pub attempts: u32,
}

/// Half a second at first, half a minute at most, ten attempts.
impl Default for Restart {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            attempts: 10,
        }
    }
}

/// What it takes to open a conversation.
pub(crate) struct Opener {
    /// What we call the server.
    pub(crate) name: Arc<str>,
    pub(crate) target: Target,
    pub(crate) era: Era,
    pub(crate) we: Introduction,
    pub(crate) patience: Patience,
    pub(crate) restart: Option<Restart>,
    pub(crate) inbound: Arc<dyn Inbound>,
    pub(crate) ids: Arc<Ids>,
}

/// A connection that comes back. Dropping it closes it.
pub(crate) struct Connection {
    state: Ups,
    closing: watch::Sender<bool>,
}

/// The conversations of a connection, one after the other, for those who do not keep it open.
#[derive(Clone)]
pub(crate) struct Ups(watch::Receiver<State>);

#[derive(Clone)]
enum State {
    Up(Arc<Up>),
    /// On its way back.
    Down,
    Over(LinkError),
}

impl Connection {
    /// Opens a connection. The first attempt must succeed.
    pub(crate) async fn open(opener: Opener) -> Result<Self, Fault> {
        let up = opener.open().await?;
        let (tell, state) = watch::channel(State::Up(up.clone()));
        let (closing, closed) = watch::channel(false);
        tokio::spawn(opener.keep(up, tell, closed));
        let state = Ups(state);
        Ok(Self { state, closing })
    }

    /// Its conversations.
    pub(crate) fn ups(&self) -> Ups {
        self.state.clone()
    }

    /// The conversation, once it is open; fails if it will not be any more.
    pub(crate) async fn up(&self) -> Result<Arc<Up>, Fault> {
        self.state.up().await
    }

    /// Why the connection will not come back, if it will not.
    pub(crate) fn over(&self) -> Option<LinkError> {
        match &*self.state.0.borrow() {
            State::Over(error) => Some(error.clone()),
            State::Up(_) | State::Down => None,
        }
    }

    /// Closes it and waits until that is done.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut state = self.state.0.clone();
        let _ = state
            .wait_for(|state| matches!(state, State::Over(_)))
            .await;
    }
}

impl Ups {
    /// The conversation, once it is open; fails if it will not be any more.
    pub(crate) async fn up(&self) -> Result<Arc<Up>, Fault> {
        self.first(|_| true).await
    }

    /// The next conversation after `last`, once it is open; fails if there will be none.
    pub(crate) async fn after(&self, last: &Weak<Up>) -> Result<Arc<Up>, Fault> {
        self.first(|up| !Weak::ptr_eq(&Arc::downgrade(up), last))
            .await
    }

    async fn first(&self, wanted: impl Fn(&Arc<Up>) -> bool) -> Result<Arc<Up>, Fault> {
        let mut state = self.0.clone();
        let settled = state
            .wait_for(|state| match state {
                State::Up(up) => !up.exchange.is_over() && wanted(up),
                State::Down => false,
                State::Over(_) => true,
            })
            .await;
        match settled.as_deref() {
            Ok(State::Up(up)) => Ok(up.clone()),
            Ok(State::Over(error)) => Err(error.clone().into()),
            Ok(State::Down) | Err(_) => Err(LinkError::Closed.into()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

impl Opener {
    async fn open(&self) -> Result<Arc<Up>, Fault> {
        let era = match self.era {
            Era::PreferLegacy if self.target.is_only_modern() => Era::Auto,
            era => era,
        };
        match self.attempt(era).await {
            // Some servers leave when they hear something else than a handshake first.
            Err(Unmet::Scared(fault)) if era == Era::Auto => {
                tracing::info!(
                    server = &*self.name,
                    fault = fault.brief(),
                    "the server left when it was asked for its era"
                );
                self.attempt(Era::Legacy).await
            }
            Err(Unmet::Fault(fault)) if era == Era::PreferLegacy && refuses_handshake(&fault) => {
                let opened = self.attempt(Era::Auto).await;
                if matches!(&opened, Ok(up) if up.server.is_modern()) {
                    self.target.remember_only_modern();
                }
                opened
            }
            opened => opened,
        }
        .map_err(|(Unmet::Fault(fault) | Unmet::Scared(fault))| fault)
    }

    async fn attempt(&self, era: Era) -> Result<Arc<Up>, Unmet> {
        let link = self
            .target
            .link()
            .map_err(|error| Unmet::Fault(error.into()))?;
        let exchange = Exchange::begin(link, self.ids.clone(), self.inbound.clone());
        let why = match meet(&exchange, &self.target, era, &self.we, self.patience).await {
            Ok(server) => {
                let up = Up::new(exchange, server, &self.we);
                // What was not found out but wished for says nothing about the server.
                if self.era == Era::Auto {
                    self.target.remember_era(up.server.era());
                }
                return Ok(Arc::new(up));
            }
            Err(why) => why,
        };
        exchange.close();
        // A process that ended says more than that it does not answer.
        let over = tokio::time::timeout(LAST_WORDS, exchange.over()).await;
        Err(match (why, over) {
            (Unmet::Fault(Fault::Link(_)), Ok(error @ LinkError::Ended { .. })) => {
                Unmet::Fault(error.into())
            }
            (why, _) => why,
        })
    }

    /// Keeps a connection open as long as it is wanted and the options allow.
    async fn keep(
        self,
        mut up: Arc<Up>,
        tell: watch::Sender<State>,
        mut closing: watch::Receiver<bool>,
    ) {
        loop {
            let reason = tokio::select! {
                reason = up.exchange.over() => reason,
                () = closed(&mut closing) => {
                    up.exchange.close();
                    let _ = up.exchange.over().await;
                    tell.send_replace(State::Over(LinkError::Closed));
                    return;
                }
            };
            tell.send_replace(State::Down);
            tracing::info!(
                server = &*self.name,
                reason = reason.brief(),
                "the connection is lost"
            );
            let again = tokio::select! {
                again = self.again(&reason) => again,
                () = closed(&mut closing) => None,
            };
            match again {
                Some(again) => up = again,
                None => {
                    tell.send_replace(State::Over(reason));
                    return;
                }
            }
            tell.send_replace(State::Up(up.clone()));
        }
    }

    async fn again(&self, reason: &LinkError) -> Option<Arc<Up>> {
        let gone = *reason == LinkError::SessionGone;
        if let (true, Some(session)) = (gone, self.target.session()) {
            session.forget();
        }
        let restart = match (gone, self.restart) {
            (_, Some(restart)) if reason.is_passing() => restart,
            (true, _) => Restart::default(),
            _ => return None,
        };
        let mut backoff = Backoff::new(restart.first, restart.longest);
        let mut pause = if gone {
            Duration::ZERO
        } else {
            backoff.pause()
        };
        for _ in 0..restart.attempts.max(1) {
            tokio::time::sleep(pause).await;
            match self.open().await {
                Ok(up) => {
                    tracing::info!(server = &*self.name, "the connection is back");
                    return Some(up);
                }
                Err(fault) => {
                    pause = backoff.pause_of_at_least(fault.retry_after());
                    let fault = fault.brief();
                    tracing::warn!(
                        server = &*self.name,
                        fault,
                        "the connection could not be made again"
                    );
                }
            }
        }
        None
    }
}

/// Whether a server that answered the handshake so may be one of the modern era. It may also have left.
fn refuses_handshake(fault: &Fault) -> bool {
    match fault {
        Fault::Error(error) => error.refused.is_none(),
        Fault::Link(LinkError::Refused { status, .. }) => {
            !matches!(status, 401 | 403 | 407 | 429 | 503)
        }
        Fault::Link(error) => matches!(error, LinkError::Broken(_) | LinkError::Ended { .. }),
        Fault::Malformed(_) | Fault::Unsupported(_) | Fault::TimedOut(_) => true,
        Fault::Unrecorded(_) => false,
    }
}

/// Resolves when the connection is not wanted any more.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// How long a link that could not be opened may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(1);
