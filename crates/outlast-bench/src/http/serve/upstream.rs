//! What stands behind gateways: a server of the legacy era without tasks, which costs as little as can be, so that what is
//! seen is the gateway.

use std::io::{BufRead, Write};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::rmcp::TEXT;
use crate::Done;

/// Serves over HTTP, without sessions.
pub(super) async fn serve() -> Done<()> {
    super::serve_router(Router::new().route("/mcp", post(post_message))).await
}

/// Serves on standard input and output.
pub(super) fn pipe() -> Done<()> {
    let mut gate = Gate::default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let message: Message<'_> = serde_json::from_str(&line)?;
        match answer(&message) {
            Answer::Nothing => {}
            Answer::Line(line) => out.write_all(line.as_bytes())?,
            Answer::Gated(id) => gate.waiting.push(id),
            Answer::Release(id) => gate.release = Some(id),
        }
        if gate.waiting.len() >= GATED
            && let Some(release) = gate.release.take()
        {
            gate.waiting.push(release);
            for id in gate.waiting.drain(..) {
                out.write_all(said(&id).as_bytes())?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

async fn post_message(body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match answer(&message) {
        Answer::Line(line) => ([(CONTENT_TYPE, "application/json")], line).into_response(),
        Answer::Nothing => StatusCode::ACCEPTED.into_response(),
        // Nobody waits over HTTP.
        Answer::Gated(_) | Answer::Release(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Calls that wait until so many of them are there and somebody releases them.
#[derive(Default)]
struct Gate {
    waiting: Vec<String>,
    release: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

enum Answer {
    Nothing,
    Line(String),
    /// The call with this id waits at the gate.
    Gated(String),
    /// The call with this id opens it.
    Release(String),
}

fn answer(message: &Message<'_>) -> Answer {
    #[derive(Deserialize)]
    struct Call<'a> {
        name: &'a str,
    }
    let Some(id) = message.id.map(RawValue::get) else {
        return Answer::Nothing;
    };
    let params = message.params.map_or("{}", RawValue::get);
    let result = match message.method {
        "initialize" => INITIALIZED,
        "tools/list" => TOOLS,
        "ping" => "{}",
        "tools/call" => match serde_json::from_str::<Call<'_>>(params) {
            Ok(Call { name: "gated" }) => return Answer::Gated(id.to_owned()),
            Ok(Call { name: "release" }) => return Answer::Release(id.to_owned()),
            _ => return Answer::Line(said(id)),
        },
        _ => {
            let error = r#"{"code":-32601,"message":"no such method"}"#;
            return Answer::Line(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n"
            ));
        }
    };
    Answer::Line(line(id, result))
}

/// What every tool says.
fn said(id: &str) -> String {
    let result = format!(r#"{{"content":[{{"type":"text","text":"{TEXT}"}}]}}"#);
    line(id, &result)
}

fn line(id: &str, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

/// How many calls wait at the gate before it can be opened.
pub(crate) const GATED: usize = 25;

const INITIALIZED: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"upstream","version":"1"}}"#,
);

const TOOLS: &str = concat!(
    r#"{"tools":["#,
    r#"{"name":"plain","inputSchema":{"type":"object"}},"#,
    r#"{"name":"nothing","inputSchema":{"type":"object"}},"#,
    r#"{"name":"gated","inputSchema":{"type":"object"}},"#,
    r#"{"name":"release","inputSchema":{"type":"object"}}"#,
    r#"]}"#,
);
