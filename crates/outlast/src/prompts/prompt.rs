//! One prompt: what `prompts/list` says of it, and what it says.

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

/// How its messages are made.
pub(super) enum Write {
    Alone(Box<dyn Fn(Arguments) -> Writing + Send + Sync>),
    Asking(Box<dyn Fn(Arguments, ToolContext) -> Writing + Send + Sync>),
}

/// What a prompt makes: its messages, see [`user`] and [`assistant`].
pub type Messages = Result<Vec<Value>, ToolFailure>;

pub(super) type Writing = Pin<Box<dyn Future<Output = Messages> + Send>>;

/// Whether an argument may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// It may not.
    Always,
    /// It may.
    Sometimes,
}

pub(super) struct Argument {
    pub(super) name: Arc<str>,
    description: Arc<str>,
    pub(super) needed: Needed,
}

/// A message of the person, such as `user(content::text("Hi"))`.
pub fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}

/// A message of the model.
pub fn assistant(content: Value) -> Value {
    json!({ "role": "assistant", "content": content })
}

impl Prompt {
    /// The prompt `name`, whose messages `write` makes. It has no arguments until told otherwise.
    pub fn new<F, W>(name: &str, description: &str, write: F) -> Self
    where
        F: Fn(Arguments) -> W + Send + Sync + 'static,
        W: Future<Output = Messages> + Send + 'static,
    {
        let write = Write::Alone(Box::new(move |arguments| Box::pin(write(arguments))));
        Self::written(name, description, write)
    }

    /// The prompt `name`, whose messages `write` makes with the help of its caller: it may ask a person or a model
    /// first, as a tool does.
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

    /// The same prompt with one more argument.
    pub fn argument(mut self, name: &str, description: &str, needed: Needed) -> Self {
        self.arguments.push(Argument {
            name: name.into(),
            description: description.into(),
            needed,
        });
        self
    }

    /// The same prompt, which suggests values for an argument, the best first.
    pub fn complete<F, W>(mut self, argument: &str, suggest: F) -> Self
    where
        F: Fn(Typed) -> W + Send + Sync + 'static,
        W: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.into(), completer(suggest));
        self
    }

    /// What `prompts/list` says of it.
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
