//! The address of a server, and how to open links to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::version::Era;
use parking_lot::Mutex;

#[cfg(feature = "server")]
use crate::server::McpServer;
use crate::transport::child::{self, ChildOptions};
use crate::transport::child_registry::ChildRegistry;
#[cfg(feature = "server")]
use crate::transport::duplex;
use crate::transport::http_client::{self, HttpClientOptions, HttpSession};
use crate::transport::link::{Link, TransportError, message_bytes};

/// The address of a server. Clones share what connections have detected.
///
/// ```
/// use outlast::client::Target;
/// use outlast::transport::child::ChildOptions;
/// use outlast::transport::http_client::HttpClientOptions;
///
/// let with_a_token = HttpClientOptions::new("https://mcp.example.com/mcp").bearer("secret");
/// let targets = [
///     Target::url("http://127.0.0.1:8040/mcp"),
///     Target::http(with_a_token),
///     Target::child(ChildOptions::new("npx").args(["-y", "some-server"])),
/// ];
/// # drop(targets);
/// ```
#[derive(Clone)]
pub struct Target {
    how: TargetKind,
    /// The detected eras (V2-ERA-7).
    eras: Arc<Mutex<KnownEras>>,
}

/// What connections have detected about the eras of a server.
#[derive(Clone, Copy, Debug, Default)]
struct KnownEras {
    /// The era of the last detection.
    found: Option<Era>,
    /// Whether the server refused a handshake and was opened in the modern era.
    only_modern: bool,
}

#[derive(Clone)]
enum TargetKind {
    Child(ChildOptions),
    Http(HttpClientOptions),
    #[cfg(feature = "server")]
    InProcess(Arc<McpServer>),
    Other(
        Arc<str>,
        Arc<dyn Fn() -> Result<Link, TransportError> + Send + Sync>,
    ),
}

impl Target {
    fn new(how: TargetKind) -> Self {
        Self {
            how,
            eras: Arc::default(),
        }
    }

    /// A server that is started as a child process.
    pub fn child(options: ChildOptions) -> Self {
        Self::new(TargetKind::Child(options))
    }

    /// The server at `url`, such as `http://127.0.0.1:8040/mcp`.
    pub fn url(url: impl Into<String>) -> Self {
        Self::http(HttpClientOptions::new(url))
    }

    /// A server at a URL, with options such as a token.
    pub fn http(options: HttpClientOptions) -> Self {
        Self::new(TargetKind::Http(options))
    }

    /// A server in this process.
    #[cfg(feature = "server")]
    pub fn in_process(server: Arc<McpServer>) -> Self {
        Self::new(TargetKind::InProcess(server))
    }

    /// Any other way to open links. `endpoint` names the server in references.
    pub fn other(
        endpoint: impl Into<Arc<str>>,
        connect: impl Fn() -> Result<Link, TransportError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(TargetKind::Other(endpoint.into(), Arc::new(connect)))
    }

    /// The stable name of the server, which is the same after a restart: a URL, or a command with
    /// its arguments.
    pub fn endpoint(&self) -> String {
        match &self.how {
            TargetKind::Child(options) => {
                let parts = std::iter::once(&options.program).chain(&options.args);
                let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
                parts.join(" ")
            }
            TargetKind::Http(options) => options.url.clone(),
            #[cfg(feature = "server")]
            TargetKind::InProcess(_) => "in-process".into(),
            TargetKind::Other(endpoint, _) => endpoint.to_string(),
        }
    }

    /// The same server with a separate session, if the transport has sessions.
    pub(crate) fn in_session(&self, session: HttpSession) -> Option<Self> {
        match &self.how {
            TargetKind::Http(options) => {
                let mut options = options.clone();
                options.session = Some(session);
                Some(Self {
                    how: TargetKind::Http(options),
                    eras: self.eras.clone(),
                })
            }
            _ => None,
        }
    }

    /// The session to continue or open, if the transport has sessions.
    pub(crate) fn session(&self) -> Option<&HttpSession> {
        match &self.how {
            TargetKind::Http(options) => options.session.as_ref(),
            _ => None,
        }
    }

    /// Records child processes in `registry`.
    pub(crate) fn with_child_registry(mut self, registry: &ChildRegistry) -> Self {
        if let TargetKind::Child(options) = &mut self.how {
            options.registry = Some(registry.clone());
        }
        self
    }

    /// Sets the largest payload of a message, in bytes.
    pub(crate) fn with_payload(mut self, payload: usize) -> Self {
        match &mut self.how {
            TargetKind::Child(options) => options.max_message_bytes = message_bytes(payload),
            TargetKind::Http(options) => options.max_message_bytes = message_bytes(payload),
            _ => {}
        }
        self
    }

    /// Sets headers, or environment variables of a child process. They replace those with the same
    /// names.
    pub(crate) fn with_credentials(
        mut self,
        headers: &BTreeMap<String, String>,
        env: &BTreeMap<String, String>,
    ) -> Self {
        match &mut self.how {
            TargetKind::Child(options) => {
                // The last of several values of a variable is used.
                let env = env.iter().map(|(name, value)| (name.into(), value.into()));
                options.env.extend(env);
            }
            TargetKind::Http(options) => {
                let is_set = |name: &str| headers.keys().any(|set| set.eq_ignore_ascii_case(name));
                options.headers.retain(|(name, _)| !is_set(name));
                if is_set("authorization") {
                    options.bearer = None;
                }
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
                options.headers.extend(headers);
            }
            #[cfg(feature = "server")]
            TargetKind::InProcess(_) => {}
            TargetKind::Other(..) => {}
        }
        self
    }

    /// Whether the transport has headers.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self.how, TargetKind::Http(_))
    }

    /// The detected era of the server, if there is one.
    pub(crate) fn known_era(&self) -> Option<Era> {
        self.eras.lock().found
    }

    pub(crate) fn remember_era(&self, era: Era) {
        self.eras.lock().found = Some(era);
    }

    /// Whether the server has refused a handshake and supports the modern era.
    pub(crate) fn is_only_modern(&self) -> bool {
        self.eras.lock().only_modern
    }

    pub(crate) fn remember_only_modern(&self) {
        self.eras.lock().only_modern = true;
    }

    /// Opens a new link.
    pub(crate) fn link(&self) -> Result<Link, TransportError> {
        match &self.how {
            TargetKind::Child(options) => child::spawn(options),
            TargetKind::Http(options) => http_client::connect(options),
            #[cfg(feature = "server")]
            TargetKind::InProcess(server) => Ok(duplex::to_server(server.clone())),
            TargetKind::Other(_, connect) => connect(),
        }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.endpoint())
    }
}
