//! An rmcp handler without task code, with a tool for each feature of a handler.

#![expect(
    deprecated,
    reason = "sampling, roots and logging are still what clients of 2025-11-25 have"
)]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

/// The handler of one session.
pub(crate) struct TestHandler(Arc<HandlerControl>);

/// What the handlers of all sessions share with the test.
pub(crate) struct HandlerControl {
    /// Every permit lets one call of `gated` continue.
    pub(crate) gate: Semaphore,
    /// Reports to the test.
    report: mpsc::UnboundedSender<String>,
}

/// The reports of handlers.
pub(crate) type Reports = mpsc::UnboundedReceiver<String>;

impl HandlerControl {
    pub(crate) fn new() -> (Arc<Self>, Reports) {
        let (report, reports) = mpsc::unbounded_channel();
        let gate = Semaphore::new(0);
        (Arc::new(Self { gate, report }), reports)
    }

    pub(crate) fn test_handler(self: &Arc<Self>) -> TestHandler {
        self.report("made");
        TestHandler(self.clone())
    }

    fn report(&self, what: impl Into<String>) {
        let _ = self.report.send(what.into());
    }
}

impl Drop for TestHandler {
    fn drop(&mut self) {
        self.0.report("dropped");
    }
}

/// Reports when the future of a call is dropped.
struct DropReporter<'a>(&'a HandlerControl);

impl Drop for DropReporter<'_> {
    fn drop(&mut self) {
        self.0.report("work ended");
    }
}

impl ServerHandler for TestHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_instructions("A lab.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Two pages: task support counts on every page.
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let mut declared = tool("declared");
        declared["_meta"] = json!({ "outlast/taskSupport": "required" });
        let mut gated = tool("gated");
        gated["annotations"] = json!({ "readOnlyHint": true });
        match request.and_then(|request| request.cursor) {
            None => Ok(from(json!({
                "tools": [tool("echo"), gated, tool("boom")], "nextCursor": "more",
            }))),
            Some(_) => Ok(from(json!({ "tools": [declared] }))),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _work = DropReporter(&self.0);
        let said = match &*request.name {
            "echo" => Value::Object(request.arguments.unwrap_or_default()).to_string(),
            "declared" => "done".to_owned(),
            "gated" => {
                self.0.report("at the gate");
                self.0.gate.acquire().await.unwrap().forget();
                "through".to_owned()
            }
            "boom" => panic!("on purpose"),
            "flagged" => {
                let result = CallToolResult::error(vec![ContentBlock::text("it broke")]);
                return Ok(result.into());
            }
            "steps" => steps(&cx).await,
            "elicit" => elicit(&cx.peer).await,
            "elicit apart" => {
                let peer = cx.peer.clone();
                let apart = tokio::spawn(async move { elicit(&peer).await });
                apart.await.unwrap()
            }
            "sample and roots" => sample_and_roots(&cx.peer).await,
            "listens" => {
                self.0.report("listens");
                cx.ct.cancelled().await;
                self.0.report("cancelled");
                "stopped".to_owned()
            }
            "deaf" => {
                self.0.report("deaf");
                std::future::pending().await
            }
            "shout" => {
                let message = json!({ "level": "warning", "logger": "lab", "data": "loud" });
                let _ = cx.peer.notify_logging_message(from(message)).await;
                "shouted".to_owned()
            }
            "caller" => caller(&cx),
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(from(json!({ "prompts": [{ "name": "greet" }] })))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = match &*request.name {
            "greet" => "you".to_owned(),
            _ => elicit(&cx.peer).await,
        };
        let text = json!({ "type": "text", "text": format!("Greet {name}") });
        let result: GetPromptResult =
            from(json!({ "messages": [{ "role": "user", "content": text }] }));
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(from(
            json!({ "resources": [{ "uri": "lab:log", "name": "log" }] }),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!({ "contents": [{ "uri": request.uri, "text": "empty" }] });
        let result: ReadResourceResult = from(contents);
        Ok(result.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let update = ResourceUpdatedNotificationParam::new(request.uri);
        let _ = cx.peer.notify_resource_updated(update).await;
        let _ = cx.peer.notify_tool_list_changed().await;
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(from(
            json!({ "completion": { "values": ["red", "green"] } }),
        ))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.report(format!("level {:?}", request.level));
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match &*request.method {
            "lab/weigh" => Ok(CustomResult::new(json!({ "grams": request.params }))),
            other => {
                let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
                Err(ErrorData::new(code, other.to_owned(), None))
            }
        }
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.0.report("roots changed");
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        self.0.report("initialized");
    }
}

async fn steps(cx: &RequestContext<RoleServer>) -> String {
    let Some(token) = cx.meta.get_progress_token() else {
        return "no token".to_owned();
    };
    for step in 1..=3 {
        let progress = json!({ "progressToken": token, "progress": step, "total": 3 });
        let _ = cx.peer.notify_progress(from(progress)).await;
    }
    "arrived".to_owned()
}

async fn elicit(peer: &Peer<RoleServer>) -> String {
    let form = json!({
        "mode": "form",
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    match peer.create_elicitation(from(form)).await {
        Ok(answer) => format!("{:?}", answer.content.unwrap_or_default()["name"].as_str()),
        Err(error) => error.to_string(),
    }
}

async fn sample_and_roots(peer: &Peer<RoleServer>) -> String {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    let params = json!({ "messages": [message], "maxTokens": 10 });
    let (said, roots) = tokio::join!(peer.create_message(from(params)), peer.list_roots());
    match (said, roots) {
        (Ok(said), Ok(roots)) => format!("{} {}", said.model, roots.roots.len()),
        (said, roots) => format!("{said:?} {roots:?}"),
    }
}

/// What the handler knows of the caller.
fn caller(cx: &RequestContext<RoleServer>) -> String {
    let capabilities = serde_json::to_value(cx.client_capabilities()).unwrap();
    let http = cx.extensions.get::<http::request::Parts>();
    let host = http.and_then(|parts| parts.headers.get("host"));
    let reports = json!({
        "name": cx.client_info().map(|info| info.name),
        "version": cx.protocol_version(),
        "capabilities": capabilities,
        "host": host.is_some(),
    });
    reports.to_string()
}

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
