//! Resources of this process, which clients can read and subscribe to.

mod contents;
mod resource;
mod uri_template;

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::codes::{RESOURCE_NOT_FOUND, internal, invalid_params};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, object};
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::broadcaster::Broadcaster;
use crate::completion::CompleteParams;
use crate::server::ListChange;
use resource::ReadFuture;

pub use contents::Contents;
pub use resource::{ReadResult, Resource, Template, Variables};

/// A set of resources. Cheap to clone; all clones share one set, which can change while it is
/// served.
///
/// ```
/// use outlast::Server;
/// use outlast::resources::{Contents, Resource, Resources};
///
/// let notes = Resource::new("notes://today", "Notes", || async { Ok(Contents::text("Buy ink")) });
/// let resources = Resources::new().with(notes.mime("text/plain"));
/// let server = Server::builder("notes", "1.0").resources(resources.clone()).build();
/// // Clients that subscribed are notified.
/// resources.updated("notes://today");
/// # drop(server);
/// ```
#[derive(Clone, Default)]
pub struct Resources(Arc<Shared>);

#[derive(Default)]
struct Shared {
    all: RwLock<ResourceSet>,
    broadcaster: Broadcaster,
}

#[derive(Default)]
struct ResourceSet {
    resources: BTreeMap<Arc<str>, Resource>,
    templates: BTreeMap<String, Arc<Template>>,
}

type Reader = Box<dyn FnOnce() -> ReadFuture + Send>;

impl Resources {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `resource`.
    pub fn with(self, resource: Resource) -> Self {
        self.add(resource);
        self
    }

    /// Adds `template`. A resource takes precedence over a template. If several templates match,
    /// the first in the order of their texts is used.
    pub fn with_template(self, template: Template) -> Self {
        let text = template.pattern.text().to_owned();
        self.change(|all| all.templates.insert(text, Arc::new(template)));
        self
    }

    /// Adds `resource`, which replaces one with the same URI, and announces the change to clients.
    pub fn add(&self, resource: Resource) {
        let uri = resource.uri.clone();
        self.change(|all| all.resources.insert(uri, resource));
        self.0.broadcaster.announce(&ListChange::Resources);
    }

    /// Removes a resource and announces the change to clients.
    pub fn remove(&self, uri: &str) {
        if self.change(|all| all.resources.remove(uri)).is_some() {
            self.0.broadcaster.announce(&ListChange::Resources);
        }
    }

    /// Notifies the subscribers of `uri` that the resource has changed.
    pub fn updated(&self, uri: &str) {
        self.0
            .broadcaster
            .announce(&ListChange::Resource(uri.into()));
    }

    pub(crate) fn broadcaster(&self) -> &Broadcaster {
        &self.0.broadcaster
    }

    /// Whether any template has a completer.
    pub(crate) fn has_completers(&self) -> bool {
        self.read_set(|all| {
            let mut templates = all.templates.values();
            templates.any(|template| !template.completers.is_empty())
        })
    }

    /// The result of `resources/list`: all on one page, ordered by URI.
    pub(crate) fn list(&self) -> Result<Raw, ErrorObject> {
        let resources: Vec<_> =
            self.read_set(|all| all.resources.values().map(Resource::listed).collect());
        encoded(&json!({ "resources": resources }))
    }

    /// The result of `resources/templates/list`.
    pub(crate) fn list_templates(&self) -> Result<Raw, ErrorObject> {
        let templates: Vec<_> = self.read_set(|all| {
            all.templates
                .values()
                .map(|template| template.listed())
                .collect()
        });
        encoded(&json!({ "resourceTemplates": templates }))
    }

    /// The result of `resources/read`.
    pub(crate) async fn read(&self, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        let uri = address(params)?;
        let (read, mime) = self
            .read_set(|all| all.find(&uri))
            .ok_or_else(|| not_found(&uri))?;
        let contents = read().await.map_err(|why| why.to_wire())?;
        encoded(&json!({ "contents": [contents.at(&uri, mime.as_deref())] }))
    }

    /// The result of `resources/subscribe`.
    pub(crate) fn subscribe(&self, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        let uri = address(params)?;
        if self.read_set(|all| all.has(&uri)) {
            encoded(&json!({}))
        } else {
            Err(not_found(&uri))
        }
    }

    /// The result of `resources/unsubscribe`, even without a subscription.
    pub(crate) fn unsubscribe(&self, params: Option<RawRef<'_>>) -> Result<Raw, ErrorObject> {
        address(params)?;
        encoded(&json!({}))
    }

    /// The result of `completion/complete` for a variable of the template `pattern`.
    pub(crate) async fn complete(
        &self,
        pattern: &str,
        params: CompleteParams,
    ) -> Result<Raw, ErrorObject> {
        let found = self.read_set(|all| all.templates.get(pattern).cloned());
        let template =
            found.ok_or_else(|| invalid_params(format!("unknown template: {pattern}")))?;
        params.answer(&template.completers).await
    }

    fn read_set<T>(&self, read_set: impl FnOnce(&ResourceSet) -> T) -> T {
        read_set(&self.0.all.read())
    }

    fn change<T>(&self, change: impl FnOnce(&mut ResourceSet) -> T) -> T {
        change(&mut self.0.all.write())
    }
}

impl ResourceSet {
    /// The reader of `uri` and its default type.
    fn find(&self, uri: &str) -> Option<(Reader, Option<String>)> {
        if let Some(resource) = self.resources.get(uri) {
            let read = resource.read.clone();
            return Some((Box::new(move || read()), resource.info.mime.clone()));
        }
        self.templates.values().find_map(|template| {
            let variables = template.pattern.read(uri)?;
            let read = template.read.clone();
            Some((
                Box::new(move || read(variables)) as Reader,
                template.info.mime.clone(),
            ))
        })
    }

    fn has(&self, uri: &str) -> bool {
        let mut templates = self.templates.values();
        self.resources.contains_key(uri)
            || templates.any(|template| template.pattern.read(uri).is_some())
    }
}

/// The `uri` in params.
fn address(params: Option<RawRef<'_>>) -> Result<String, ErrorObject> {
    params
        .and_then(|params| object::find(params, &["uri"])?.text())
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| invalid_params("`uri` must be a string"))
}

/// -32002 with the unknown URI.
fn not_found(uri: &str) -> ErrorObject {
    let data = Raw::encode(&json!({ "uri": uri })).expect("a text is JSON");
    ErrorObject::new(RESOURCE_NOT_FOUND, "resource not found").with_data(data)
}

fn encoded(result: &Value) -> Result<Raw, ErrorObject> {
    Raw::encode(result).map_err(|error| internal(error.to_string()))
}
