//! Builder for a server with rmcp handlers.

use std::io;
use std::sync::Arc;

use ::rmcp::ServerHandler;
use outlast_wire::v1::TaskSupport;

use super::Rmcp;
use crate::outlast::{Outlast, Server, ServerHandle};
use crate::transport::http::HttpOptions;

/// An rmcp server that is not started.
pub struct RmcpServer {
    outlast: Outlast,
    rmcp: Rmcp,
}

impl Outlast {
    /// A server whose rmcp handlers `make` creates, one for each session.
    pub fn rmcp<H: ServerHandler>(
        &self,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> RmcpServer {
        RmcpServer {
            outlast: self.clone(),
            rmcp: Rmcp::new(make),
        }
    }
}

impl RmcpServer {
    /// Sets whether a tool can or must run as a task.
    pub fn task(mut self, tool: &str, support: TaskSupport) -> Self {
        self.rmcp = self.rmcp.task(tool, support);
        self
    }

    /// Changes further settings.
    pub fn with(mut self, change: impl FnOnce(Rmcp) -> Rmcp) -> Self {
        self.rmcp = change(self.rmcp);
        self
    }

    /// Like [`Server::stdio`].
    pub async fn stdio(self) -> io::Result<()> {
        self.server().stdio().await
    }

    /// Like [`Server::http`].
    pub async fn http(self, address: &str) -> io::Result<ServerHandle> {
        self.server().http(address).await
    }

    /// Like [`Server::http_with`].
    pub async fn http_with(self, options: HttpOptions) -> io::Result<ServerHandle> {
        self.server().http_with(options).await
    }

    /// The server, for other transports.
    pub fn server(self) -> Server {
        let rmcp = Arc::new(self.rmcp);
        self.outlast.serve(rmcp.clone(), rmcp)
    }
}
