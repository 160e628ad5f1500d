//! The gateway of a store on this machine: one process per user and store, reached through a local
//! socket.
//!
//! | where | what |
//! |---|---|
//! | `socket` | the path of the socket, and the check that its other end belongs to this user |
//! | `control` | the first line on a connection and its reply |
//! | `local` | serves the socket: relays, `outlast tasks`, status and stop |
//! | `servers` | which relays share a server |
//! | `start` | the lock for the start of a gateway; how `outlast serve` replaces one |
//! | `background` | the gateway that `outlast stdio` starts |
//! | `task_backend` | tasks without their servers, for `outlast tasks` |
//! | `task_changes` | `outlast tasks rerun` and `delete` |
//! | `commands` | `outlast gateway status`, `stop`, `logs` and `token` |
//! | `token` | the local token, for commands that call the gateway |

use std::time::Duration;

mod background;
mod commands;
mod control;
mod local;
mod servers;
pub(crate) mod socket;
mod start;
mod task_backend;
mod task_changes;
mod token;

pub(crate) use background::run as background;
pub(crate) use commands::{ask, run};
pub(crate) use control::{
    ControlReply, FirstLine, GatewayKind, ServerRequest, line, read as read_line,
};
pub(crate) use local::{GatewayInfo, LocalServer};
pub(crate) use start::{open_when_free, take_over};
pub(crate) use task_backend::at_gateway;
pub(crate) use token::of_url as token_of_url;

/// How long interrupted tasks wait for a relay that names their server.
pub(crate) const LATE_SERVER_TIMEOUT: Duration = Duration::from_secs(600);
