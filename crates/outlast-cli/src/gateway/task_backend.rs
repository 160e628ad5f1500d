//! A backend without tools that gives `outlast tasks` access to all tasks of the gateway, without
//! their servers.

use std::sync::Arc;

use async_trait::async_trait;
use outlast::client::{Era, Target};
use outlast::server::{self, Backend, BackendDescription, ClientHandle, PreparedCall};
use outlast::transport::duplex;
use outlast::transport::link::{Link, TransportError};
use outlast::wire::ErrorObject;
use outlast::wire::Raw;
use serde_json::json;

use super::control::{self, ControlReply, FirstLine};
use super::socket;
use crate::dirs;
use crate::target::{CommandOutput, NamedServer, StartedBy};

pub(super) struct TaskBackend;

#[async_trait]
impl Backend for TaskBackend {
    async fn describe(&self, _: &Arc<ClientHandle>) -> Result<BackendDescription, ErrorObject> {
        let mut description = BackendDescription::new("outlast", env!("CARGO_PKG_VERSION"));
        description.tasks = true;
        Ok(description)
    }

    async fn list_tools(&self, _: &Arc<ClientHandle>, _: Option<&Raw>) -> server::Reply {
        server::Reply::Result(Raw::encode(&json!({ "tools": [] })).expect("a literal is JSON"))
    }

    async fn prepare(
        &self,
        _: &Arc<ClientHandle>,
        _: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject> {
        Ok(None)
    }
}

/// The gateway on the default store as a server, if it runs.
pub(crate) fn at_gateway() -> Option<NamedServer> {
    let path = socket::path(&dirs::gateway_store().ok()?).ok()?;
    std::os::unix::net::UnixStream::connect(&path).ok()?;
    let connect = move || -> Result<Link, TransportError> {
        let failed = |error: std::io::Error| TransportError::Unreachable(error.to_string());
        let stream = match control::open(&path, &FirstLine::Tasks).map_err(failed)? {
            (stream, ControlReply::Ready { .. }) => stream,
            (_, ControlReply::Refused(why)) => return Err(TransportError::Unreachable(why)),
            _ => {
                return Err(TransportError::Unreachable(
                    "the gateway sent an unexpected reply".into(),
                ));
            }
        };
        stream.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(stream).map_err(failed)?;
        let (read, write) = stream.into_split();
        Ok(duplex::over(read, write))
    };
    Some(NamedServer {
        name: "gateway".into(),
        starts: StartedBy::Other,
        target: Target::other("the gateway on this machine", connect),
        // Only the legacy era can list tasks.
        era: Era::Legacy,
        session: None,
        anonymous: false,
        printed: CommandOutput::default(),
    })
}
