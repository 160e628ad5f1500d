//! The workspaces of the viewers. Each viewer has one, which begins with the connections of the
//! program: the server that is inspected, or the endpoints of the gateway under the viewer's own
//! token.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast::client::ConnectionName;
use outlast::server::Scopes;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::events::Audience;
use crate::workspace::{Address, ConnectionSpec, Workspace, WorkspaceEvent};

/// The connections with which each workspace begins.
#[derive(Clone, Default)]
pub(crate) struct FirstConnections {
    /// The same for every viewer.
    pub(crate) specs: Vec<ConnectionSpec>,
    /// Endpoints of this program, by name. They are called with the token of the viewer.
    pub(crate) endpoints: Option<EndpointSource>,
}

/// The names and URLs of the program's own endpoints, once it listens.
pub(crate) type EndpointSource = Arc<dyn Fn() -> Vec<(String, String)> + Send + Sync>;

/// The workspaces of the viewers.
#[derive(Default)]
pub(crate) struct Workspaces {
    first: FirstConnections,
    all: Mutex<BTreeMap<String, Workspace>>,
}

impl Workspaces {
    pub(crate) fn new(first: FirstConnections) -> Self {
        Self {
            first,
            all: Mutex::default(),
        }
    }

    /// Whether every workspace begins with a server that is not of this program.
    pub(crate) fn has_first_server(&self) -> bool {
        !self.first.specs.is_empty()
    }

    /// The workspaces of all viewers.
    pub(crate) fn all(&self) -> Vec<Workspace> {
        self.all.lock().values().cloned().collect()
    }
}

impl App {
    /// The workspace of a viewer. It is made when it is needed first.
    pub(crate) fn workspace(&self, viewer: &Viewer) -> Result<Workspace, ConsoleError> {
        let workspaces = self.workspaces();
        let key = key(viewer);
        let mut all = workspaces.all.lock();
        if let Some(workspace) = all.get(&key) {
            return Ok(workspace.clone());
        }
        if all.len() >= MAX_WORKSPACES {
            return Err(ConsoleError::conflict("too many viewers use this console")
                .next("restart the console"));
        }
        let workspace = Workspace::new();
        for spec in &workspaces.first.specs {
            workspace.add(spec.clone())?;
        }
        // A viewer that may only read calls nothing.
        if let Some(endpoints) = workspaces
            .first
            .endpoints
            .as_ref()
            .filter(|_| viewer.can(Scopes::CALL))
        {
            for (name, url) in endpoints() {
                workspace.add(own_endpoint(&name, url, viewer))?;
            }
        }
        forward(self, &key, &workspace);
        all.insert(key, workspace.clone());
        Ok(workspace)
    }

    /// The workspace of a viewer, if it was needed before.
    pub(crate) fn existing_workspace(&self, viewer: &Viewer) -> Option<Workspace> {
        self.workspaces().all.lock().get(&key(viewer)).cloned()
    }
}

/// Names the workspace of a viewer. A token that may only read has one without the endpoints.
pub(crate) fn key(viewer: &Viewer) -> String {
    let can_call = viewer.can(Scopes::CALL);
    format!("{}/{}/{can_call}", viewer.name(), viewer.owner().is_none())
}

/// A connection to an endpoint of this program, as the viewer.
fn own_endpoint(name: &str, url: String, viewer: &Viewer) -> ConnectionSpec {
    let token = viewer
        .token()
        .map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
    let address = Address::Url {
        url,
        headers: token.into_iter().collect(),
    };
    ConnectionSpec {
        is_removable: false,
        ..ConnectionSpec::new(ConnectionName::new(name, OWN_SOURCE), address)
    }
}

/// Sends the changes of a workspace to the open pages of its viewer, and to no other: an operator
/// sees the tasks of every owner, but not what servers ask the clients of others.
fn forward(app: &App, key: &str, workspace: &Workspace) {
    let audience = Audience::Workspace(key.into());
    let mut events = workspace.events();
    let app = app.clone();
    tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => publish(&app, &audience, &event),
                Err(RecvError::Lagged(_)) => app.events().resync(),
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn publish(app: &App, audience: &Audience, event: &WorkspaceEvent) {
    app.events()
        .publish(audience.clone(), event.name(), &event.data());
}

/// The source of the endpoints of this program.
pub(crate) const OWN_SOURCE: &str = "gateway";

/// How many viewers have a workspace.
const MAX_WORKSPACES: usize = 64;
