//! One prompt: its entry in `prompts/list`, and its function.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::complete::{Completers, Typed, completer};
use crate::tools::{Arguments, ToolContext, ToolFailure};

/// One prompt.
pub struct Prompt {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) arguments: Vec<Argument>,
    pub(super) completers: Completers,
    pub(super) write: Write,
}

/// The function that creates the messages.
pub(super) enum Write {
    Alone(Box<dyn Fn(Arguments) -> Writing + Send + Sync>),
    Asking(Box<dyn Fn(Arguments, ToolContext) -> Writing + Send + Sync>),
}

/// The return value of a prompt: its messages, see [`user`] and [`assistant`].
pub type Messages = Result<Vec<Value>, ToolFailure>;

pub(super) type Writing = Pin<Box<dyn Future<Output = Messages> + Send>>;

/// Whether an argument is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// It is required.
    Always,
    /// It is optional.
    Sometimes,
}

pub(super) struct Argument {
    pub(super) name: Arc<str>,
    description: Arc<str>,
    pub(super) needed: Needed,
}

/// A message of the user, such as `user(content::text("Hi"))`.
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
        W: Future<Output = Messages> + Send + 'static,
    {
        let write = Write::Alone(Box::new(move |arguments| Box::pin(write(arguments))));
        Self::written(name, description, write)
    }

    /// A prompt whose messages `write` returns, and which can send input requests first, like a
    /// tool.
    pub fn asking<F, W>(name: &str, description: &str, write: F) -> Self
    where
        F: Fn(Arguments, ToolContext) -> W + Send + Sync + 'static,
        W: Future<Output = Messages> + Send + 'static,
    {
        let write = move |arguments, cx| -> Writing { Box::pin(write(arguments, cx)) };
        Self::written(name, description, Write::Asking(Box::new(write)))
    }

    fn written(name: &str, description: &str, write: Write) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            arguments: Vec::new(),
            completers: Completers::new(),
            write,
        }
    }

    pub(super) fn asks(&self) -> bool {
        matches!(self.write, Write::Asking(_))
    }

    /// Adds an argument.
    pub fn argument(mut self, name: &str, description: &str, needed: Needed) -> Self {
        self.arguments.push(Argument {
            name: name.into(),
            description: description.into(),
            needed,
        });
        self
    }

    /// Adds a completer for an argument. It returns the best values first.
    pub fn complete<F, W>(mut self, argument: &str, suggest: F) -> Self
    where
        F: Fn(Typed) -> W + Send + Sync + 'static,
        W: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.into(), completer(suggest));
        self
    }

    /// Its entry in `prompts/list`.
    pub(super) fn listed(&self) -> Value {
        let mut listed = json!({ "name": &*self.name, "description": &*self.description });
        if !self.arguments.is_empty() {
            let arguments = self.arguments.iter().map(Argument::listed);
            listed["arguments"] = arguments.collect();
        }
        listed
    }
}

impl Argument {
    fn listed(&self) -> Value {
        json!({
            "name": &*self.name,
            "description": &*self.description,
            "required": self.needed == Needed::Always,
        })
    }
}
