//! The client for the official conformance suite. The suite starts this program once for each
//! scenario, with the URL of a server as the last argument and the name of the scenario in the
//! environment. `cargo xtask conformance` runs the suite.

use std::sync::Arc;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, ServerInputRequest, Target, accept, decline,
};
use outlast::task::{InputKind, InputKinds, InputResponse, Outcome};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::Raw;
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().next_back().ok_or("which server?")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let options = ClientOptions::default().with_handler(Arc::new(Defaults));
    let client = Client::connect(Target::http(HttpClientOptions::new(url)), options).await?;
    let tools = client.tools().await?;
    match scenario.as_str() {
        "initialize" => {}
        "tools_call" => call(&client, "add_numbers", json!({ "a": 5, "b": 3 })).await?,
        // The other tool has the schema.
        "json-schema-2020-12-preservation" => {
            let echo = "json_schema_echo";
            let focal = tools.iter().find(|tool| &*tool.name != echo);
            let focal: Value = focal.ok_or("no tool has a schema")?.raw.open()?;
            call(&client, echo, json!({ "schema": focal["inputSchema"] })).await?;
        }
        "elicitation-sep1034-client-defaults" | "sse-retry" => {
            for tool in tools.iter() {
                call(&client, &tool.name, json!({})).await?;
            }
        }
        // The scenario only requires that it is listed.
        "request-metadata" | "json-schema-ref-no-deref" => {}
        "sep-2322-client-request-state" => {
            let echo = call(&client, "test_mrtr_echo_state", json!({}));
            let unrelated = call(&client, "test_mrtr_unrelated", json!({}));
            let (echoed, other) = tokio::join!(echo, unrelated);
            echoed.and(other)?;
            call(&client, "test_mrtr_no_state", json!({})).await?;
            call(&client, "test_mrtr_no_result_type", json!({})).await?;
        }
        "http-standard-headers" => {
            call(&client, "test_headers", json!({})).await?;
            for (list, of, by, read) in [
                ("resources/list", "resources", "uri", "resources/read"),
                ("prompts/list", "prompts", "name", "prompts/get"),
            ] {
                let listed: Value = client.request(list, None).await?.open()?;
                let one = Raw::encode(&json!({ by: listed[of][0][by] }))?;
                client.request(read, Some(&one)).await?;
            }
        }
        "http-custom-headers" => {
            let context = std::env::var("MCP_CONFORMANCE_CONTEXT")?;
            let context: Value = serde_json::from_str(&context)?;
            for made in context["toolCalls"].as_array().into_iter().flatten() {
                let name = made["name"].as_str().unwrap_or_default();
                call(&client, name, made["arguments"].clone()).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in tools.iter() {
                call(&client, &tool.name, json!({ "region": "west" })).await?;
            }
        }
        other => return Err(format!("scenario {other} is not known here").into()),
    }
    client.close().await;
    Ok(())
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<(), Failure> {
    let call = client
        .call_tool(tool, Some(Raw::encode(&arguments)?))
        .await?;
    match call.outcome().await? {
        Outcome::Result(_) => Ok(()),
        other => Err(format!("{tool}: {other:?}").into()),
    }
}

/// Responds to every form with its default values.
struct Defaults;

#[async_trait]
impl ClientHandler for Defaults {
    fn accepts(&self) -> InputKinds {
        [InputKind::ElicitForm].into_iter().collect()
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        let params = request
            .params
            .and_then(|params| params.open::<Value>().ok());
        let form = params.map(|mut params| params["requestedSchema"]["properties"].take());
        match form {
            Some(Value::Object(members)) => accept(Some(Value::Object(proposed(members)))),
            _ => decline(request.kind),
        }
    }
}

fn proposed(members: Map<String, Value>) -> Map<String, Value> {
    let default = |(name, mut member): (String, Value)| match member["default"].take() {
        Value::Null => None,
        default => Some((name, default)),
    };
    members.into_iter().filter_map(default).collect()
}
