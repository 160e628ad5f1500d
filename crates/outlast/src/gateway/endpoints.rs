//! The endpoints of a gateway. Upstreams can be added while it runs.

use std::sync::Arc;

use outlast_engine::Engine;
use parking_lot::Mutex;

use super::Upstream;
use super::late_upstreams::LateUpstreams;
use crate::server::McpServer;
use crate::transport::child_registry::ChildRegistry;

/// An upstream and the server that serves it.
#[derive(Clone)]
pub struct UpstreamEndpoint {
    /// The upstream.
    pub upstream: Arc<Upstream>,
    /// The server that serves it.
    pub server: Arc<McpServer>,
    /// The path of its endpoint.
    pub path: String,
}

/// The endpoints of a gateway.
pub struct UpstreamEndpoints {
    engine: Engine,
    children: Option<ChildRegistry>,
    late: Option<Arc<LateUpstreams>>,
    all: Mutex<Vec<UpstreamEndpoint>>,
}

impl UpstreamEndpoints {
    pub(super) fn new(
        engine: Engine,
        children: Option<ChildRegistry>,
        late: Option<Arc<LateUpstreams>>,
        first: Vec<UpstreamEndpoint>,
    ) -> Self {
        let all = Mutex::new(first);
        Self {
            engine,
            children,
            late,
            all,
        }
    }

    /// All endpoints.
    pub fn all(&self) -> Vec<UpstreamEndpoint> {
        self.all.lock().clone()
    }

    /// Adds an upstream and returns its server, for access that does not use HTTP. Recovered tasks
    /// that wait for an upstream of this name continue.
    pub fn add(&self, upstream: Upstream) -> Arc<McpServer> {
        let sizes = &self.engine.policy().sizes;
        let upstream = Arc::new(upstream.configured(self.children.as_ref(), sizes));
        self.engine
            .add_runner(upstream.runner().clone(), upstream.clone());
        let server = McpServer::new(self.engine.clone(), upstream.clone(), Vec::new(), None);
        if let Some(late) = &self.late {
            late.add(&upstream);
        }
        self.all.lock().push(UpstreamEndpoint {
            server: server.clone(),
            path: format!("{ENDPOINT_PATH}/{}", upstream.name()),
            upstream,
        });
        server
    }
}

/// The path of a single endpoint.
pub(super) const ENDPOINT_PATH: &str = "/mcp";
