//! Starts a handler: creates it, initializes it, and lists its tools, within a time limit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::rmcp::ServiceExt;
use ::rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::{self, Initialize, TaskSupport};
use outlast_wire::{Raw, RawRef, codes, object, version};
use serde_json::json;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

use super::channel::channel;
use super::guard::GuardedHandler;
use super::running_handler::{RunningHandler, Shared};
use super::{Rmcp, messages};
use crate::server::{BackendDescription, ClientHandle};

impl Rmcp {
    /// Starts a handler for `client`.
    pub(super) async fn start(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<RunningHandler>, ErrorObject> {
        let handler = catch_unwind(AssertUnwindSafe(|| (self.make)()))
            .map_err(|_| codes::internal("the handler could not be created (panic)"))?;
        let (needs, needed) = watch::channel(());
        let guarded = GuardedHandler {
            handler,
            grace_period: self.grace_period,
            needed,
        };
        let (channel, to_handler, from_handler) = channel();
        let shared = Shared::new(client, &to_handler);
        tokio::spawn(async move {
            match guarded.serve(channel).await {
                // The handler ends when the channel closes.
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::warn!(%error, "could not start a handler"),
            }
        });
        tokio::spawn(shared.clone().listen(from_handler));
        let description = self
            .within_start_timeout(self.initialize(client, &shared, &to_handler))
            .await?;
        Ok(Arc::new(RunningHandler::new(
            to_handler,
            shared,
            description,
            needs,
        )))
    }

    async fn initialize(
        &self,
        client: &ClientHandle,
        shared: &Shared,
        to_handler: &Sender<ClientJsonRpcMessage>,
    ) -> Result<BackendDescription, ErrorObject> {
        let params = initialize_params(client)?;
        let initialize = messages::request(v1::method::INITIALIZE, Some(&params))?;
        let result = shared.request(to_handler, initialize, None).await?;
        let initialize_result = Initialize::read(result.borrow())?;
        let initialized = messages::notification(v1::method::INITIALIZED, None)?;
        let _ = to_handler
            .send(JsonRpcMessage::notification(initialized))
            .await;
        let capabilities = without_tasks(initialize_result.capabilities)?;
        if object::find(capabilities.borrow(), &["tools"]).is_some() {
            self.list_all_tools(shared, to_handler).await?;
        }
        let configured = self.tasks.values();
        let configured = configured
            .into_iter()
            .any(|support| *support != TaskSupport::Forbidden);
        Ok(BackendDescription {
            capabilities,
            info: initialize_result
                .info
                .map_or_else(|| encoded(&json!({})), |info| Ok(info.to_raw()))?,
            instructions: initialize_result.instructions,
            tasks: configured || shared.catalogue.any_task(),
        })
    }

    /// Lists and records all tools of a handler.
    pub(super) async fn list_all_tools(
        &self,
        shared: &Shared,
        to_handler: &Sender<ClientJsonRpcMessage>,
    ) -> Result<(), ErrorObject> {
        let mut cursor: Option<Raw> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor
                .as_ref()
                .map(|cursor| encoded(&json!({ "cursor": cursor })));
            let list = messages::request(outlast_wire::tool::LIST, params.transpose()?.as_ref())?;
            let page = shared.request(to_handler, list, None).await?;
            // A page that is not an object has no tools.
            let _ = shared.catalogue.record_page(page.borrow(), &self.tasks);
            let next = object::find(page.borrow(), &["nextCursor"]);
            match next.filter(|next| next.is_text()) {
                Some(next) => cursor = Some(next.to_raw()),
                None => break,
            }
        }
        Ok(())
    }
}

/// The `initialize` params for the handler: those of the client without tasks, which are ours.
fn initialize_params(client: &ClientHandle) -> Result<Raw, ErrorObject> {
    let capabilities = without_tasks(client.capabilities())?;
    let unnamed = encoded(&json!({ "name": "client", "version": "unknown" }))?;
    let info = client.info().filter(|info| info.is_object());
    let info = info.unwrap_or(unnamed.borrow());
    // A modern handler could not send requests. For modern clients we translate them.
    let legacy = version::LEGACY_VERSIONS.contains(&client.version());
    let version = if legacy {
        client.version()
    } else {
        version::LEGACY
    };
    Ok(v1::initialize_params(version, capabilities.borrow(), info))
}

fn without_tasks(capabilities: RawRef<'_>) -> Result<Raw, ErrorObject> {
    let paths: [&[&str]; 2] = [&["tasks"], &["extensions", TASKS_EXTENSION]];
    paths.iter().try_fold(capabilities.to_raw(), |left, path| {
        object::remove(left.borrow(), path)
            .map_err(|_| codes::invalid_params("`capabilities` must be an object"))
    })
}

fn encoded(value: &serde_json::Value) -> Result<Raw, ErrorObject> {
    Raw::encode(value).map_err(|error| codes::internal(error.to_string()))
}

/// The identifier of the V2 extension.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The maximum of pages of tools.
const MAX_PAGES: usize = 100;
