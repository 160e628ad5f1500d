//! Replaces `@modelcontextprotocol/server-everything` in tests without a network: the tools that
//! the documents call, with the same results, on standard input and output.

use std::time::Duration;

use outlast::schemars::JsonSchema;
use outlast::{Server, ServerError, Tool, text};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Sum {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Operation {
    /// In seconds.
    duration: f64,
    steps: u32,
}

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let sum = Tool::typed("get-sum", "Adds two numbers", |args: Sum, _| async move {
        let Sum { a, b } = args;
        Ok(text(format!("The sum of {a} and {b} is {}.", a + b)))
    });
    let echo = Tool::typed("echo", "Echoes the message", |args: Echo, _| async move {
        Ok(text(format!("Echo: {}", args.message)))
    });
    let operation = Tool::typed(
        "trigger-long-running-operation",
        "Takes a while and reports progress",
        |args: Operation, cx| async move {
            let Operation { duration, steps } = args;
            for step in 1..=steps {
                tokio::time::sleep(Duration::from_secs_f64(duration / f64::from(steps))).await;
                cx.progress(step.into(), steps.into());
            }
            Ok(text(format!(
                "Long running operation completed. Duration: {duration} seconds, Steps: {steps}."
            )))
        },
    );
    let server = Server::builder("mcp-servers/everything", "2.0.0");
    let server = server.tools([sum, echo, operation]).build();
    server.serve_stdio().await
}
