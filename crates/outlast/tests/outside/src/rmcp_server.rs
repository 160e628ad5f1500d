//! An ordinary rmcp server without task code.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

pub(crate) struct Reports {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Reports {
    pub(crate) fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Draws pages", annotations(read_only_hint = true))]
    async fn render(&self, Parameters(args): Parameters<crate::Render>) -> String {
        format!("{} pages", args.pages)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Reports {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
