//! Tools of this process: named closures that the engine runs.
//!
//! An unknown tool is a protocol error (V1-TLS-2, V2-TLS-6). A failure inside a tool is a result
//! with `isError`, so that the model can read it.

mod arguments;
mod context;
mod current;
mod detach;
#[cfg(feature = "schemars")]
mod elicit;
mod policy;
mod sampling;
mod tool;
#[cfg(feature = "schemars")]
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::{ErrorCode, InputKinds, Origin, Outcome};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, codes};
use serde_json::{Value, json};

use crate::server::RUNNER;

pub use arguments::Arguments;
pub use context::{ElicitError, ToolContext};
pub use current::current;
pub use detach::DetachError;
#[cfg(feature = "schemars")]
pub use elicit::Elicited;
pub use sampling::{Role, SamplingMessage, SamplingRequest, SamplingResponse};
pub use tool::{Hints, Tool};
#[cfg(feature = "schemars")]
pub use typed::{Json, Output};

/// A set of tools: a [`Runner`] for `tools/call`.
///
/// ```
/// use outlast::{Server, Tool, Tools, text};
///
/// let hello = Tool::new("hello", "Says hello", |_, _| async { Ok(text("Hello!")) });
/// let tools = Tools::new().with(hello);
/// assert!(tools.get("hello").is_some());
/// let server = Server::builder("greeter", "1.0").tools(tools).build();
/// # drop(server);
/// ```
#[derive(Clone, Default)]
pub struct Tools {
    tools: BTreeMap<Arc<str>, Tool>,
}

/// The return value of a tool: its result as JSON, or a failure.
pub type ToolResult = Result<Value, ToolFailure>;

/// Why a tool failed: a text for the model, or a protocol error.
///
/// Like `anyhow::Error`, it takes everything that `?` finds in a tool: every value that implements
/// `Display` converts into a text for the model. For that reason it implements neither `Display`
/// nor `Error` itself. It converts into `Box<dyn Error + Send + Sync>`, so that `?` works in
/// functions that return one.
///
/// ```
/// use outlast::tools::ToolFailure;
///
/// fn pages(text: &str) -> Result<u32, ToolFailure> {
///     match text.parse()? {
///         0 => Err("a document has at least one page".into()),
///         pages => Ok(pages),
///     }
/// }
///
/// let why = pages("0").unwrap_err();
/// assert_eq!((why.message(), why.code()), ("a document has at least one page", None));
/// assert!(pages("many").unwrap_err().message().contains("invalid digit"));
/// let why: Box<dyn std::error::Error + Send + Sync> = why.into();
/// assert_eq!(why.to_string(), "a document has at least one page");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure(FailureKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum FailureKind {
    /// A result with `isError`, which the model can read.
    Text(String),
    /// A JSON-RPC error.
    Error(ErrorCode, String),
}

impl ToolFailure {
    /// A JSON-RPC error, for an invalid request. The model does not see it.
    pub fn error(code: i64, message: impl Into<String>) -> Self {
        Self(FailureKind::Error(ErrorCode(code), message.into()))
    }

    /// The text, for the model or of the JSON-RPC error.
    pub fn message(&self) -> &str {
        match &self.0 {
            FailureKind::Text(why) | FailureKind::Error(_, why) => why,
        }
    }

    /// The code of the JSON-RPC error; `None` if the failure is a result that the model reads.
    pub fn code(&self) -> Option<i64> {
        match &self.0 {
            FailureKind::Text(_) => None,
            FailureKind::Error(code, _) => Some(code.0),
        }
    }

    /// The outcome of a call that failed so.
    pub(crate) fn into_outcome(self) -> Outcome {
        match self.0 {
            FailureKind::Error(code, message) => Outcome::error(code, message),
            FailureKind::Text(why) => {
                let mut result = text(why);
                result["isError"] = Value::Bool(true);
                failed(&result)
            }
        }
    }

    /// The error of a request that is not a tool call.
    pub(crate) fn to_wire(&self) -> ErrorObject {
        match &self.0 {
            FailureKind::Text(why) => codes::internal(why.as_str()),
            FailureKind::Error(code, message) => ErrorObject::new(code.0, message.as_str()),
        }
    }
}

/// A result with one text block.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

impl Tools {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `tool`. It replaces a tool with the same name.
    pub fn with(mut self, tool: Tool) -> Self {
        self.tools.insert(tool.name.clone(), tool);
        self
    }

    /// The tools, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// Whether any tool can run as a task (V1-CAP-1, S2-28).
    pub fn any_task(&self) -> bool {
        self.iter()
            .any(|tool| tool.support != TaskSupport::Forbidden)
    }

    /// The origin of a call of a tool of this set, executed by the runner of its server.
    pub fn origin(&self, tool: &str, params: Raw, accepts: InputKinds) -> Origin {
        let known = self.get(tool);
        let mut origin = Origin::new(outlast_wire::tool::CALL, RUNNER, accepts);
        origin.tool = Some(tool.into());
        origin.params = Some(params);
        origin.retry = known.map(|tool| tool.hints.retry()).unwrap_or_default();
        origin
    }
}

impl IntoIterator for Tools {
    type Item = Tool;
    type IntoIter = std::collections::btree_map::IntoValues<Arc<str>, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_values()
    }
}

#[async_trait]
impl Runner for Tools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        let Some(tool) = call.tool.as_deref().and_then(|name| self.get(name)) else {
            let name = call.tool.as_deref().unwrap_or_default();
            return Outcome::error(INVALID_PARAMS, format!("unknown tool: {name}"));
        };
        let arguments = match Arguments::of(&call) {
            Ok(arguments) => arguments,
            Err(why) => return Outcome::error(INVALID_PARAMS, why),
        };
        let cx = ToolContext::new(cx, &call);
        let ended = tokio::select! {
            biased;
            ended = current::run_with(cx.clone(), || (tool.run)(arguments, cx.clone())) => ended,
            () = cx.cancelled_unhandled() => return Outcome::Cancelled,
        };
        let outcome = match ended {
            // A tool can set `isError` itself.
            Ok(result) if result["isError"] == true => failed(&result),
            Ok(result) => Outcome::Result(Raw::from(&result)),
            Err(failure) => failure.into_outcome(),
        };
        cx.after_detach(outcome).await
    }
}

impl<T: std::fmt::Display> From<T> for ToolFailure {
    fn from(why: T) -> Self {
        Self(FailureKind::Text(why.to_string()))
    }
}

impl From<ToolFailure> for Box<dyn std::error::Error + Send + Sync> {
    fn from(failure: ToolFailure) -> Self {
        failure.message().into()
    }
}

/// A result with `isError`; its first text is the status message (A1-2).
fn failed(result: &Value) -> Outcome {
    let message = result["content"]
        .as_array()
        .into_iter()
        .flatten()
        .find_map(|block| block["text"].as_str());
    Outcome::ToolError(Raw::from(result), message.map(Arc::from))
}

const INVALID_PARAMS: ErrorCode = ErrorCode(codes::INVALID_PARAMS);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlast_engine::engine::NewCall;
    use outlast_engine::{Ending, Engine, MemoryStore, Owner, Scope};

    use super::*;

    fn greet() -> Tool {
        Tool::new("greet", "greets", |args, _| async move {
            Ok(text(format!("Hello, {}!", args.text("name")?)))
        })
    }

    fn sleep() -> Tool {
        Tool::new("sleep", "sleeps", |_, _| async move {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Ok(text("awake"))
        })
    }

    fn cleanup() -> Tool {
        Tool::new("tidy", "tidies up when it is to stop", |_, cx| async move {
            cx.cancelled().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(text("tidied up"))
        })
    }

    /// Runs a call of `tool` to its end.
    pub(super) async fn run_one(tool: Tool, arguments: Value) -> (Ending, Option<Value>) {
        let name = tool.name().to_owned();
        run(tool, &name, arguments, false).await
    }

    async fn run(
        tool: Tool,
        name: &str,
        arguments: Value,
        cancelled: bool,
    ) -> (Ending, Option<Value>) {
        let tools = Arc::new(Tools::new().with(tool));
        let builder = Engine::builder(Arc::new(MemoryStore::new())).runner("tools", tools.clone());
        let (engine, _) = builder.open().await.unwrap();
        let owner = Owner::Local;
        let scope = Scope::OwnedBy(owner.clone());
        let params = Raw::encode(&json!({ "name": name, "arguments": arguments })).unwrap();
        let call = NewCall::new(owner, tools.origin(name, params, InputKinds::NONE));
        let id = engine.create(call).await.unwrap().task().id;
        if cancelled {
            tokio::time::sleep(Duration::from_millis(1)).await;
            engine.request_cancel(&scope, id).await.unwrap();
        }
        let settled = engine.wait(&scope, id).await.unwrap();
        (
            settled.summary.ending,
            settled.body.map(|body| body.open().unwrap()),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_gets_its_arguments_and_returns_its_result() {
        let (ending, body) = run_one(greet(), json!({ "name": "Ada" })).await;
        assert_eq!((ending, body), (Ending::Result, Some(text("Hello, Ada!"))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_argument_is_reported_to_the_model() {
        // V1-TLS-2: input problems are tool errors, an unknown tool is a protocol error.
        let (ending, body) = run_one(greet(), json!({ "name": 7 })).await;
        assert_eq!(ending, Ending::ToolError);
        let body = body.unwrap();
        assert_eq!(body["isError"], true);
        assert_eq!(body["content"][0]["text"], "argument name must be a string");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_tool_and_invalid_params_are_protocol_errors() {
        assert_eq!(
            run(greet(), "unknown", json!({}), false).await.0,
            Ending::Error(INVALID_PARAMS)
        );
        assert_eq!(
            run_one(greet(), json!("not an object")).await.0,
            Ending::Error(INVALID_PARAMS)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_ignores_cancellation_is_dropped_when_cancelled() {
        let cancelled = run(sleep(), "sleep", json!({}), true).await;
        assert_eq!(cancelled, (Ending::Cancelled, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_handles_cancellation_has_time_for_cleanup() {
        assert_eq!(
            run(cleanup(), "tidy", json!({}), true).await,
            (Ending::Result, Some(text("tidied up")))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_current_tool_is_available_only_inside_it() {
        // S2-15, S2-74.
        async fn deep_inside() -> Option<String> {
            tokio::task::yield_now().await;
            current().map(|cx| cx.id().to_string())
        }
        let tool = Tool::new("where", "tells which call it is", |_, cx| async move {
            let spawned = tokio::spawn(deep_inside()).await?;
            assert_eq!(spawned, None);
            let found = deep_inside().await.ok_or("no current tool")?;
            assert_eq!(found, cx.id().to_string());
            current().ok_or("no current tool")?.status("found");
            Ok(text(found))
        });
        let (ending, _) = run_one(tool, json!({})).await;
        assert_eq!(ending, Ending::Result);
        assert!(current().is_none());
    }

    #[test]
    fn a_tool_is_listed_with_its_title_and_annotations() {
        let quiet = greet().listed();
        assert_eq!((quiet.get("title"), quiet.get("annotations")), (None, None));
        let hints = Hints {
            destructive: Some(false),
            open_world: Some(true),
            ..Hints::READ_ONLY
        };
        let listed = greet().title("Greeting").hints(hints).listed();
        assert_eq!(listed["title"], "Greeting");
        let annotations = json!({
            "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": true,
        });
        assert_eq!(listed["annotations"], annotations);
    }
}
