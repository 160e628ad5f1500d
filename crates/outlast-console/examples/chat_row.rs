//! A chat page of a host program that shows a tool call by `<outlast-task-status>`.
//!
//! `cargo run -p outlast-console --example chat_row`, then open the URL that it prints. The page is
//! not a page of the console: it uses only the custom element and the API.

use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use outlast::engine::{CreatedTask, NewCall};
use outlast::prelude::*;
use outlast_console::Console;
use outlast_engine::{Engine, InputKinds, Origin, Owner};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let slow = Tool::new("render", "Renders a report", |_, cx| async move {
        for page in 1..=60 {
            cx.status(&format!("page {page} of 60"));
            cx.progress(f64::from(page), 60.0);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(text("done"))
    });
    let server = Server::builder("reports", "1.0")
        .tool(slow.task(TaskSupport::Optional))
        .build()
        .start()
        .await?;
    let console = Console::builder(server.engine().clone())
        .base_path("/console")
        .build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!(
        "http://{}{}",
        listener.local_addr()?,
        console.sign_in_path()
    );
    println!("http://{}/", listener.local_addr()?);
    let engine = server.engine().clone();
    let app: Router = Router::new()
        .route(
            "/",
            get(|| async { Html(include_str!("chat_row/chat.html")) }),
        )
        .route("/chat.js", get(|| script(include_str!("chat_row/chat.js"))))
        .route(
            "/task-status.js",
            get(|| script(include_str!("../assets/task-status.js"))),
        )
        .route("/render", post(move || render(engine.clone())))
        .nest_service("/console", console.into_service());
    axum::serve(listener, app).await?;
    Ok(())
}

async fn script(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript")], text)
}

/// Starts a task and returns its id.
async fn render(engine: Engine) -> Result<String, String> {
    let origin = Origin {
        tool: Some("render".into()),
        ..Origin::new("tools/call", outlast::server::RUNNER, InputKinds::NONE)
    };
    match engine.create(NewCall::new(Owner::Local, origin)).await {
        Ok(CreatedTask::New(task) | CreatedTask::Existing(task)) => Ok(task.id.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
