//! The builder of a server with rmcp handlers.

use ::rmcp::ServerHandler;
use outlast_wire::v1::TaskSupport;

use super::Rmcp;
use crate::running_server::Server;
use crate::server_builder::ServerBuilder;

impl Server {
    /// Returns a builder for a server whose rmcp handlers `make` creates, one for each session. The
    /// handler gives the name and the version.
    pub fn rmcp<H: ServerHandler>(
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> ServerBuilder<Rmcp> {
        Self::backend(Rmcp::new(make))
    }
}

impl ServerBuilder<Rmcp> {
    /// Sets whether a tool can or must run as a task.
    pub fn task(self, tool: &str, support: TaskSupport) -> Self {
        self.map(|rmcp| rmcp.task(tool, support))
    }

    /// Changes further settings.
    pub fn with(self, change: impl FnOnce(Rmcp) -> Rmcp) -> Self {
        self.map(change)
    }
}
