//! The server behind gateways: MCP 2025-11-25 on standard input and output, without tasks and with
//! minimal cost, so that the gateway is what is measured.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::TEXT;
use crate::BenchResult;

pub(super) fn serve() -> BenchResult<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let message: JsonRpcMessage<'_> = serde_json::from_str(&line)?;
        if let Some(id) = message.id {
            let answer = response_to(message.method);
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)?;
            out.flush()?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct JsonRpcMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: &'a str,
}

fn response_to(method: &str) -> String {
    match method {
        "initialize" => format!(r#""result":{INITIALIZED}"#),
        "tools/list" => format!(r#""result":{TOOLS}"#),
        "ping" => r#""result":{}"#.to_owned(),
        "tools/call" => {
            format!(r#""result":{{"content":[{{"type":"text","text":"{TEXT}"}}]}}"#)
        }
        _ => r#""error":{"code":-32601,"message":"no such method"}"#.to_owned(),
    }
}

const INITIALIZED: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"upstream","version":"1"}}"#,
);

const TOOLS: &str = concat!(
    r#"{"tools":["#,
    r#"{"name":"plain","inputSchema":{"type":"object"}},"#,
    r#"{"name":"nothing","inputSchema":{"type":"object"}}"#,
    r#"]}"#,
);
