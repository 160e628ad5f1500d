//! One tool: its entry in `tools/list`, and its function.

use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::{InputKinds, RetryClass};
use outlast_wire::headers::HeaderParam;
use outlast_wire::v1::TaskSupport;
use serde_json::{Map, Value, json};

use super::policy::header_params;
use super::{Arguments, ToolContext, ToolResult};
use crate::server::TaskPolicy;

/// One tool: its name, its schema, and the function that runs.
///
/// A call that a crash interrupted runs again only with a hint that this is safe
/// ([`Hints::READ_ONLY`] or [`Hints::IDEMPOTENT`]). Otherwise its task ends with an error that says
/// that the outcome is unknown.
///
/// ```
/// use outlast::prelude::*;
///
/// let greet = Tool::new("greet", "Greets", |args, _| async move {
///     Ok(text(format!("Hello, {}!", args.text("name")?)))
/// });
/// let greet = greet.task(TaskSupport::Optional).hints(Hints::READ_ONLY);
/// assert_eq!(greet.name(), "greet");
/// ```
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
    pub(super) task_policy: Option<TaskPolicy>,
    pub(super) needs: InputKinds,
    pub(super) headers: Arc<[HeaderParam]>,
    pub(super) run: Arc<dyn Fn(Arguments, ToolContext) -> ToolFuture + Send + Sync>,
}

/// The effects of a tool (`annotations` in the protocol). For hints that are not set, a client
/// assumes the worst.
///
/// ```
/// use outlast::prelude::*;
///
/// // After a crash, the tool may run again: it changes nothing.
/// let read = Tool::new("read", "Reads", |_, _| async { Ok(text("a")) }).hints(Hints::READ_ONLY);
/// # drop(read);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hints {
    /// It only reads.
    pub read_only: bool,
    /// A repeated call has no further effect.
    pub idempotent: bool,
    /// Whether it can destroy data.
    pub destructive: Option<bool>,
    /// Whether it interacts with an open set of entities, such as the web.
    pub open_world: Option<bool>,
}

outlast_engine::option_setters! { Hints:
    set with_read_only(read_only: bool);
    set with_idempotent(idempotent: bool);
    some with_destructive(destructive: bool);
    some with_open_world(open_world: bool);
}

pub(super) type ToolFuture = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

impl Tool {
    /// A tool that runs `run`. By default it accepts any arguments and never runs as a task.
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
            task_policy: None,
            needs: InputKinds::NONE,
            headers: Arc::default(),
            run: Arc::new(move |arguments, cx| Box::pin(run(arguments, cx))),
        }
    }

    /// Sets the JSON Schema of the arguments, which must be that of an object.
    pub fn input(mut self, schema: Value) -> Self {
        self.headers = header_params(&self.name, &schema);
        self.input = schema;
        self
    }

    /// Sets the JSON Schema of `structuredContent`, which must be that of an object (V1-TLS-3).
    pub fn output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets whether it can or must run as a task (V1-TOOL-7).
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.support = support;
        self
    }

    /// Sets the hints. An interrupted call of a tool that is read-only or idempotent is run again.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Sets a text for the model while the task runs (V1-CREATE-11).
    pub fn immediate(mut self, text: &str) -> Self {
        self.immediate = Some(text.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether it can or must run as a task.
    pub fn support(&self) -> TaskSupport {
        self.support
    }

    /// The text for the model while the task runs.
    pub fn immediate_response(&self) -> Option<&str> {
        self.immediate.as_deref()
    }

    /// Its entry in `tools/list`, without the task support, which depends on the client.
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
    /// Only reads, so it can be repeated.
    pub const READ_ONLY: Self = Self {
        read_only: true,
        idempotent: true,
        destructive: None,
        open_world: None,
    };

    /// May change something; a repeated call has no further effect.
    pub const IDEMPOTENT: Self = Self {
        read_only: false,
        idempotent: true,
        destructive: None,
        open_world: None,
    };

    /// Whether an interrupted call can run again.
    pub(super) fn retry(self) -> RetryClass {
        if self.read_only || self.idempotent {
            RetryClass::Rerun
        } else {
            RetryClass::Never
        }
    }

    fn annotations(self) -> Map<String, Value> {
        let hints = [
            ("readOnlyHint", self.read_only.then_some(true)),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent.then_some(true)),
            ("openWorldHint", self.open_world),
        ];
        hints
            .into_iter()
            .filter_map(|(name, hints)| Some((name.to_owned(), hints?.into())))
            .collect()
    }
}
