//! The builder of a [`Server`]: what it serves, where tasks are kept, and who may call it.

use std::sync::Arc;

use outlast_engine::engine::Runner;
use outlast_engine::{Clock, Engine, Policy, Store};

use crate::LocalServer;
use crate::local_tools::Tool;
use crate::outlast::{Outlast, OutlastBuilder};
use crate::prompts::Prompts;
use crate::resources::Resources;
#[cfg(feature = "http")]
use crate::running_server::MakeFallback;
use crate::running_server::Server;
use crate::server::{Backend, Middleware, RUNNER};
#[cfg(feature = "http")]
use crate::transport::http::{Authenticate, Fallback, HttpOptions};

/// Configures a [`Server`]. `B` is what it serves: tools, prompts and resources of this process, or
/// an rmcp server.
///
/// ```
/// use outlast::prelude::*;
///
/// # async fn run() -> Result<(), ServerError> {
/// let hello = Tool::new("hello", "Says hello", |_, _| async { Ok(text("Hello!")) });
/// let server = Server::builder("greeter", "1.0")
///     .tool(hello.task(TaskSupport::Optional))
///     .build()
///     .serve_http("127.0.0.1:0")
///     .await?;
/// println!("{}", server.url());
/// server.shutdown().await
/// # }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ServerBuilder<B = LocalServer> {
    backend: B,
    outlast: OutlastBuilder,
    #[cfg(feature = "http")]
    http: HttpOptions,
    #[cfg(feature = "http")]
    authenticate: Option<Arc<dyn Authenticate>>,
    #[cfg(feature = "http")]
    callback_path: Option<Arc<str>>,
    tasks: Option<bool>,
    #[cfg(feature = "http")]
    fallback: Option<MakeFallback>,
}

impl Server {
    /// Returns a builder for a server of that name and version. Without a store, tasks are kept in
    /// memory and end with the process.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        Self::backend(LocalServer::new(name.into(), version.into()))
    }

    /// Returns a builder for a server with a backend of your own, which also runs its calls:
    /// [`PreparedCall::new`](crate::server::PreparedCall::new) names it as the runner.
    pub fn backend<B: Backend + Runner>(backend: B) -> ServerBuilder<B> {
        ServerBuilder {
            backend,
            outlast: Outlast::builder(),
            #[cfg(feature = "http")]
            http: HttpOptions::default(),
            #[cfg(feature = "http")]
            authenticate: None,
            #[cfg(feature = "http")]
            callback_path: None,
            tasks: None,
            #[cfg(feature = "http")]
            fallback: None,
        }
    }
}

impl<B: Backend + Runner> ServerBuilder<B> {
    /// Stores tasks in `store`. [`store::open`](crate::store::open) opens one.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.outlast = self.outlast.store(store);
        self
    }

    /// Sets the policy: times, quotas and sizes of tasks.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.outlast = self.outlast.policy(policy);
        self
    }

    /// Adds middleware around every message, inside the middleware that was added before.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.outlast = self.outlast.middleware(Arc::new(middleware));
        self
    }

    /// Finds out who sends an HTTP request and what it may do. Without it, every caller is
    /// admitted, and each session is a separate owner.
    #[cfg(feature = "http")]
    pub fn authenticate(mut self, authenticate: impl Authenticate) -> Self {
        self.authenticate = Some(Arc::new(authenticate));
        self
    }

    /// Sets the options of the HTTP endpoint.
    #[cfg(feature = "http")]
    pub fn http(mut self, options: HttpOptions) -> Self {
        self.http = options;
        self
    }

    /// Sets whether the server has tasks. By default it has them if some tool can run as a task.
    /// With `false` it declares no tasks, and every call is an ordinary one.
    pub fn tasks(mut self, tasks: bool) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Serves reports about detached tasks at `path` of the listener, such as `/callback`. See
    /// [`detached`](crate::detached).
    #[cfg(feature = "http")]
    pub fn callbacks(mut self, path: &str) -> Self {
        self.callback_path = Some(path.into());
        self
    }

    /// Serves the other paths of the listener by a service that needs the engine, such as a
    /// console.
    #[cfg(feature = "http")]
    pub fn fallback(mut self, make: impl FnOnce(&Engine) -> Fallback + Send + 'static) -> Self {
        self.fallback = Some(Box::new(make));
        self
    }

    /// Sets the clock that decides on the times of tasks, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.outlast = self.outlast.clock(clock);
        self
    }

    /// Builds the server. It does nothing until it is started.
    pub fn build(self) -> Server {
        let backend = Arc::new(self.backend);
        #[cfg(feature = "http")]
        let http = {
            let mut http = self.http;
            http.authenticate = self.authenticate.or(http.authenticate);
            http
        };
        Server {
            outlast: self.outlast.build(),
            backend: backend.clone(),
            runner: backend,
            runner_name: RUNNER.into(),
            #[cfg(feature = "http")]
            http,
            #[cfg(feature = "http")]
            callback_path: self.callback_path,
            tasks: self.tasks,
            #[cfg(feature = "http")]
            fallback: self.fallback,
        }
    }

    pub(crate) fn map(mut self, change: impl FnOnce(B) -> B) -> Self {
        self.backend = change(self.backend);
        self
    }
}

impl ServerBuilder {
    /// Adds a tool. It replaces a tool with the same name.
    pub fn tool(self, tool: Tool) -> Self {
        self.map(|server| server.tool(tool))
    }

    /// Adds several tools.
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Sets the prompts.
    pub fn prompts(self, prompts: Prompts) -> Self {
        self.map(|server| server.prompts(prompts))
    }

    /// Sets the resources.
    pub fn resources(self, resources: Resources) -> Self {
        self.map(|server| server.resources(resources))
    }

    /// Sets the instructions for the model.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.map(|server| server.instructions(instructions.into()))
    }
}
