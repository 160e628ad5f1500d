//! The trace context of a call is sent to the upstream.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast::client::{Era, Target};
use outlast::gateway::Upstream;
use outlast::server::{IncomingRequest, McpServer, Middleware, Next, Reply};
use outlast::{Server, Tool, text};
use outlast_testkit::mcp::caller::{CLIENT_KINDS, CallEnd};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::harness::{gateway, quick};

/// Stores the `_meta` of the last tool call.
#[derive(Clone, Default)]
struct LastMeta(Arc<Mutex<Value>>);

#[async_trait]
impl Middleware for LastMeta {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        if request.method == "tools/call" {
            let params = request.params.as_ref().unwrap().as_str();
            let params: Value = serde_json::from_str(params).unwrap();
            *self.0.lock().unwrap() = params["_meta"].clone();
        }
        next.run(request).await
    }
}

async fn server(last_meta: LastMeta) -> Arc<McpServer> {
    let tool = Tool::new("quick", "is quick", |_, _| async move { Ok(text("done")) });
    let server = Server::builder("behind", "1")
        .tool(tool)
        .middleware(last_meta);
    let running = server.build().start().await.unwrap();
    running.mcp().clone()
}

#[tokio::test(start_paused = true)]
async fn trace_context_reaches_servers_of_both_eras_unchanged() {
    // V2-META-9.
    let trace = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        "baggage": "userId=alice,serverNode=DF%2028",
    });
    for era in [Era::Legacy, Era::Modern] {
        let last_meta = LastMeta::default();
        let target = Target::in_process(server(last_meta.clone()).await);
        let settings = quick().with_era(era);
        let (_, mcp_server) = gateway(Upstream::new("behind", target, settings)).await;
        for kind in CLIENT_KINDS {
            let mut caller = connect(kind, &mcp_server).await;
            let params = json!({ "name": "quick", "arguments": {}, "_meta": trace });
            let begun = caller.begin(params.clone()).await;
            let ended = caller.finish(params, begun).await;
            assert!(matches!(ended, CallEnd::Result(_)), "{kind:?}: {ended:?}");
            let meta = std::mem::take(&mut *last_meta.0.lock().unwrap());
            for (key, value) in trace.as_object().unwrap() {
                assert_eq!(&meta[key], value, "{kind:?} to {era:?}: {meta}");
            }
        }
    }
}
