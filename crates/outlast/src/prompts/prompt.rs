//! One prompt: its entry in `prompts/list`, and its function.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::completion::{Completers, CompletionInput, completer};
use crate::local_tools::{Arguments, ToolContext, ToolFailure};

/// One prompt.
pub struct Prompt {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) arguments: Vec<PromptArgument>,
    pub(super) completers: Completers,
    pub(super) write: MessagesFn,
}

/// The function that creates the messages.
pub(super) enum MessagesFn {
    WithoutInput(Box<dyn Fn(Arguments) -> MessagesFuture + Send + Sync>),
    WithInput(Box<dyn Fn(Arguments, ToolContext) -> MessagesFuture + Send + Sync>),
}

/// The return value of a prompt: its messages, see [`user`] and [`assistant`].
pub type PromptResult = Result<Vec<Value>, ToolFailure>;

pub(super) type MessagesFuture = Pin<Box<dyn Future<Output = PromptResult> + Send>>;

/// Whether an argument is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// It is required.
    Required,
    /// It is optional.
    Optional,
}

pub(super) struct PromptArgument {
    pub(super) name: Arc<str>,
    description: Arc<str>,
    pub(super) requirement: Requirement,
}

/// A message of the user, such as `user(content::text_block("Hi"))`.
pub fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}

/// A message of the model.
pub fn assistant(content: Value) -> Value {
    json!({ "role": "assistant", "content": content })
}

impl Prompt {
    /// A prompt whose messages `write` returns. It has no arguments by default.
    pub fn new<F, W>(name: &str, description: &str, write: F) -> Self
    where
        F: Fn(Arguments) -> W + Send + Sync + 'static,
        W: Future<Output = PromptResult> + Send + 'static,
    {
        let write = MessagesFn::WithoutInput(Box::new(move |arguments| Box::pin(write(arguments))));
        Self::build(name, description, write)
    }

    /// A prompt whose messages `write` returns, and which can send input requests first, like a
    /// tool.
    pub fn with_input<F, W>(name: &str, description: &str, write: F) -> Self
    where
        F: Fn(Arguments, ToolContext) -> W + Send + Sync + 'static,
        W: Future<Output = PromptResult> + Send + 'static,
    {
        let write = move |arguments, cx| -> MessagesFuture { Box::pin(write(arguments, cx)) };
        Self::build(name, description, MessagesFn::WithInput(Box::new(write)))
    }

    fn build(name: &str, description: &str, write: MessagesFn) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            arguments: Vec::new(),
            completers: Completers::new(),
            write,
        }
    }

    pub(super) fn requests_input(&self) -> bool {
        matches!(self.write, MessagesFn::WithInput(_))
    }

    /// Adds an argument.
    pub fn argument(mut self, name: &str, description: &str, requirement: Requirement) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: description.into(),
            requirement,
        });
        self
    }

    /// Adds a completer for an argument. It returns the best values first.
    pub fn complete<F, W>(mut self, argument: &str, suggest: F) -> Self
    where
        F: Fn(CompletionInput) -> W + Send + Sync + 'static,
        W: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.into(), completer(suggest));
        self
    }

    /// Its entry in `prompts/list`.
    pub(super) fn listed(&self) -> Value {
        let mut listed = json!({ "name": &*self.name, "description": &*self.description });
        if !self.arguments.is_empty() {
            let arguments = self.arguments.iter().map(PromptArgument::listed);
            listed["arguments"] = arguments.collect();
        }
        listed
    }
}

impl PromptArgument {
    fn listed(&self) -> Value {
        json!({
            "name": &*self.name,
            "description": &*self.description,
            "required": self.requirement == Requirement::Required,
        })
    }
}
