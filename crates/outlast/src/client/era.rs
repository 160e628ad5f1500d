//! Detects the era of a server when a connection is opened. The result is kept in the [`Target`]
//! (V2-ERA-7).
//!
//! The probe is `server/discover`, which has no side effect (A3-5). Any response that is not a
//! valid modern one means a legacy server (V2-ERA-2, V2-ERA-3, A3-4), unless the server was not
//! reached or refused access.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::InputKinds;
use outlast_wire::{Raw, version};

use super::error::Error;
use super::legacy;
use super::modern::{self, ProbeResult};
use super::pending_response::PendingResponse;
use super::rpc::RpcChannel;
use super::server_description::ServerDescription;
use super::target::Target;
use crate::transport::http_client::HttpSession;

/// The era in which to talk to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Era {
    /// Modern if the server supports it (BD-21), otherwise legacy.
    #[default]
    Auto,
    /// Legacy: with a handshake, in 2025-11-25 or an older version.
    Legacy,
    /// Legacy if the server supports it, otherwise modern. Use it if the caller handles requests
    /// that the server sends: only the legacy era has such requests.
    PreferLegacy,
    /// Modern: without a handshake, in 2026-07-28. Connecting to a server that does not support it
    /// fails (V2-ERA-4).
    Modern,
}

/// The description of this client that is sent to servers.
#[derive(Clone, Debug)]
pub(crate) struct ClientDescription {
    /// The capabilities that the handshake declares.
    pub(crate) capabilities: Raw,
    pub(crate) info: Raw,
    /// The accepted input kinds. Every modern request declares them.
    pub(crate) accepts: InputKinds,
}

/// The time limits for opening a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTimeouts {
    /// Until the conversation is open.
    pub(crate) handshake: Duration,
    /// Until a server that does not respond to the probe is treated as legacy (A3-1).
    pub(crate) probe: Duration,
}

/// Why a conversation could not be opened.
pub(crate) enum OpenFailure {
    Failed(Error),
    /// The server closed the connection after the probe. The next attempt must not probe.
    ClosedOnProbe(Error),
}

/// Opens a conversation on a new channel.
pub(crate) async fn open_conversation(
    channel: &Arc<RpcChannel>,
    target: &Target,
    era: Era,
    description: &ClientDescription,
    timeouts: OpenTimeouts,
) -> Result<ServerDescription, OpenFailure> {
    let session = target.session();
    let session_introduction = session.and_then(HttpSession::introduction);
    let legacy = |version: &'static str| {
        let opening = legacy::open(channel, description, version, timeouts.handshake, session);
        async move { opening.await.map_err(OpenFailure::Failed) }
    };
    match (era, session_introduction, target.known_era()) {
        (Era::Auto | Era::Legacy | Era::PreferLegacy, Some(introduction), _) => {
            let again = legacy::reopen(channel, introduction.borrow()).await;
            again.map_err(OpenFailure::Failed)
        }
        // [`Connector`](super::connection::Connector) makes a second attempt if this one shows a
        // modern server.
        (Era::Legacy | Era::PreferLegacy, ..) => legacy(version::LEGACY).await,
        (Era::Modern, ..) => open_modern(channel, description, timeouts.handshake).await,
        (Era::Auto, None, Some(version::Era::Legacy)) => match legacy(version::LEGACY).await {
            // The remembered era is wrong, for example because the server was replaced. V2-ERA-7:
            // detect the era again.
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
        let first = modern::discover(channel, description)
            .await?
            .response()
            .await;
        match modern::read_probe_response(&first) {
            ProbeResult::Retry => {
                modern::discover(channel, description)
                    .await?
                    .response()
                    .await
            }
            _ => first,
        }
    };
    let response = tokio::time::timeout(timeout, asking).await;
    let response = response.unwrap_or(Err(Error::TimedOut(timeout)));
    match modern::read_probe_response(&response) {
        ProbeResult::Modern(server) => {
            channel.set_modern();
            Ok(server)
        }
        ProbeResult::Legacy(_) | ProbeResult::Closed | ProbeResult::Retry => {
            Err(OpenFailure::Failed(match response {
                Err(error @ (Error::TimedOut(_) | Error::Transport(_))) => error,
                Err(error) => unsupported(&error.to_string()),
                Ok(_) => unsupported(
                    "its response to `server/discover` names no common protocol version",
                ),
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
        let response = match tokio::time::timeout(timeouts.probe, pending.wait()).await {
            Ok(response) => response,
            Err(_) => return wait_for_late_probe(channel, pending, legacy(version::LEGACY)).await,
        };
        return match (modern::read_probe_response(&response), response) {
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

/// Sends the legacy handshake while the probe is still unanswered. A modern response to the probe
/// still counts, because a server may take long to start.
async fn wait_for_late_probe(
    channel: &Arc<RpcChannel>,
    mut pending: PendingResponse,
    legacy: impl Future<Output = Result<ServerDescription, OpenFailure>>,
) -> Result<ServerDescription, OpenFailure> {
    let mut legacy = std::pin::pin!(legacy);
    tokio::select! {
        biased;
        response = pending.wait() => match modern::read_probe_response(&response) {
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
