//! The fixtures of the official conformance suite on rmcp, without our library: `outlast serve --
//! rmcp_conformance` puts the gateway in front of them.
//!
//! Names and texts are the suite's. `cargo xtask conformance` runs it against the gateway. It
//! supports both eras on standard input and output.

#![expect(
    deprecated,
    reason = "the suite of 2025-11-25 asks for logging and sampling"
)]

mod asks;
mod calls;
mod catalogue;
mod rounds;
mod tasks;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use tasks::Tasks;

/// A server with all fixtures.
#[derive(Clone, Default)]
struct Fixtures {
    tasks: Arc<Tasks>,
    /// The subscribers of changes.
    listeners: Arc<Mutex<Vec<SubscriptionSink>>>,
}

type Context = RequestContext<RoleServer>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pipes = (tokio::io::stdin(), tokio::io::stdout());
    Fixtures::default().serve(pipes).await?.waiting().await?;
    Ok(())
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "completions": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} },
            "logging": {},
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "tools": { "listChanged": true },
        });
        let capabilities: Result<ServerCapabilities, _> = serde_json::from_value(capabilities);
        ServerConfig::new(capabilities.expect("the literal has the shape of capabilities"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools = catalogue::tools();
        let mut tools = tools["tools"].as_array()?.iter();
        let tool = tools.find(|tool| tool["name"] == name)?;
        serde_json::from_value(tool.clone()).ok()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        typed(catalogue::tools())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if let Some(answer) = rounds::call(&request, &context)? {
            return answer.try_into();
        }
        if let Some(answer) = self.tasks.call(&request, &context).await? {
            return answer.try_into();
        }
        if matches!(&*name, TOOL_CHANGE | PROMPT_CHANGE) {
            self.announce(&name).await;
            return ToolResponse::Result(text("changed")).try_into();
        }
        let arguments = untyped(&request.arguments)?;
        if let Some(result) = asks::call(&name, &arguments, &context).await? {
            return Ok(CallToolResponse::Complete(typed(result)?));
        }
        let result = calls::call(&name, &arguments, &context).await?;
        Ok(CallToolResponse::Complete(typed(result)?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        typed(catalogue::resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        typed(catalogue::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let contents = catalogue::read(&uri).ok_or_else(|| {
            ErrorData::invalid_params("Resource not found", Some(json!({ "uri": uri })))
        })?;
        Ok(ReadResourceResponse::Complete(typed(contents)?))
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners().push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        typed(catalogue::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(answer) = rounds::prompt(&request)? {
            return Ok(match answer {
                ToolResponse::Asks(asks) => GetPromptResponse::InputRequired(typed(asks)?),
                ToolResponse::Result(result) | ToolResponse::Task(result) => {
                    GetPromptResponse::Complete(typed(result)?)
                }
            });
        }
        let arguments = untyped(&request.arguments)?;
        let messages = catalogue::prompt(&request.name, &arguments)
            .ok_or_else(|| ErrorData::invalid_params("no such prompt", None))?;
        Ok(GetPromptResponse::Complete(typed(messages)?))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        typed(json!({ "completion": { "values": ["paris", "park", "party"], "hasMore": false } }))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        typed(self.tasks.get(&request.task_id)?)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        let answers = untyped(&request.input_responses)?;
        self.tasks.update(&request.task_id, &answers)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel(&request.task_id)
    }
}

impl Fixtures {
    /// Notifies subscribers that a list has changed.
    async fn announce(&self, tool: &str) {
        let listeners = self.listeners().clone();
        for listener in listeners {
            // A closed subscription is ignored.
            let _ = match tool {
                TOOL_CHANGE => listener.notify_tool_list_changed().await,
                _ => listener.notify_prompt_list_changed().await,
            };
        }
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<SubscriptionSink>> {
        let listeners = self.listeners.lock();
        listeners.unwrap_or_else(PoisonError::into_inner)
    }
}

const TOOL_CHANGE: &str = "test_trigger_tool_change";
const PROMPT_CHANGE: &str = "test_trigger_prompt_change";

/// The response to a call.
enum ToolResponse {
    Result(Value),
    Asks(Value),
    Task(Value),
}

impl TryFrom<ToolResponse> for CallToolResponse {
    type Error = ErrorData;

    fn try_from(answer: ToolResponse) -> Result<Self, ErrorData> {
        Ok(match answer {
            ToolResponse::Result(result) => Self::Complete(typed(result)?),
            ToolResponse::Asks(asks) => Self::InputRequired(typed(asks)?),
            ToolResponse::Task(task) => Self::Task(typed(task)?),
        })
    }
}

/// A literal as a type of rmcp.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| failed(&error))
}

fn untyped(value: &impl Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(value).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// A result with one text.
fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// A form with one field.
fn form(message: &str, property: &str, kind: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": { property: { "type": kind } }, "required": [property],
        },
    })
}

fn sampling(question: &str) -> Value {
    let content = json!({ "type": "text", "text": question });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 })
}
