//! The endpoints of a gateway. Upstreams can be added while it runs.

use std::sync::Arc;

use outlast_engine::Engine;
use parking_lot::Mutex;

use super::Upstream;
use super::late::LateUpstreams;
use crate::server::McpServer;
use crate::transport::register::Register;

/// An upstream and the server that serves it.
#[derive(Clone)]
pub struct Served {
    /// The upstream.
    pub upstream: Arc<Upstream>,
    /// The server that serves it.
    pub front: Arc<McpServer>,
    /// The path of its endpoint.
    pub path: String,
}

/// The endpoints of a gateway.
pub struct ServedUpstreams {
    engine: Engine,
    children: Option<Register>,
    late: Option<Arc<LateUpstreams>>,
    all: Mutex<Vec<Served>>,
}

impl ServedUpstreams {
    pub(super) fn new(
        engine: Engine,
        children: Option<Register>,
        late: Option<Arc<LateUpstreams>>,
        first: Vec<Served>,
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
    pub fn all(&self) -> Vec<Served> {
        self.all.lock().clone()
    }

    /// Adds an upstream and returns its server, for access that does not use HTTP. Recovered tasks
    /// that wait for an upstream of this name continue.
    pub fn add(&self, upstream: Upstream) -> Arc<McpServer> {
        let sizes = &self.engine.policy().sizes;
        let upstream = Arc::new(upstream.assembled(self.children.as_ref(), sizes));
        self.engine
            .add_runner(upstream.runner().clone(), upstream.clone());
        let front = McpServer::with_backend(self.engine.clone(), upstream.clone(), Vec::new());
        if let Some(late) = &self.late {
            late.add(&upstream);
        }
        self.all.lock().push(Served {
            front: front.clone(),
            path: format!("{PATH}/{}", upstream.name()),
            upstream,
        });
        front
    }
}

/// The path of a single endpoint.
pub(super) const PATH: &str = "/mcp";
