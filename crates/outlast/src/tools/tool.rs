//! One tool: what `tools/list` says of it, and what it does.

use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::{InputKinds, RetryClass};
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use serde_json::{Map, Value, json};

use super::deliver::mirrored;
use super::{Arguments, ToolContext, ToolResult};
use crate::server::TaskPolicy;

/// One tool.
#[derive(Clone)]
pub struct Tool {
    pub(super) name: Arc<str>,
    title: Option<Arc<str>>,
    description: Arc<str>,
    input: Value,
    output: Option<Value>,
    pub(super) support: TaskSupport,
    pub(super) hints: Hints,
    pub(super) immediate: Option<Arc<str>>,
    pub(super) delivery: Option<TaskPolicy>,
    pub(super) needs: InputKinds,
    pub(super) headers: Arc<[HeaderParam]>,
    pub(super) run: Arc<dyn Fn(Arguments, ToolContext) -> Work + Send + Sync>,
}

/// What a tool says about its effects (the `annotations` of the protocol). What is not said is left to the
/// client, which assumes the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// Doing it twice is doing it once.
    pub idempotent: bool,
    /// Whether it may destroy something.
    pub destructive: Option<bool>,
    /// Whether it reaches beyond a closed set of things, as a search of the web does.
    pub open_world: Option<bool>,
}

pub(super) type Work = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

impl Tool {
    /// The tool `name`, which runs `run`. It takes any arguments and never runs as a task, until told
    /// otherwise.
    pub fn new<F, W>(name: &str, description: &str, run: F) -> Self
    where
        F: Fn(Arguments, ToolContext) -> W + Send + Sync + 'static,
        W: Future<Output = ToolResult> + Send + 'static,
    {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input: json!({ "type": "object" }),
            output: None,
            support: TaskSupport::Forbidden,
            hints: Hints::default(),
            immediate: None,
            delivery: None,
            needs: InputKinds::NONE,
            headers: Arc::default(),
            run: Arc::new(move |arguments, cx| Box::pin(run(arguments, cx))),
        }
    }

    /// The same tool, whose arguments follow this JSON Schema of an object.
    pub fn input(mut self, schema: Value) -> Self {
        self.headers = mirrored(&self.name, &schema);
        self.input = schema;
        self
    }

    /// The same tool, whose `structuredContent` follows this JSON Schema of an object (V1-TLS-3).
    pub fn output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// The same tool with a name for people.
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same tool, which may or must run as a task (V1-TOOL-7).
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.support = support;
        self
    }

    /// The same tool with these hints. A call that only reads, or that is harmless to repeat, is run again
    /// if nobody knows how far it came.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// The same tool, whose task gives the model this text to go on with (V1-CREATE-11).
    pub fn immediate(mut self, text: &str) -> Self {
        self.immediate = Some(text.into());
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

    /// Whether it runs as a task.
    pub fn support(&self) -> TaskSupport {
        self.support
    }

    /// The text for the model while the task runs.
    pub fn immediate_response(&self) -> Option<&str> {
        self.immediate.as_deref()
    }

    /// What `tools/list` says of it, without the task support, which depends on who asks.
    pub(crate) fn listed(&self) -> Value {
        let mut listed = json!({
            "name": &*self.name,
            "description": &*self.description,
            "inputSchema": self.input,
        });
        if let Some(title) = &self.title {
            listed["title"] = json!(title);
        }
        if let Some(output) = &self.output {
            listed["outputSchema"] = output.clone();
        }
        let annotations = self.hints.annotations();
        if !annotations.is_empty() {
            listed["annotations"] = Value::Object(annotations);
        }
        listed
    }
}

impl Hints {
    /// It changes nothing, so it can as well be done twice.
    pub const READ_ONLY: Self = Self {
        read_only: true,
        idempotent: true,
        destructive: None,
        open_world: None,
    };

    /// Whether a call may run again when nobody knows how far it came.
    pub(super) fn retry(self) -> RetryClass {
        if self.read_only || self.idempotent {
            RetryClass::Rerun
        } else {
            RetryClass::Never
        }
    }

    fn annotations(self) -> Map<String, Value> {
        let said = [
            ("readOnlyHint", self.read_only.then_some(true)),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent.then_some(true)),
            ("openWorldHint", self.open_world),
        ];
        said.into_iter()
            .filter_map(|(name, said)| Some((name.to_owned(), said?.into())))
            .collect()
    }
}
