//! A resource or a resource template: its entry in lists, and its reader.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Contents;
use super::uri_template::UriTemplate;
use crate::completion::{Completers, CompletionInput, completer};
use crate::local_tools::ToolFailure;

/// One resource.
pub struct Resource {
    pub(super) uri: Arc<str>,
    pub(super) info: ResourceInfo,
    pub(super) read: Arc<dyn Fn() -> ReadFuture + Send + Sync>,
}

/// A resource template: resources whose URIs match one pattern.
pub struct Template {
    pub(super) pattern: UriTemplate,
    pub(super) info: ResourceInfo,
    pub(super) completers: Completers,
    pub(super) read: Arc<dyn Fn(Variables) -> ReadFuture + Send + Sync>,
}

/// The values of the variables of a template.
pub type Variables = BTreeMap<String, String>;

/// The result of reading a resource.
pub type ReadResult = Result<Contents, ToolFailure>;

pub(super) type ReadFuture = Pin<Box<dyn Future<Output = ReadResult> + Send>>;

#[derive(Default)]
pub(super) struct ResourceInfo {
    name: String,
    description: Option<String>,
    pub(super) mime: Option<String>,
}

impl Resource {
    /// A resource at `uri`. `read` returns its contents.
    pub fn new<F, W>(uri: &str, name: &str, read: F) -> Self
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = ReadResult> + Send + 'static,
    {
        Self {
            uri: uri.into(),
            info: ResourceInfo::named(name),
            read: Arc::new(move || Box::pin(read())),
        }
    }

    /// Sets the description.
    pub fn description(mut self, description: &str) -> Self {
        self.info.description = Some(description.to_owned());
        self
    }

    /// Sets the MIME type.
    pub fn mime(mut self, mime: &str) -> Self {
        self.info.mime = Some(mime.to_owned());
        self
    }

    pub(super) fn listed(&self) -> Value {
        self.info.listed("uri", &self.uri)
    }
}

impl Template {
    /// A template for URIs that match `pattern`, such as `file:///{name}`: `{name}` matches text
    /// without `/`, `{+path}` any text.
    pub fn new<F, W>(pattern: &str, name: &str, read: F) -> Self
    where
        F: Fn(Variables) -> W + Send + Sync + 'static,
        W: Future<Output = ReadResult> + Send + 'static,
    {
        Self {
            pattern: UriTemplate::new(pattern),
            info: ResourceInfo::named(name),
            completers: Completers::new(),
            read: Arc::new(move |variables| Box::pin(read(variables))),
        }
    }

    /// Sets the description.
    pub fn description(mut self, description: &str) -> Self {
        self.info.description = Some(description.to_owned());
        self
    }

    /// Sets the MIME type.
    pub fn mime(mut self, mime: &str) -> Self {
        self.info.mime = Some(mime.to_owned());
        self
    }

    /// Adds a completer for a variable. It returns the best values first.
    pub fn complete<F, W>(mut self, variable: &str, suggest: F) -> Self
    where
        F: Fn(CompletionInput) -> W + Send + Sync + 'static,
        W: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(variable.into(), completer(suggest));
        self
    }

    pub(super) fn listed(&self) -> Value {
        self.info.listed("uriTemplate", self.pattern.text())
    }
}

impl ResourceInfo {
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
