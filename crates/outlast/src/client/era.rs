//! Which era a server is of: found out when a connection is opened, and remembered in its [`Target`] (V2-ERA-7).
//!
//! The question is `server/discover`, which has no effect anywhere (A3-5). Whatever is not a modern answer to it means a
//! legacy server (V2-ERA-2, V2-ERA-3, A3-4), except where nobody was asked: no way to the server, no admission.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Accepts;
use outlast_wire::{Raw, version};

use super::error::Error;
use super::legacy;
use super::modern::{self, ProbeResult};
use super::pending_response::PendingResponse;
use super::rpc::RpcChannel;
use super::server_description::ServerDescription;
use super::target::Target;
use crate::transport::http_client::Session;

/// In which era a server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Era {
    /// In the modern one if the server knows it (BD-21), else in the legacy one.
    #[default]
    Auto,
    /// With a handshake, in 2025-11-25 or an older version.
    Legacy,
    /// In the legacy one if the server knows it, else in the modern one: for a caller that takes requests of the server,
    /// which only the legacy era has.
    PreferLegacy,
    /// OmittedParams, in 2026-07-28; a server that does not know it is not spoken to (V2-ERA-4).
    Modern,
}

/// What we say of ourselves.
#[derive(Clone, Debug)]
pub(crate) struct ClientDescription {
    /// What is declared in a handshake.
    pub(crate) capabilities: Raw,
    pub(crate) info: Raw,
    /// What may be asked of us; said with every request of the modern era.
    pub(crate) accepts: Accepts,
}

/// How long finding out may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTimeouts {
    /// Until the conversation is open.
    pub(crate) handshake: Duration,
    /// Until a server that says nothing counts as a legacy one (A3-1).
    pub(crate) probe: Duration,
}

/// Why a conversation was not opened.
pub(crate) enum OpenFailure {
    Failed(Error),
    /// The server went away when it was asked for its era: the next one is not to be asked.
    ClosedOnProbe(Error),
}

/// Opens a conversation on a fresh link.
pub(crate) async fn open_conversation(
    channel: &Arc<RpcChannel>,
    target: &Target,
    era: Era,
    description: &ClientDescription,
    timeouts: OpenTimeouts,
) -> Result<ServerDescription, OpenFailure> {
    let session = target.session();
    let session_introduction = session.and_then(Session::introduction);
    let legacy = |version: &'static str| {
        let opening = legacy::open(channel, description, version, timeouts.handshake, session);
        async move { opening.await.map_err(OpenFailure::Failed) }
    };
    match (era, session_introduction, target.known_era()) {
        (Era::Auto | Era::Legacy | Era::PreferLegacy, Some(introduction), _) => {
            let again = legacy::reopen(channel, introduction.borrow()).await;
            again.map_err(OpenFailure::Failed)
        }
        // The second attempt, for which this is not called, finds out whether the server is a modern one.
        (Era::Legacy | Era::PreferLegacy, ..) => legacy(version::LEGACY).await,
        (Era::Modern, ..) => open_modern(channel, description, timeouts.handshake).await,
        (Era::Auto, None, Some(version::Era::Legacy)) => match legacy(version::LEGACY).await {
            // V2-ERA-7: it is another server now.
            Err(OpenFailure::Failed(Error::Peer(_) | Error::Unsupported(_))) => {
                open_detecting_era(channel, description, timeouts, legacy).await
            }
            met => met,
        },
        (Era::Auto, ..) => open_detecting_era(channel, description, timeouts, legacy).await,
    }
}

async fn open_modern(
    channel: &Arc<RpcChannel>,
    description: &ClientDescription,
    timeout: Duration,
) -> Result<ServerDescription, OpenFailure> {
    let asking = async {
        let first = modern::discover(channel, description).await?.answer().await;
        match modern::read_discovered(&first) {
            ProbeResult::Retry => modern::discover(channel, description).await?.answer().await,
            _ => first,
        }
    };
    let answer = tokio::time::timeout(timeout, asking).await;
    let answer = answer.unwrap_or(Err(Error::TimedOut(timeout)));
    match modern::read_discovered(&answer) {
        ProbeResult::Modern(server) => {
            channel.set_modern();
            Ok(server)
        }
        ProbeResult::Legacy(_) | ProbeResult::Closed | ProbeResult::Retry => {
            Err(OpenFailure::Failed(match answer {
                Err(error @ (Error::TimedOut(_) | Error::Transport(_))) => error,
                Err(error) => unsupported(&error.to_string()),
                Ok(_) => {
                    unsupported("it does not say which versions it speaks, or none that we do")
                }
            }))
        }
        ProbeResult::Failed(error) => Err(OpenFailure::Failed(error)),
    }
}

async fn open_detecting_era<L>(
    channel: &Arc<RpcChannel>,
    description: &ClientDescription,
    timeouts: OpenTimeouts,
    legacy: impl Fn(&'static str) -> L,
) -> Result<ServerDescription, OpenFailure>
where
    L: Future<Output = Result<ServerDescription, OpenFailure>>,
{
    let mut retried = false;
    loop {
        let pending = modern::discover(channel, description).await;
        let mut pending = pending.map_err(OpenFailure::ClosedOnProbe)?;
        let answer = match tokio::time::timeout(timeouts.probe, pending.wait()).await {
            Ok(answer) => answer,
            Err(_) => return wait_for_late_probe(channel, pending, legacy(version::LEGACY)).await,
        };
        return match (modern::read_discovered(&answer), answer) {
            (ProbeResult::Modern(server), _) => {
                channel.set_modern();
                Ok(server)
            }
            (ProbeResult::Retry, Err(_)) if !retried => {
                retried = true;
                continue;
            }
            (ProbeResult::Retry, Err(error)) => Err(OpenFailure::Failed(error)),
            (ProbeResult::Legacy(version), _) => legacy(version).await,
            (ProbeResult::Closed, Err(error)) => Err(OpenFailure::ClosedOnProbe(error)),
            (ProbeResult::Closed | ProbeResult::Retry, Ok(_)) => legacy(version::LEGACY).await,
            (ProbeResult::Failed(error), _) => Err(OpenFailure::Failed(error)),
        };
    }
}

/// A server that says nothing is a legacy one, or one that takes long to start: then its late answer counts.
async fn wait_for_late_probe(
    channel: &Arc<RpcChannel>,
    mut pending: PendingResponse,
    legacy: impl Future<Output = Result<ServerDescription, OpenFailure>>,
) -> Result<ServerDescription, OpenFailure> {
    let mut legacy = std::pin::pin!(legacy);
    tokio::select! {
        biased;
        answer = pending.wait() => match modern::read_discovered(&answer) {
            ProbeResult::Modern(server) => {
                channel.set_modern();
                Ok(server)
            }
            _ => legacy.await,
        },
        met = &mut legacy => met,
    }
}

fn unsupported(why: &str) -> Error {
    Error::Unsupported(format!("MCP {}: {why}", version::MODERN))
}
