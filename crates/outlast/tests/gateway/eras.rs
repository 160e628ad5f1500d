//! The era of the connection to a server that supports both: the one in which the client can get
//! input requests.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Era, Target};
use outlast::gateway::{Settings, Upstream};
use outlast::server::McpServer;
use outlast::transport::duplex;
use outlast_testkit::mcp::caller::{CallEnd, ClientKind};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{
    ElicitRequestParams, ElicitationSchema, ErrorData, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde_json::{Value, json};

use crate::caller::{connect, connect_declaring};
use crate::harness::{gateway, quick};
use crate::rules::{discovered, modern_call};
use crate::scripted;

/// The settings of a gateway that chooses the era.
fn auto() -> Settings {
    quick().with_era(Era::Auto)
}

/// An rmcp server, which supports both eras. Its tool sends its input request directly.
#[derive(Clone)]
struct ElicitingServer {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl ElicitingServer {
    fn new() -> Self {
        Self {
            tool_router: Self::tool_router(),
        }
    }

    #[tool(description = "Asks for a name")]
    async fn ask(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let failed = |why: String| ErrorData::internal_error(why, None);
        let schema = ElicitationSchema::builder().required_string("name").build();
        let input_request = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Who?".into(),
            requested_schema: schema.map_err(|error| failed(error.to_string()))?,
        };
        let answer = context.peer.create_elicitation(input_request).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let name = answer
            .content
            .as_ref()
            .and_then(|content| content["name"].as_str());
        Ok(format!("hello {}", name.unwrap_or_default()))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for ElicitingServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

/// The gateway in front of an rmcp server.
async fn gateway_with_rmcp_server() -> Arc<McpServer> {
    let target = Target::other("rmcp", || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            if let Ok(running) = ElicitingServer::new().serve(theirs).await {
                let _ = running.waiting().await;
            }
        });
        let (read, write) = tokio::io::split(ours);
        Ok(duplex::over(read, write))
    });
    gateway(Upstream::new("rmcp", target, auto())).await.1
}

#[tokio::test]
async fn an_rmcp_tool_sends_input_requests_to_a_legacy_client() {
    let mcp_server = gateway_with_rmcp_server().await;
    for kind in [ClientKind::PlainLegacy, ClientKind::V1] {
        let mut caller = connect(kind, &mcp_server).await;
        let ended = caller.call("ask", json!({})).await;
        let CallEnd::Result(result) = ended else {
            panic!("{kind:?}: {ended:?}");
        };
        assert_eq!(result["content"][0]["text"], "hello Ada/Who?", "{kind:?}");
    }
}

/// The first request on a new connection for a client of that kind.
async fn first_request(kind: ClientKind, capabilities: Value) -> Value {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, auto())).await;
    let connecting =
        tokio::spawn(
            async move { connect_declaring(kind, &mcp_server, "by-hand", capabilities).await },
        );
    let first = servers.next().await.next_request().await;
    connecting.abort();
    first
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_with_input_support_gets_a_legacy_connection() {
    for (kind, capabilities, method) in [
        (ClientKind::V1, json!({ "elicitation": {} }), "initialize"),
        (
            ClientKind::PlainLegacy,
            json!({ "sampling": {} }),
            "initialize",
        ),
        (ClientKind::V1, json!({}), "server/discover"),
        (
            ClientKind::V2,
            json!({ "elicitation": {} }),
            "server/discover",
        ),
    ] {
        let first = first_request(kind, capabilities.clone()).await;
        assert_eq!(first["method"], method, "{kind:?} {capabilities}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_initialize_gets_a_modern_connection() {
    // V2-ERA-7: the handshake is not tried again.
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, auto())).await;
    for (round, capabilities) in [json!({ "elicitation": {} }), json!({ "sampling": {} })]
        .into_iter()
        .enumerate()
    {
        let mcp_server = mcp_server.clone();
        let connecting = tokio::spawn(async move {
            connect_declaring(ClientKind::V1, &mcp_server, "by-hand", capabilities).await
        });
        if round == 0 {
            let mut server = servers.next().await;
            let hello = server.expect_request("initialize").await;
            server.refuse(&hello, -32022, "only 2026-07-28").await;
        }
        let mut server = servers.next().await;
        let request = server.next_request().await;
        assert_eq!(request["method"], "server/discover", "{round}");
        let found = json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "1" } },
        });
        server.reply(&request, found).await;
        let caller = connecting.await.unwrap();
        assert_eq!(
            caller.server_info["serverInfo"]["name"], "modern",
            "{round}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_v2_server_is_returned_at_once() {
    // BR-CREATE-6: without waiting for the grace period, which is an hour here.
    let (target, mut servers) = scripted::target();
    let mut settings = Settings::default().with_era(Era::Modern);
    let hour = Duration::from_secs(3_600);
    settings.tool_defaults.grace = Some(hour);
    let (_, mcp_server) = gateway(Upstream::new("played", target, settings)).await;
    let calling = tokio::spawn(async move {
        let mut caller = connect(ClientKind::V2, &mcp_server).await;
        let id = caller.send("tools/call", json!({ "name": "slow" })).await;
        caller.response_to(id).await
    });
    let mut server = servers.next().await;
    discovered(&mut server).await;
    let call = modern_call(&mut server).await;
    let created = json!({
        "resultType": "task",
        "taskId": "t1",
        "status": "working",
        "createdAt": "2026-08-10T08:00:00Z",
        "lastUpdatedAt": "2026-08-10T08:00:00Z",
        "ttlMs": 600_000,
        "pollIntervalMs": 60_000,
    });
    server.reply(&call, created).await;
    let answer = tokio::time::timeout(hour / 2, calling).await;
    let answer = answer.unwrap().unwrap();
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    assert_ne!(answer["result"]["taskId"], "t1", "BR-ID-1");
}
