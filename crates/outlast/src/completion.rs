//! Completion of arguments of prompts and resource templates.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use outlast_wire::codes::{internal, invalid_params};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef};
use serde::Deserialize;
use serde_json::json;

/// What the user has typed into one argument.
#[derive(Clone, Debug, Default)]
pub struct CompletionInput {
    /// The text.
    pub text: String,
    /// Arguments that have a value already.
    pub others: BTreeMap<String, String>,
}

/// The completers of some arguments, by the argument's name.
pub(crate) type Completers = BTreeMap<Arc<str>, Completer>;

pub(crate) type Completer = Arc<dyn Fn(CompletionInput) -> SuggestFuture + Send + Sync>;

type SuggestFuture = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// A completer that runs `suggest`.
pub(crate) fn completer<F, W>(suggest: F) -> Completer
where
    F: Fn(CompletionInput) -> W + Send + Sync + 'static,
    W: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(move |typed| Box::pin(suggest(typed)))
}

/// The params of `completion/complete`.
#[derive(Deserialize)]
pub(crate) struct CompleteParams {
    #[serde(rename = "ref")]
    pub(crate) reference: CompletionRef,
    argument: CompletionArgument,
    #[serde(default)]
    context: Context,
}

/// The prompt or template that the argument belongs to.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub(crate) enum CompletionRef {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Template { uri: String },
}

#[derive(Deserialize)]
struct CompletionArgument {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
struct Context {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

impl CompleteParams {
    pub(crate) fn read(params: Option<RawRef<'_>>) -> Result<Self, ErrorObject> {
        let params = params.ok_or_else(|| invalid_params("`ref` and `argument` are missing"))?;
        params
            .open()
            .map_err(|error| invalid_params(format!("invalid params: {error}")))
    }

    /// The result, which can be empty.
    pub(crate) async fn answer(self, completers: &Completers) -> Result<Raw, ErrorObject> {
        let mut values = match completers.get(self.argument.name.as_str()) {
            Some(completer) => {
                let typed = CompletionInput {
                    text: self.argument.value,
                    others: self.context.arguments,
                };
                completer(typed).await
            }
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(MAX_VALUES);
        let completion = json!({ "values": values, "total": total, "hasMore": total > MAX_VALUES });
        Raw::encode(&json!({ "completion": completion }))
            .map_err(|error| internal(error.to_string()))
    }
}

/// The protocol's maximum of values.
const MAX_VALUES: usize = 100;
