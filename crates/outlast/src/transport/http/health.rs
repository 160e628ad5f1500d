//! Health checks: `/healthz` says that the process runs, `/readyz` whether it accepts new tasks.

use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::store::Health;
use outlast_engine::{Engine, Owner};
use tokio::time::timeout;

use super::descriptors;
use super::router::{Page, Router};

impl Router {
    /// The response of a health check, if `path` is one.
    pub(super) async fn health(&self, path: &str) -> Option<Page> {
        match path {
            "/healthz" => Some(line(200, "ok".to_owned())),
            "/readyz" => Some(match self.not_ready().await {
                None => ready(self.nodes().await),
                Some(why) => line(503, format!("not ready: {why}")),
            }),
            _ => None,
        }
    }

    /// Why a new task would be rejected now; `None` if it would not.
    async fn not_ready(&self) -> Option<String> {
        let endpoint = &self.endpoints.first()?.endpoint;
        if endpoint.is_closing() {
            return Some(SHUTTING_DOWN.to_owned());
        }
        if let Some(why) = refusal(&endpoint.sessions.server().engine).await {
            return Some(why);
        }
        if self.connections.count() >= self.max_connections {
            return Some(self.no_connection());
        }
        descriptors::exhausted()
    }

    /// One line for each node, if the store grants leases. It needs no token, so it has no
    /// addresses.
    async fn nodes(&self) -> Vec<String> {
        let Some(first) = self.endpoints.first() else {
            return Vec::new();
        };
        let engine = &first.endpoint.sessions.server().engine;
        let nodes = timeout(MAX_STORE_DELAY, engine.nodes()).await;
        let mut nodes = nodes.ok().and_then(Result::ok).unwrap_or_default();
        if nodes.iter().all(|node| node.lease.is_none()) {
            nodes.clear();
        }
        let nodes = nodes.iter().map(|node| {
            let this = if node.node == engine.node() {
                " (this node)"
            } else {
                ""
            };
            let lease = node.lease.unwrap_or_default().as_secs_f64();
            format!(
                "node {}{this}: {}, lease {lease:.1} s, epoch {}, {} open tasks",
                node.node.0,
                node.state.word(),
                node.epoch,
                node.open_tasks
            )
        });
        nodes.collect()
    }

    /// Why a connection is rejected.
    pub(super) fn no_connection(&self) -> String {
        format!("all {} connections are in use", self.max_connections)
    }
}

/// Why `engine` would reject a new task now; `None` if it would not. The order is that of the
/// checks at creation.
async fn refusal(engine: &Engine) -> Option<String> {
    if let Some(why) = no_new_work(engine) {
        return Some(why);
    }
    match &*engine.store().health().borrow() {
        Health::Ready => {}
        Health::NoSpace(reason) => return Some(format!("the store has no space: {reason}")),
        Health::Down(reason) => return Some(format!("the store cannot be written: {reason}")),
        Health::Closed => return Some("the store is closed".to_owned()),
    }
    let quota = engine.policy().quota;
    match timeout(MAX_STORE_DELAY, engine.usage(&Owner::Local)).await {
        Ok(Ok(usage)) if usage.retained >= quota.retained => Some(format!(
            "{} tasks are retained, which is the limit (setting `quota.retained`)",
            quota.retained
        )),
        Ok(Ok(usage)) if usage.open >= quota.open => Some(format!(
            "{} tasks are running, which is the limit (setting `quota.open`)",
            quota.open
        )),
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the store does not respond".to_owned()),
    }
}

/// Why `engine` accepts no new work in its phase: it starts or drains.
pub(super) fn no_new_work(engine: &Engine) -> Option<String> {
    match engine.check_open() {
        Ok(()) => None,
        Err(EngineError::Closing) => Some(SHUTTING_DOWN.to_owned()),
        Err(starting) => Some(starting.to_string()),
    }
}

/// The page of a server that accepts new tasks.
fn ready(nodes: Vec<String>) -> Page {
    let mut page = line(200, "ready".to_owned());
    for node in nodes {
        page.body.push_str(&node);
        page.body.push('\n');
    }
    page
}

/// A page of one line.
fn line(status: u16, text: String) -> Page {
    let text: String = text.lines().collect::<Vec<_>>().join(" ");
    Page {
        status,
        content_type: "text/plain; charset=utf-8",
        body: text + "\n",
    }
}

/// The error of new requests while the server drains.
pub(super) const SHUTTING_DOWN: &str = "the server is shutting down";

/// A store that responds later is not ready.
const MAX_STORE_DELAY: Duration = Duration::from_secs(2);
