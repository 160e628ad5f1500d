//! Two typed tools that run as tasks, and a client that drives them.

use outlast::prelude::*;
use outlast::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Render {
    /// How many pages to draw.
    pages: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    total: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let render = Tool::typed("render", "Draws pages", |args: Render, cx| async move {
        cx.status("drawing");
        Ok(text(format!("{} pages", args.pages)))
    });
    let count = Tool::typed("count", "Counts pages", |args: Render, _| async move {
        Ok(Json(Sum { total: args.pages }))
    });
    let server = Server::builder("reports", "1.0")
        .tool(render.task(TaskSupport::Optional))
        .tool(count.task(TaskSupport::Optional))
        .build()
        .start()
        .await?;

    let target = Target::in_process(server.mcp().clone());
    let client = Client::connect(target, ClientOptions::default()).await?;
    let call = client.call_tool("render", Render { pages: 3 }).await?;
    println!("{}", call.result().await?.text());
    let call = client.call_tool("count", Render { pages: 3 }).await?;
    let sum: Sum = call.result().await?.structured()?;
    println!("{}", sum.total);
    client.close().await;
    Ok(server.shutdown().await?)
}
