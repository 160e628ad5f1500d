//! What the servers of a process share: the store, the policy and the middleware.

use std::sync::Arc;
#[cfg(feature = "gateway")]
use std::time::Duration;

use outlast_engine::engine::EngineBuilder;
#[cfg(feature = "gateway")]
use outlast_engine::engine::Retention;
use outlast_engine::{Clock, Engine, MemoryStore, Policy, Store};

use crate::server::Middleware;
#[cfg(feature = "gateway")]
use crate::transport::child_registry::ChildRegistry;
#[cfg(feature = "gateway")]
use crate::webhook::Webhook;

/// The store and the policy of a gateway. A [`Server`](crate::Server) has its own builder.
#[derive(Clone)]
pub struct Outlast {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    /// Records child processes.
    #[cfg(feature = "gateway")]
    pub(crate) children: Option<ChildRegistry>,
    /// How long recovered tasks wait for an upstream that is added later.
    #[cfg(feature = "gateway")]
    pub(crate) late_upstreams: Option<Duration>,
    /// What a gateway delivers.
    #[cfg(feature = "gateway")]
    pub(crate) webhooks: Vec<Webhook>,
    /// The URL of the pages of a gateway, for links in deliveries.
    #[cfg(feature = "gateway")]
    pub(crate) public_url: Option<String>,
    #[cfg(feature = "gateway")]
    retention: Retention,
    clock: Option<Arc<dyn Clock>>,
}

/// Configures an [`Outlast`].
#[derive(Clone, Default)]
pub struct OutlastBuilder {
    store: Option<Arc<dyn Store>>,
    policy: Policy,
    middleware: Vec<Arc<dyn Middleware>>,
    #[cfg(feature = "gateway")]
    children: Option<ChildRegistry>,
    #[cfg(feature = "gateway")]
    late_upstreams: Option<Duration>,
    #[cfg(feature = "gateway")]
    webhooks: Vec<Webhook>,
    #[cfg(feature = "gateway")]
    public_url: Option<String>,
    #[cfg(feature = "gateway")]
    retention: Retention,
    clock: Option<Arc<dyn Clock>>,
}

impl Outlast {
    /// Returns a builder. Without a store, tasks are kept in memory.
    pub fn builder() -> OutlastBuilder {
        OutlastBuilder::default()
    }

    /// Returns an engine builder. The engine first opens the store and then ends the child
    /// processes of the previous run. While another process has the store open, that process may
    /// use them.
    pub(crate) fn engine(&self) -> EngineBuilder {
        let builder = Engine::builder(self.store.clone()).policy(self.policy.clone());
        #[cfg(feature = "gateway")]
        let builder = {
            let children = self.children.clone();
            builder
                .retention(self.retention)
                .before_recovery(async move {
                    match children {
                        Some(children) => children.end_orphans().await,
                        None => Ok(()),
                    }
                })
        };
        match &self.clock {
            Some(clock) => builder.clock(clock.clone()),
            None => builder,
        }
    }
}

impl OutlastBuilder {
    /// Stores tasks in `store`.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds middleware around every request, inside the middleware that was added before.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Records the processes of upstreams in a folder. After a crash the next run ends them before
    /// it runs anything again.
    #[cfg(feature = "gateway")]
    pub fn children(mut self, registry: Option<ChildRegistry>) -> Self {
        self.children = registry;
        self
    }

    /// Makes recovered tasks of a gateway wait up to `limit` until their upstream is added
    /// ([`UpstreamEndpoints::add`](crate::gateway::UpstreamEndpoints::add)). Without it, their
    /// outcome is unknown.
    #[cfg(feature = "gateway")]
    pub fn late_upstreams(mut self, limit: Duration) -> Self {
        self.late_upstreams = Some(limit);
        self
    }

    #[cfg(feature = "gateway")]
    /// Makes a gateway deliver changes of status to `webhooks`.
    pub fn webhooks(mut self, webhooks: Vec<Webhook>) -> Self {
        self.webhooks = webhooks;
        self
    }

    #[cfg(feature = "gateway")]
    /// Sets the URL under which people reach the pages of a gateway, for links in deliveries. The
    /// default is its address on this machine.
    pub fn public_url(mut self, url: Option<String>) -> Self {
        self.public_url = url;
        self
    }

    #[cfg(feature = "gateway")]
    /// Deletes ended tasks that exceed `retention` before their TTL ends.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    pub(crate) fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Builds the [`Outlast`].
    pub fn build(self) -> Outlast {
        Outlast {
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            policy: self.policy,
            middleware: self.middleware,
            #[cfg(feature = "gateway")]
            children: self.children,
            #[cfg(feature = "gateway")]
            late_upstreams: self.late_upstreams,
            #[cfg(feature = "gateway")]
            webhooks: self.webhooks,
            #[cfg(feature = "gateway")]
            public_url: self.public_url,
            #[cfg(feature = "gateway")]
            retention: self.retention,
            clock: self.clock,
        }
    }
}
