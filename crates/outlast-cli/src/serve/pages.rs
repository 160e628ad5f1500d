//! The pages beside the endpoints: whether the gateway lives, whether it takes work, and how it stands.

use std::sync::Arc;

use async_trait::async_trait;
use metrics_exporter_prometheus::PrometheusHandle;
use outlast::engine::{Engine, Owner};
use outlast::gateway::{Gateway, Served};
use outlast::transport::http::{Page, Pages};
use serde_json::json;

use super::metrics;

/// How a gateway stands.
pub(super) struct Health {
    engine: Engine,
    served: Vec<Served>,
    collected: PrometheusHandle,
}

impl Health {
    pub(super) fn of(gateway: &Gateway, collected: PrometheusHandle) -> Arc<Self> {
        Arc::new(Self {
            engine: gateway.engine().clone(),
            served: gateway.served().to_vec(),
            collected,
        })
    }

    /// Whether work is taken: the store answers and the engine does not close.
    async fn ready(&self) -> Page {
        let store = self.engine.usage(&Owner::Local).await.is_ok();
        let open = self.engine.takes_work();
        let servers: serde_json::Map<_, _> = self
            .served
            .iter()
            .map(|served| {
                let upstream = &served.upstream;
                let stands = json!({ "connections": upstream.connections(), "failing": upstream.is_failing() });
                (upstream.name().to_string(), stands)
            })
            .collect();
        let body = json!({ "ready": store && open, "store": store, "servers": servers });
        Page {
            status: if store && open { 200 } else { 503 },
            content_type: "application/json",
            body: body.to_string(),
        }
    }
}

#[async_trait]
impl Pages for Health {
    async fn page(&self, path: &str) -> Option<Page> {
        match path {
            "/healthz" => Some(plain("ok\n".into())),
            "/readyz" => Some(self.ready().await),
            "/metrics" => {
                let text = metrics::text(&self.collected, &self.engine, &self.served);
                Some(plain(text.await))
            }
            _ => None,
        }
    }
}

fn plain(body: String) -> Page {
    Page {
        status: 200,
        content_type: "text/plain; version=0.0.4; charset=utf-8",
        body,
    }
}
