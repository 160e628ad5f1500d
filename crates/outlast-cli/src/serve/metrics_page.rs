//! The HTTP page `/metrics`, next to the MCP endpoints and the health checks.

use std::sync::Arc;

use async_trait::async_trait;
use metrics_exporter_prometheus::PrometheusHandle;
use outlast::engine::Engine;
use outlast::gateway::{Gateway, UpstreamEndpoints};
use outlast::transport::http::{Page, Pages};

use super::metrics;

/// Serves the metrics of a gateway.
pub(super) struct MetricsPage {
    engine: Engine,
    upstreams: Arc<UpstreamEndpoints>,
    collected: PrometheusHandle,
}

impl MetricsPage {
    pub(super) fn of(gateway: &Gateway, collected: PrometheusHandle) -> Arc<Self> {
        Arc::new(Self {
            engine: gateway.engine().clone(),
            upstreams: gateway.upstreams().clone(),
            collected,
        })
    }
}

#[async_trait]
impl Pages for MetricsPage {
    async fn page(&self, path: &str) -> Option<Page> {
        match path {
            "/metrics" => {
                let served = self.upstreams.all();
                let text = metrics::text(&self.collected, &self.engine, &served);
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
