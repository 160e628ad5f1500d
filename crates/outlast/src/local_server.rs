//! The backend for tools, prompts and resources of this process.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{Origin, Outcome};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, RawRef, codes, method, params};
use serde_json::{Value, json};

use crate::completion::{CompleteParams, CompletionRef};
use crate::local_tools::{Tool, ToolContext, Tools};
use crate::prompts::Prompts;
use crate::resources::Resources;
use crate::server::{
    Backend, BackendDescription, ClientHandle, IncomingRequest, McpServer, PreparedCall, RUNNER,
    Reply,
};

/// A server with tools, and optionally prompts and resources. It declares only the capabilities
/// that it has. [`Server::builder`](crate::Server::builder) makes one.
pub struct LocalServer {
    name: String,
    version: String,
    instructions: Option<String>,
    tools: Tools,
    prompts: Option<Prompts>,
    resources: Option<Resources>,
    runner: Arc<str>,
}

impl LocalServer {
    /// A server without tools. It is a [`Backend`] and the engine's runner.
    pub(crate) fn new(name: String, version: String) -> Self {
        Self {
            name,
            version,
            instructions: None,
            tools: Tools::new(),
            prompts: None,
            resources: None,
            runner: RUNNER.into(),
        }
    }

    pub(crate) fn tool(mut self, tool: Tool) -> Self {
        self.tools = self.tools.with(tool);
        self
    }

    pub(crate) fn instructions(mut self, instructions: String) -> Self {
        self.instructions = Some(instructions);
        self
    }

    pub(crate) fn prompts(mut self, prompts: Prompts) -> Self {
        self.prompts = Some(prompts);
        self
    }

    pub(crate) fn resources(mut self, resources: Resources) -> Self {
        self.resources = Some(resources);
        self
    }

    fn capabilities(&self) -> Value {
        let mut all = json!({ "tools": {}, "logging": {} });
        if self.prompts.is_some() {
            all["prompts"] = json!({ "listChanged": true });
        }
        if self.resources.is_some() {
            all["resources"] = json!({ "listChanged": true, "subscribe": true });
        }
        if self.completes() {
            all["completions"] = json!({});
        }
        all
    }

    fn completes(&self) -> bool {
        let prompts = self.prompts.as_ref().is_some_and(Prompts::has_completers);
        prompts
            || self
                .resources
                .as_ref()
                .is_some_and(Resources::has_completers)
    }

    /// Answers a request for prompts, resources or completion; `None` for any other method.
    async fn answer(
        &self,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> Option<Result<Raw, ErrorObject>> {
        Some(match (method, &self.prompts, &self.resources) {
            (method::PROMPTS_LIST, Some(prompts), _) => {
                one_page(params).and_then(|()| prompts.list())
            }
            (method::PROMPTS_GET, Some(prompts), _) => prompts.get(params, None).await,
            (method::RESOURCES_LIST, _, Some(all)) => one_page(params).and_then(|()| all.list()),
            (method::RESOURCE_TEMPLATES_LIST, _, Some(all)) => {
                one_page(params).and_then(|()| all.list_templates())
            }
            (method::RESOURCES_READ, _, Some(all)) => all.read(params).await,
            // The server side stores the subscriptions.
            (method::RESOURCES_SUBSCRIBE, _, Some(all)) => all.subscribe(params),
            (method::RESOURCES_UNSUBSCRIBE, _, Some(all)) => all.unsubscribe(params),
            (method::COMPLETE, ..) if self.completes() => self.complete(params).await,
            _ => return None,
        })
    }

    async fn complete(&self, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        let params = CompleteParams::read(params)?;
        match (&params.reference, &self.prompts, &self.resources) {
            (CompletionRef::Prompt { name }, Some(prompts), _) => {
                let name = name.clone();
                prompts.complete(&name, params).await
            }
            (CompletionRef::Template { uri }, _, Some(resources)) => {
                let pattern = uri.clone();
                resources.complete(&pattern, params).await
            }
            _ => Err(codes::invalid_params(
                "this server has no such prompts or resources",
            )),
        }
    }
}

#[async_trait]
impl Backend for LocalServer {
    async fn describe(&self, _: &Arc<ClientHandle>) -> Result<BackendDescription, ErrorObject> {
        let encoded = |value| Raw::encode(&value).expect("objects of strings are JSON");
        Ok(BackendDescription {
            capabilities: encoded(self.capabilities()),
            info: encoded(json!({ "name": self.name, "version": self.version })),
            instructions: self.instructions.clone(),
            tasks: self.tools.any_task(),
        })
    }

    async fn list_tools(&self, _: &Arc<ClientHandle>, params: Option<&Raw>) -> Reply {
        if let Err(error) = one_page(params.map(Raw::borrow)) {
            return Reply::from(error);
        }
        let tools = self.tools.iter().map(|tool| {
            let mut listed = tool.listed();
            // V1-TOOL-8, S2-31: `forbidden` is omitted.
            if tool.support() != TaskSupport::Forbidden {
                listed["execution"] = json!({ "taskSupport": tool.support().as_str() });
            }
            listed
        });
        match Raw::encode(&json!({ "tools": tools.collect::<Vec<_>>() })) {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(codes::internal(error.to_string())),
        }
    }

    async fn prepare(
        &self,
        _: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject> {
        let tool = self.tools.get(tool);
        Ok(tool.map(|tool| tool.prepared(self.runner.clone())))
    }

    /// Prompts, if one of them sends input requests.
    fn runner_for(&self, method: &str) -> Option<Arc<str>> {
        let requests_input = method == method::PROMPTS_GET
            && self
                .prompts
                .as_ref()
                .is_some_and(Prompts::any_requests_input);
        requests_input.then(|| self.runner.clone())
    }

    async fn request(&self, _: &Arc<ClientHandle>, request: IncomingRequest) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        match self.answer(&request.method, params).await {
            Some(Ok(result)) => Reply::Result(result),
            Some(Err(error)) => Reply::from(error),
            None => Reply::from(codes::method_not_found(&request.method)),
        }
    }

    fn attach(&self, server: &Weak<McpServer>) {
        if let Some(prompts) = &self.prompts {
            prompts.broadcaster().add(server);
        }
        if let Some(resources) = &self.resources {
            resources.broadcaster().add(server);
        }
    }
}

#[async_trait]
impl Runner for LocalServer {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        let (method::PROMPTS_GET, Some(prompts)) = (&*call.method, &self.prompts) else {
            return self.tools.run(call, cx).await;
        };
        let params = call.params.as_ref().map(Raw::borrow);
        let cx = ToolContext::new(cx, &call);
        let got = tokio::select! {
            biased;
            got = prompts.get(params, Some(cx.clone())) => got,
            () = cx.cancelled_unhandled() => return Outcome::Cancelled,
        };
        match got {
            Ok(result) => Outcome::Result(result),
            Err(error) => error.into(),
        }
    }
}

/// Rejects a cursor, because all lists have one page.
fn one_page(params: Option<RawRef<'_>>) -> Result<(), ErrorObject> {
    match params::cursor(params)? {
        None => Ok(()),
        Some(_) => Err(codes::invalid_params("invalid cursor")),
    }
}
