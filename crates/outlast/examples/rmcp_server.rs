//! An ordinary rmcp server, wrapped: `cargo run --example rmcp_server --features rmcp -- [--http
//! ADDRESS] [--store URL]`.
//!
//! `Reports` has no task code. The last lines of `main` add durable tasks: a client of 2025-11-25
//! can call `render_report` as a task, disconnect, and return for the result.

use std::time::Duration;

use outlast::prelude::*;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ElicitRequestParams, ElicitationAction, ElicitationSchema, ErrorData,
    ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};

#[derive(Clone)]
struct Reports {
    tool_router: ToolRouter<Self>,
}

#[derive(serde::Deserialize, rmcp::schemars::JsonSchema)]
struct Report {
    /// What it is about.
    title: String,
    /// How many pages it has.
    pages: u32,
}

#[tool_router]
impl Reports {
    fn new() -> Self {
        Self {
            tool_router: Self::tool_router(),
        }
    }

    #[tool(
        description = "Renders a report, page by page",
        annotations(idempotent_hint = true)
    )]
    async fn render_report(
        &self,
        Parameters(Report { title, pages }): Parameters<Report>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        for page in 1..=pages.min(1_000) {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                () = context.ct.cancelled() => return Err(ErrorData::internal_error("stopped", None)),
            }
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, f64::from(page));
                let progress = progress.with_total(f64::from(pages));
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        Ok(format!("{title}: {pages} pages"))
    }

    #[tool(description = "Deletes a report, if the person agrees")]
    async fn delete_report(
        &self,
        Parameters(Report { title, .. }): Parameters<Report>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let agree = ElicitationSchema::builder()
            .required_bool("agree")
            .build()
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let input_request = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Delete {title}?"),
            requested_schema: agree,
        };
        let answer = context.peer.create_elicitation(input_request).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let agreed = answer
            .content
            .is_some_and(|content| content["agree"] == true);
        if answer.action == ElicitationAction::Accept && agreed {
            Ok(format!("{title} is gone"))
        } else {
            Ok(format!("{title} stays"))
        }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Reports {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions("Renders reports.")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut store = "memory:".to_owned();
    let mut http = None;
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--store", Some(url)) => store = url,
            ("--http", Some(address)) => http = Some(address),
            _ => return Err("usage: rmcp_server [--store URL] [--http ADDRESS]".into()),
        }
    }
    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let server = Server::rmcp(Reports::new)
        .task("render_report", TaskSupport::Optional)
        .task("delete_report", TaskSupport::Optional)
        .store(store)
        .build();
    match http {
        None => server.serve_stdio().await?,
        Some(address) => {
            let running = server.serve_http(&address).await?;
            println!("{}", running.url());
            tokio::signal::ctrl_c().await?;
            running.shutdown().await?;
        }
    }
    Ok(())
}
