//! A cell of the matrix: the client, the server, and the transport of each hop.

use std::fmt::{self, Display, Formatter};

use outlast::client::Era;
use outlast_testkit::mcp::caller::{CLIENT_KINDS, ClientKind};
use outlast_testkit::mcp::endpoint::{TRANSPORTS, Transport};

/// A kind of client, a kind of server, and the transports on both sides of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) client: ClientKind,
    pub(crate) server: ServerKind,
    /// Between the client and the gateway.
    pub(crate) client_transport: Transport,
    /// Between the gateway and the server.
    pub(crate) server_transport: Transport,
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            server,
            client_transport,
            server_transport,
        } = self;
        write!(
            f,
            "{client:?} –{client_transport:?}→ gateway –{server_transport:?}→ {server:?}"
        )
    }
}

/// What happens to a call that runs when the gateway dies (P4, P5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// The server runs it as its own task, which the gateway resumes.
    Resumed,
    RunsAgain,
    Unknown,
}

impl Cell {
    /// All cells.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for client in CLIENT_KINDS {
            for server in SERVER_KINDS {
                for client_transport in TRANSPORTS {
                    all.extend(TRANSPORTS.map(|server_transport| Self {
                        client,
                        server,
                        client_transport,
                        server_transport,
                    }));
                }
            }
        }
        all
    }

    /// A set of cells that covers every pair of the four dimensions: each client with each server
    /// once.
    pub(crate) fn pairs() -> Vec<Self> {
        let way = |odd: usize| TRANSPORTS[odd % 2];
        let rows = CLIENT_KINDS.into_iter().enumerate().map(|(c, client)| {
            SERVER_KINDS
                .into_iter()
                .enumerate()
                .map(move |(s, server)| Self {
                    client,
                    server,
                    client_transport: way(c + s),
                    server_transport: way(c / 2 + s / 2 + s),
                })
        });
        rows.flatten().collect()
    }

    /// Whether the server runs a long call as its own task. A legacy server creates a task only on
    /// request, a modern one if the call takes long.
    pub(crate) fn is_task_of_the_server(self) -> bool {
        match self.server {
            ServerKind::V1 => self.client.has_tasks(),
            ServerKind::V2 => true,
            ServerKind::PlainLegacy | ServerKind::PlainModern => false,
        }
    }

    /// What happens to a stored call that runs when the gateway dies.
    pub(crate) fn recovery(self, may_repeat: bool) -> Recovery {
        if self.is_task_of_the_server() && self.server_transport == Transport::Http {
            Recovery::Resumed
        } else if may_repeat {
            Recovery::RunsAgain
        } else {
            Recovery::Unknown
        }
    }
}

/// How a server does tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// No tasks, legacy era.
    PlainLegacy,
    /// No tasks, modern era.
    PlainModern,
    V1,
    V2,
}

pub(crate) const SERVER_KINDS: [ServerKind; 4] = [
    ServerKind::PlainLegacy,
    ServerKind::PlainModern,
    ServerKind::V1,
    ServerKind::V2,
];

impl ServerKind {
    /// Its name in documents.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::PlainLegacy => "no tasks, up to 2025-11-25",
            Self::PlainModern => "no tasks, 2026-07-28",
            Self::V1 => "V1",
            Self::V2 => "V2",
        }
    }

    pub(crate) fn era(self) -> Era {
        match self {
            Self::PlainLegacy | Self::V1 => Era::Legacy,
            Self::PlainModern | Self::V2 => Era::Modern,
        }
    }

    pub(crate) fn has_tasks(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }
}
