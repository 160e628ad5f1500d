//! Prompts of this process: message templates that a user selects.

mod prompt;

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::codes::{internal, invalid_params};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::broadcaster::Broadcaster;
use crate::completion::CompleteParams;
use crate::local_tools::{Arguments, ToolContext};
use crate::server::ListChange;
use prompt::MessagesFn;

pub use prompt::{Prompt, PromptResult, Requirement, assistant, user};

/// A set of prompts. Cheap to clone; all clones share one set, which can change while it is served.
///
/// ```
/// use outlast::Server;
/// use outlast::content::text_block;
/// use outlast::prompts::{Prompt, Prompts, Requirement, user};
///
/// let review = Prompt::new("review", "Reviews a file", |args| async move {
///     Ok(vec![user(text_block(format!("Review {}.", args.text("file")?)))])
/// });
/// let review = review.argument("file", "The path of the file", Requirement::Required);
/// let server = Server::builder("reviews", "1.0").prompts(Prompts::new().with(review)).build();
/// # drop(server);
/// ```
#[derive(Clone, Default)]
pub struct Prompts(Arc<Shared>);

#[derive(Default)]
struct Shared {
    prompts: RwLock<BTreeMap<Arc<str>, Arc<Prompt>>>,
    broadcaster: Broadcaster,
}

impl Prompts {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `prompt`.
    pub fn with(self, prompt: Prompt) -> Self {
        self.add(prompt);
        self
    }

    /// Adds `prompt`, which replaces one with the same name, and announces the change to clients.
    pub fn add(&self, prompt: Prompt) {
        let name = prompt.name.clone();
        self.change(|prompts| prompts.insert(name, Arc::new(prompt)));
        self.0.broadcaster.announce(&ListChange::Prompts);
    }

    /// Removes a prompt and announces the change to clients.
    pub fn remove(&self, name: &str) {
        if self.change(|prompts| prompts.remove(name)).is_some() {
            self.0.broadcaster.announce(&ListChange::Prompts);
        }
    }

    pub(crate) fn broadcaster(&self) -> &Broadcaster {
        &self.0.broadcaster
    }

    /// Whether any prompt has a completer.
    pub(crate) fn has_completers(&self) -> bool {
        self.read_set(|prompts| prompts.values().any(|prompt| !prompt.completers.is_empty()))
    }

    /// The result of `prompts/list`: all on one page, by name.
    pub(crate) fn list(&self) -> Result<Raw, ErrorObject> {
        let prompts: Vec<_> =
            self.read_set(|all| all.values().map(|prompt| prompt.listed()).collect());
        encoded(&json!({ "prompts": prompts }))
    }

    /// Whether any prompt sends input requests.
    pub(crate) fn any_requests_input(&self) -> bool {
        self.read_set(|prompts| prompts.values().any(|prompt| prompt.requests_input()))
    }

    /// The result of `prompts/get`. `cx` is the context for input requests, if there is one.
    pub(crate) async fn get(
        &self,
        params: Option<RawRef<'_>>,
        cx: Option<ToolContext>,
    ) -> Result<Raw, ErrorObject> {
        let params = params.ok_or_else(|| invalid_params("`name` must be a string"))?;
        let wanted: Params = params
            .open()
            .map_err(|error| invalid_params(format!("invalid params: {error}")))?;
        let prompt = self.find(&wanted.name)?;
        let given = wanted.arguments.unwrap_or_default();
        let mut requirement = prompt.arguments.iter();
        let requirement = requirement.find(|one| {
            one.requirement == Requirement::Required && !given.contains_key(&*one.name)
        });
        if let Some(missing) = requirement {
            return Err(invalid_params(format!(
                "argument {} is missing",
                missing.name
            )));
        }
        let given = Arguments::from(given);
        let messages = match (&prompt.write, cx) {
            (MessagesFn::WithoutInput(write), _) => write(given).await,
            (MessagesFn::WithInput(write), Some(cx)) => write(given, cx).await,
            // It was added after the server side had chosen the runner.
            (MessagesFn::WithInput(_), None) => {
                return Err(internal("this prompt was just added; get it again"));
            }
        };
        let messages = messages.map_err(|why| why.to_wire())?;
        encoded(&json!({ "description": &*prompt.description, "messages": messages }))
    }

    /// The result of `completion/complete` for an argument of the prompt `name`.
    pub(crate) async fn complete(
        &self,
        name: &str,
        params: CompleteParams,
    ) -> Result<Raw, ErrorObject> {
        let prompt = self.find(name)?;
        params.answer(&prompt.completers).await
    }

    fn find(&self, name: &str) -> Result<Arc<Prompt>, ErrorObject> {
        let found = self.read_set(|prompts| prompts.get(name).cloned());
        found.ok_or_else(|| invalid_params(format!("unknown prompt: {name}")))
    }

    fn read_set<T>(&self, read_set: impl FnOnce(&BTreeMap<Arc<str>, Arc<Prompt>>) -> T) -> T {
        read_set(&self.0.prompts.read())
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<Arc<str>, Arc<Prompt>>) -> T) -> T {
        change(&mut self.0.prompts.write())
    }
}

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

fn encoded(result: &Value) -> Result<Raw, ErrorObject> {
    Raw::encode(result).map_err(|error| internal(error.to_string()))
}
