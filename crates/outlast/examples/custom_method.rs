//! A custom method by middleware: `cargo run --example custom_method`.
//!
//! Middleware wraps every request to the server. This one counts requests and answers
//! `acme/counts`, which the server does not know; it logs who cancels a task; and it adds a line to
//! the description of every tool in `tools/list`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use outlast::prelude::*;
use outlast::server::{IncomingRequest, Middleware, Next, Reply};
use outlast::wire::{Raw, codes};
use serde_json::{Value, json};

/// How often each method was called.
#[derive(Default)]
struct RequestCounter(Mutex<BTreeMap<String, u64>>);

#[async_trait]
impl Middleware for RequestCounter {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        let method = request.method.clone();
        match method.as_str() {
            // Answered here: the server does not get it.
            "acme/counts" => return self.response(),
            "tasks/cancel" => eprintln!("{} cancels a task", request.owner),
            _ => {}
        }
        self.count(&method);
        let reply = next.run(request).await;
        match (method.as_str(), reply) {
            ("tools/list", Reply::Result(list)) => described(&list).unwrap_or(Reply::Result(list)),
            (_, reply) => reply,
        }
    }

    fn notification(&self, method: &str, _: Option<&str>) {
        self.count(method);
    }
}

impl RequestCounter {
    fn count(&self, method: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Method names come from the client, so their number is limited.
        if counts.len() < 1_000 || counts.contains_key(method) {
            *counts.entry(method.to_owned()).or_default() += 1;
        }
    }

    fn response(&self) -> Reply {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match Raw::encode(&json!({ "counts": *counts })) {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(codes::internal(error.to_string())),
        }
    }
}

fn described(list: &Raw) -> Option<Reply> {
    let mut list: Value = list.open().ok()?;
    for tool in list["tools"].as_array_mut()? {
        let line = format!("{} (counted)", tool["description"].as_str()?);
        tool["description"] = line.into();
    }
    Raw::encode(&list).ok().map(Reply::Result)
}

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let hello = Tool::new("hello", "Says hello", |_, _| async { Ok(text("Hello!")) });
    Server::builder("custom-method", "1.0.0")
        .tool(hello.task(TaskSupport::Optional))
        .middleware(RequestCounter::default())
        .build()
        .serve_stdio()
        .await
}
