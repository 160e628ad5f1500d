//! Tools in this process: closures with a name, run by the engine.
//!
//! Unknown tools are a protocol error (V1-TLS-2, V2-TLS-6); what goes wrong inside a tool is a result
//! flagged `isError`, so that the model can read it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{ErrorCode, Origin, Outcome, Retry};
use outlast_wire::Raw;
use serde_json::{Map, Value, json};

/// A set of tools: a [`Runner`] for `tools/call`.
#[derive(Clone, Default)]
pub struct Tools {
    tools: BTreeMap<Arc<str>, Tool>,
}

/// One tool.
#[derive(Clone)]
pub struct Tool {
    name: Arc<str>,
    description: Arc<str>,
    retry: Retry,
    run: Arc<dyn Fn(Arguments, CallContext) -> Work + Send + Sync>,
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Map<String, Value>);

/// What a tool returns: the content of its result, or why it failed.
pub type ToolResult = Result<Value, ToolFailure>;

/// Why a tool failed, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure(String);

/// The parameters of a `tools/call` are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArguments(String);

type Work = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// A result that is one piece of text.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

impl Tools {
    /// No tools yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// These tools and `tool`, which takes the place of one with the same name.
    pub fn with(mut self, tool: Tool) -> Self {
        self.tools.insert(tool.name.clone(), tool);
        self
    }

    /// The tools by name.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }

    /// The request that calls a tool of this set, run by the runner of that name.
    pub fn origin(&self, runner: &str, tool: &str, arguments: Value) -> Origin {
        let params = json!({ "name": tool, "arguments": arguments });
        Origin {
            method: "tools/call".into(),
            tool: Some(tool.into()),
            params: Raw::encode(&params).ok(),
            runner: runner.into(),
            progress_token: None,
            retry: self
                .tools
                .get(tool)
                .map(|tool| tool.retry)
                .unwrap_or_default(),
            accepts: outlast_engine::Accepts::all(),
        }
    }
}

impl Tool {
    /// The tool `name`, which runs `run`.
    pub fn new<F, W>(name: &str, description: &str, run: F) -> Self
    where
        F: Fn(Arguments, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = ToolResult> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: description.into(),
            retry: Retry::Never,
            run: Arc::new(move |arguments, cx| Box::pin(run(arguments, cx))),
        }
    }

    /// The same tool, which may run again if nobody knows how far it came: it only reads, or repeating
    /// it is harmless.
    pub fn repeatable(mut self) -> Self {
        self.retry = Retry::Rerun;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }
}

#[async_trait]
impl Runner for Tools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        let Some(tool) = call.tool.as_deref().and_then(|name| self.tools.get(name)) else {
            let name = call.tool.as_deref().unwrap_or_default();
            return Outcome::error(INVALID_PARAMS, format!("unknown tool: {name}"));
        };
        let arguments = match Arguments::of(&call) {
            Ok(arguments) => arguments,
            Err(bad) => return Outcome::error(INVALID_PARAMS, bad.0),
        };
        let stop = cx.clone();
        let ended = tokio::select! {
            biased;
            ended = (tool.run)(arguments, cx) => ended,
            () = stop.cancelled() => return Outcome::Cancelled,
        };
        match ended {
            Ok(result) => encoded(&result, Outcome::Result),
            Err(ToolFailure(why)) => {
                let mut result = text(why.clone());
                result["isError"] = Value::Bool(true);
                encoded(&result, |body| Outcome::ToolError(body, Some(why.into())))
            }
        }
    }
}

impl Arguments {
    /// The arguments of a `tools/call`. Absent ones are none.
    fn of(call: &Origin) -> Result<Self, BadArguments> {
        #[derive(serde::Deserialize)]
        struct Params {
            #[serde(default)]
            arguments: Option<Map<String, Value>>,
        }
        let Some(params) = &call.params else {
            return Ok(Self::default());
        };
        let params: Params = params
            .open()
            .map_err(|error| BadArguments(format!("invalid params: {error}")))?;
        Ok(Self(params.arguments.unwrap_or_default()))
    }

    /// The text under `name`.
    pub fn text(&self, name: &str) -> Result<&str, ToolFailure> {
        let found = self.0.get(name).and_then(Value::as_str);
        found.ok_or_else(|| ToolFailure(format!("argument {name} must be a string")))
    }

    /// The number under `name`, or `otherwise` where there is none.
    pub fn number(&self, name: &str, otherwise: f64) -> Result<f64, ToolFailure> {
        match self.0.get(name) {
            None => Ok(otherwise),
            Some(value) => value
                .as_f64()
                .ok_or_else(|| ToolFailure(format!("argument {name} must be a number"))),
        }
    }
}

impl<T: std::fmt::Display> From<T> for ToolFailure {
    fn from(why: T) -> Self {
        Self(why.to_string())
    }
}

fn encoded(result: &Value, outcome: impl FnOnce(Raw) -> Outcome) -> Outcome {
    match Raw::encode(result) {
        Ok(body) => outcome(body),
        Err(error) => Outcome::error(ErrorCode(-32603), format!("the result is no JSON: {error}")),
    }
}

const INVALID_PARAMS: ErrorCode = ErrorCode(-32602);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlast_engine::engine::NewCall;
    use outlast_engine::{Ending, Engine, MemoryStore, Owner, Scope};

    use super::*;

    async fn run(tool: &str, arguments: Value) -> (Ending, Option<Value>) {
        let greet = Tool::new("greet", "greets", |args, _| async move {
            Ok(text(format!("Hello, {}!", args.text("name")?)))
        });
        let sleep = Tool::new("sleep", "sleeps", |_, _| async move {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Ok(text("awake"))
        });
        let tools = Arc::new(Tools::new().with(greet).with(sleep));
        let builder = Engine::builder(Arc::new(MemoryStore::new())).runner("tools", tools.clone());
        let (engine, _) = builder.open().await.unwrap();
        let owner = Owner::new("test");
        let scope = Scope::Of(owner.clone());
        let call = NewCall::new(owner, tools.origin("tools", tool, arguments));
        let id = engine.create(call).await.unwrap().task().id;
        if tool == "sleep" {
            engine.request_cancel(&scope, id).await.unwrap();
        }
        let settled = engine.wait(&scope, id).await.unwrap();
        (
            settled.brief.ending,
            settled.body.map(|body| body.open().unwrap()),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_gets_its_arguments_and_gives_its_result() {
        let (ending, body) = run("greet", json!({ "name": "Ada" })).await;
        assert_eq!((ending, body), (Ending::Result, Some(text("Hello, Ada!"))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_argument_is_a_result_that_the_model_can_read() {
        // V1-TLS-2: input problems are tool errors, an unknown tool is a protocol error.
        let (ending, body) = run("greet", json!({ "name": 7 })).await;
        assert_eq!(ending, Ending::ToolError);
        let body = body.unwrap();
        assert_eq!(body["isError"], true);
        assert_eq!(body["content"][0]["text"], "argument name must be a string");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_tool_and_odd_params_are_protocol_errors() {
        assert_eq!(
            run("nobody", json!({})).await.0,
            Ending::Error(INVALID_PARAMS)
        );
        assert_eq!(
            run("greet", json!("not an object")).await.0,
            Ending::Error(INVALID_PARAMS)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_does_not_listen_is_stopped_when_its_caller_wants_that() {
        assert_eq!(run("sleep", json!({})).await, (Ending::Cancelled, None));
    }
}
