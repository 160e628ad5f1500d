//! An upstream as a [`Backend`].

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use outlast_engine::{InputKinds, Origin, Outcome, random};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::NotAnObject;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, RawRef, codes, object, tool, v2, version};
use serde_json::json;

use super::connection::UpstreamConnection;
use super::known_clients::{self, ClientBehaviour};
use super::list::{self, HeaderAnnotations};
use super::runner::CLIENT_HOP_PARAMS;
use super::upstream_call::{CallReservation, UpstreamCall};
use super::{Isolate, Upstream, result};
use crate::client::{self, Era, Generation, ParamChanges, ServerDescription};
use crate::server::{
    Backend, BackendDescription, ClientHandle, ListenGuard, McpServer, PreparedCall, PrestartInfo,
    Reply, Reservation, SessionId, WaitBudget, WaitPolicy,
};

#[async_trait]
impl Backend for Upstream {
    async fn describe(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<BackendDescription, ErrorObject> {
        let connection = self.connection(client).await?;
        self.about(&connection)
            .map_err(|_| codes::internal("the server's capabilities are not an object"))
    }

    /// The answer of the connected server. Without a connection only the settings can tell.
    fn has_tasks(&self, client: &ClientHandle) -> Option<bool> {
        match self.open_connection(client) {
            Some(connection) => Some(self.runs_tasks(&connection.server())),
            None if self.settings.any_task() => None,
            None => Some(false),
        }
    }

    async fn list_tools(&self, client: &Arc<ClientHandle>, params: Option<&Raw>) -> Reply {
        match self.page(client, params).await {
            Ok(page) => Reply::Result(page),
            Err(error) => error,
        }
    }

    async fn prepare(
        &self,
        client: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject> {
        if !self.settings.allows(client.owner(), tool) {
            // As a tool that does not exist.
            return Ok(None);
        }
        let permit = self.admit(client.owner())?;
        let connection = self.connection(client).await?;
        let server = connection.server();
        let Some(known) = connection.traits(tool).await else {
            return Ok(None);
        };
        let makes_tasks = matches!(server.generation, Generation::V1(tasks) if tasks.tools_call);
        Ok(Some(PreparedCall {
            runner: self.runner.clone(),
            support: list::support(self.settings.task(tool)),
            retry: self.settings.retry_class(tool, known.retry),
            immediate: None,
            task_policy: self.settings.task_policy(tool),
            ttl: self.settings.ttl(tool),
            needs: InputKinds::NONE,
            // BR-LIST-7: those of a legacy server mean nothing.
            headers: if server.is_modern() {
                known.headers
            } else {
                Arc::default()
            },
            prestarts: makes_tasks && known.support != TaskSupport::Forbidden,
            reservation: Some(Arc::new(CallReservation::new(UpstreamCall {
                client: client.clone(),
                connection: (self.settings.isolate == Isolate::Owner).then_some(connection),
                _permit: permit,
                prestarted: None,
            }))),
        }))
    }

    async fn prestart(
        &self,
        reservation: &Reservation,
        call: &Origin,
        ttl: u64,
    ) -> Result<PrestartInfo, Outcome> {
        match reservation.downcast_ref::<CallReservation>() {
            Some(reserved) => self.prestart_call(reserved, call, ttl).await,
            None => Ok(PrestartInfo::default()),
        }
    }

    fn wait_policy(&self, client: &ClientHandle) -> Option<WaitPolicy> {
        if !self.settings.any_task() {
            return None;
        }
        Some(
            match known_clients::behaviour_of(client, self.settings.wait_budget) {
                ClientBehaviour::Tasks => WaitPolicy {
                    budget: WaitBudget::Unlimited,
                    tickets: false,
                },
                ClientBehaviour::Waits(budget) => WaitPolicy {
                    budget,
                    tickets: self.settings.tickets,
                },
            },
        )
    }

    /// A child process has state, and so has a session at a server of the legacy era. Only the
    /// settings count, because every node must come to the same conclusion.
    fn is_stateful(&self) -> bool {
        !self.target.has_headers() || self.settings.era != Era::Modern
    }

    /// Every method: an upstream can send input requests during any request.
    fn runner_for(&self, _: &str) -> Option<Arc<str>> {
        Some(self.runner.clone())
    }

    async fn listen(
        &self,
        client: &Arc<ClientHandle>,
        resources: &[String],
    ) -> Option<ListenGuard> {
        let connection = self.connection(client).await.ok()?;
        // A unique name in place of a session id.
        let name = SessionId::new(random::token::<16>());
        let subscriptions = ResourceSubscriptions {
            connection,
            name,
            resources: resources.to_vec(),
        };
        for uri in resources {
            if let Err(fault) = subscriptions
                .connection
                .subscribe(&subscriptions.name, uri)
                .await
            {
                tracing::info!(
                    upstream = &*self.name,
                    fault = fault.brief(),
                    "could not subscribe to a resource"
                );
            }
        }
        Some(Box::new(subscriptions))
    }

    fn notification(&self, client: &Arc<ClientHandle>, method: &str, params: Option<RawRef<'_>>) {
        // Without a connection there is no server to notify.
        let Some(connection) = self.open_connection(client) else {
            return;
        };
        let (method, params) = (method.to_owned(), params.map(RawRef::to_raw));
        tokio::spawn(async move {
            if let Err(fault) = connection.upstream.notify(&method, params.as_ref()).await {
                tracing::info!(
                    fault = fault.brief(),
                    method,
                    "could not send a notification to the upstream"
                );
            }
        });
    }

    fn attach(&self, server: &Weak<McpServer>) {
        self.broadcaster.add(server);
    }

    /// Several upstreams share the engine of a gateway.
    fn only_runner(&self) -> Option<Arc<str>> {
        Some(self.runner.clone())
    }
}

/// Subscriptions of a client without a session. They keep the connection open.
struct ResourceSubscriptions {
    connection: Arc<UpstreamConnection>,
    name: SessionId,
    resources: Vec<String>,
}

impl Drop for ResourceSubscriptions {
    fn drop(&mut self) {
        let (connection, name) = (self.connection.clone(), self.name.clone());
        let resources = std::mem::take(&mut self.resources);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for uri in resources {
                    // A server that cannot be reached sends no notifications, so the error does not
                    // matter.
                    let _ = connection.unsubscribe(&name, &uri).await;
                }
            });
        }
    }
}

impl Upstream {
    /// The description that the gateway sends: the upstream's name, version, title, icons and
    /// instructions unchanged (BR-NEG-10). Only the capabilities for tasks are the gateway's.
    fn about(&self, connection: &UpstreamConnection) -> Result<BackendDescription, NotAnObject> {
        let server = connection.server();
        // BR-GEN-1: the capabilities for tasks are the gateway's.
        let capabilities = object::remove(server.capabilities.borrow(), &["tasks"])?;
        let capabilities = object::remove(capabilities.borrow(), &["extensions", v2::EXTENSION])?;
        let info = server.info.clone().unwrap_or_else(|| {
            // `serverInfo` is required, and this server sent none.
            let info = json!({ "name": &*self.name, "version": "unknown" });
            Raw::encode(&info).expect("an object of strings is JSON")
        });
        Ok(BackendDescription {
            capabilities,
            info,
            instructions: server.instructions.clone(),
            tasks: self.runs_tasks(&server),
        })
    }

    /// Whether any tool of a server runs as a task.
    fn runs_tasks(&self, server: &ServerDescription) -> bool {
        let has_tools = object::find(server.capabilities.borrow(), &["tools"]).is_some();
        has_tools && self.settings.any_task()
    }

    async fn page(&self, client: &Arc<ClientHandle>, params: Option<&Raw>) -> Result<Raw, Reply> {
        let connection = self.connection(client).await.map_err(Reply::from)?;
        let cursor = list::upstream_cursor(params).map_err(Reply::from)?;
        let changes = ParamChanges {
            omit: CLIENT_HOP_PARAMS,
            set: cursor
                .map(|cursor| ("cursor", cursor))
                .into_iter()
                .collect(),
            set_meta: Vec::new(),
        };
        let request = connection
            .upstream
            .short_request(tool::LIST, params.cloned());
        let page = request.changed(changes).keeping_type().await;
        let page = page.map_err(|fault| match fault {
            client::Error::Peer(error) => Reply::Error(error.raw),
            fault => Reply::from(codes::internal(format!("{}: {fault}", self.name))),
        })?;
        let odd = |_| Reply::from(codes::internal("the list of tools is not an object"));
        let headers = if client.version() == version::MODERN && !connection.server().is_modern() {
            HeaderAnnotations::Removed
        } else {
            HeaderAnnotations::Kept
        };
        let tools =
            list::tools(page.borrow(), &self.settings, client.owner(), headers).map_err(odd)?;
        let cursor = list::our_cursor(page.borrow());
        let set = [("tools", &tools), ("nextCursor", &cursor)];
        let set = set
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_ref()?)));
        Ok(result::for_client(page, client, &set.collect::<Vec<_>>()))
    }
}
