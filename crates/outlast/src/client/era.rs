//! Which era a server is of: found out when a connection is opened, and remembered in its [`Target`] (V2-ERA-7).
//!
//! The question is `server/discover`, which has no effect anywhere (A3-5). Whatever is not a modern answer to it means a
//! legacy server (V2-ERA-2, V2-ERA-3, A3-4), except where nobody was asked: no way to the server, no admission.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Accepts;
use outlast_wire::{Raw, version};

use super::error::Fault;
use super::legacy;
use super::modern::{self, Found};
use super::rpc::{Exchange, Ticket};
use super::server_description::Server;
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
    /// Without, in 2026-07-28; a server that does not know it is not spoken to (V2-ERA-4).
    Modern,
}

/// What we say of ourselves.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    /// What is declared in a handshake.
    pub(crate) capabilities: Raw,
    pub(crate) info: Raw,
    /// What may be asked of us; said with every request of the modern era.
    pub(crate) accepts: Accepts,
}

/// How long finding out may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Until the conversation is open.
    pub(crate) handshake: Duration,
    /// Until a server that says nothing counts as a legacy one (A3-1).
    pub(crate) probe: Duration,
}

/// Why a conversation was not opened.
pub(crate) enum Unmet {
    Fault(Fault),
    /// The server went away when it was asked for its era: the next one is not to be asked.
    Scared(Fault),
}

/// Opens a conversation on a fresh link.
pub(crate) async fn meet(
    exchange: &Arc<Exchange>,
    target: &Target,
    era: Era,
    we: &Introduction,
    patience: Patience,
) -> Result<Server, Unmet> {
    let session = target.session();
    let known = session.and_then(Session::introduction);
    let legacy = |version: &'static str| {
        let opening = legacy::open(exchange, we, version, patience.handshake, session);
        async move { opening.await.map_err(Unmet::Fault) }
    };
    match (era, known, target.known_era()) {
        (Era::Auto | Era::Legacy | Era::PreferLegacy, Some(introduction), _) => {
            let again = legacy::reopen(exchange, introduction.borrow()).await;
            again.map_err(Unmet::Fault)
        }
        // The second attempt, for which this is not called, finds out whether the server is a modern one.
        (Era::Legacy | Era::PreferLegacy, ..) => legacy(version::LEGACY).await,
        (Era::Modern, ..) => only_modern(exchange, we, patience.handshake).await,
        (Era::Auto, None, Some(version::Era::Legacy)) => match legacy(version::LEGACY).await {
            // V2-ERA-7: it is another server now.
            Err(Unmet::Fault(Fault::Error(_) | Fault::Unsupported(_))) => {
                either(exchange, we, patience, legacy).await
            }
            met => met,
        },
        (Era::Auto, ..) => either(exchange, we, patience, legacy).await,
    }
}

async fn only_modern(
    exchange: &Arc<Exchange>,
    we: &Introduction,
    patience: Duration,
) -> Result<Server, Unmet> {
    let asking = async {
        let first = modern::discover(exchange, we).await?.answer().await;
        match modern::read_discovered(&first) {
            Found::Again => modern::discover(exchange, we).await?.answer().await,
            _ => first,
        }
    };
    let answer = tokio::time::timeout(patience, asking).await;
    let answer = answer.unwrap_or(Err(Fault::TimedOut(patience)));
    match modern::read_discovered(&answer) {
        Found::Modern(server) => {
            exchange.goes_modern();
            Ok(server)
        }
        Found::Legacy(_) | Found::Scared | Found::Again => Err(Unmet::Fault(match answer {
            Err(fault @ (Fault::TimedOut(_) | Fault::Link(_))) => fault,
            Err(fault) => unsupported(&fault.to_string()),
            Ok(_) => unsupported("it does not say which versions it speaks, or none that we do"),
        })),
        Found::Neither(fault) => Err(Unmet::Fault(fault)),
    }
}

async fn either<L>(
    exchange: &Arc<Exchange>,
    we: &Introduction,
    patience: Patience,
    legacy: impl Fn(&'static str) -> L,
) -> Result<Server, Unmet>
where
    L: Future<Output = Result<Server, Unmet>>,
{
    let mut confused = false;
    loop {
        let asked = modern::discover(exchange, we).await;
        let mut asked = asked.map_err(Unmet::Scared)?;
        let answer = match tokio::time::timeout(patience.probe, asked.wait()).await {
            Ok(answer) => answer,
            Err(_) => return slow(exchange, asked, legacy(version::LEGACY)).await,
        };
        return match (modern::read_discovered(&answer), answer) {
            (Found::Modern(server), _) => {
                exchange.goes_modern();
                Ok(server)
            }
            (Found::Again, Err(_)) if !confused => {
                confused = true;
                continue;
            }
            (Found::Again, Err(fault)) => Err(Unmet::Fault(fault)),
            (Found::Legacy(version), _) => legacy(version).await,
            (Found::Scared, Err(fault)) => Err(Unmet::Scared(fault)),
            (Found::Scared | Found::Again, Ok(_)) => legacy(version::LEGACY).await,
            (Found::Neither(fault), _) => Err(Unmet::Fault(fault)),
        };
    }
}

/// A server that says nothing is a legacy one, or one that takes long to start: then its late answer counts.
async fn slow(
    exchange: &Arc<Exchange>,
    mut asked: Ticket,
    legacy: impl Future<Output = Result<Server, Unmet>>,
) -> Result<Server, Unmet> {
    let mut legacy = std::pin::pin!(legacy);
    tokio::select! {
        biased;
        answer = asked.wait() => match modern::read_discovered(&answer) {
            Found::Modern(server) => {
                exchange.goes_modern();
                Ok(server)
            }
            _ => legacy.await,
        },
        met = &mut legacy => met,
    }
}

fn unsupported(why: &str) -> Fault {
    Fault::Unsupported(format!("MCP {}: {why}", version::MODERN))
}
