//! One resource, or a family of them: what the lists say, and how it is read.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Contents;
use super::pattern::Pattern;
use crate::complete::{Completers, Typed, completer};
use crate::tools::ToolFailure;

/// One resource.
pub struct Resource {
    pub(super) uri: Arc<str>,
    pub(super) about: About,
    pub(super) read: Arc<dyn Fn() -> Reading + Send + Sync>,
}

/// A family of resources whose addresses follow one pattern.
pub struct Template {
    pub(super) pattern: Pattern,
    pub(super) about: About,
    pub(super) completers: Completers,
    pub(super) read: Arc<dyn Fn(Variables) -> Reading + Send + Sync>,
}

/// What the blanks of a pattern stand for in one address.
pub type Variables = BTreeMap<String, String>;

/// What reading a resource brings.
pub type Read = Result<Contents, ToolFailure>;

pub(super) type Reading = Pin<Box<dyn Future<Output = Read> + Send>>;

#[derive(Default)]
pub(super) struct About {
    name: String,
    description: Option<String>,
    pub(super) mime: Option<String>,
}

impl Resource {
    /// The resource at `uri`, which `read` reads.
    pub fn new<F, W>(uri: &str, name: &str, read: F) -> Self
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = Read> + Send + 'static,
    {
        Self {
            uri: uri.into(),
            about: About::named(name),
            read: Arc::new(move || Box::pin(read())),
        }
    }

    /// The same with a description.
    pub fn description(mut self, description: &str) -> Self {
        self.about.description = Some(description.to_owned());
        self
    }

    /// The same, of this type.
    pub fn mime(mut self, mime: &str) -> Self {
        self.about.mime = Some(mime.to_owned());
        self
    }

    pub(super) fn listed(&self) -> Value {
        self.about.listed("uri", &self.uri)
    }
}

impl Template {
    /// The resources whose addresses follow `pattern`, such as `file:///{name}`: `{name}` stands for a part
    /// without `/`, `{+path}` for any text.
    pub fn new<F, W>(pattern: &str, name: &str, read: F) -> Self
    where
        F: Fn(Variables) -> W + Send + Sync + 'static,
        W: Future<Output = Read> + Send + 'static,
    {
        Self {
            pattern: Pattern::new(pattern),
            about: About::named(name),
            completers: Completers::new(),
            read: Arc::new(move |variables| Box::pin(read(variables))),
        }
    }

    /// The same with a description.
    pub fn description(mut self, description: &str) -> Self {
        self.about.description = Some(description.to_owned());
        self
    }

    /// The same, of this type.
    pub fn mime(mut self, mime: &str) -> Self {
        self.about.mime = Some(mime.to_owned());
        self
    }

    /// The same, which suggests values for a blank, the best first.
    pub fn complete<F, W>(mut self, variable: &str, suggest: F) -> Self
    where
        F: Fn(Typed) -> W + Send + Sync + 'static,
        W: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(variable.into(), completer(suggest));
        self
    }

    pub(super) fn listed(&self) -> Value {
        self.about.listed("uriTemplate", self.pattern.text())
    }
}

impl About {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    fn listed(&self, key: &str, address: &str) -> Value {
        let mut listed = json!({ key: address, "name": self.name });
        if let Some(description) = &self.description {
            listed["description"] = description.as_str().into();
        }
        if let Some(mime) = &self.mime {
            listed["mimeType"] = mime.as_str().into();
        }
        listed
    }
}
