//! Where a server is, and how to get a connection to it, again and again.

use std::sync::Arc;

use outlast_wire::version::Era;
use parking_lot::Mutex;

use crate::server::McpServer;
use crate::transport::child::{self, ChildOptions};
use crate::transport::duplex;
use crate::transport::http_client::{self, HttpClientOptions, Session};
use crate::transport::link::{Link, LinkError, message_bytes};
use crate::transport::register::Register;

/// Where a server is. Clones share what is found out about it.
#[derive(Clone)]
pub struct Target {
    how: TargetKind,
    /// What is known of its eras (V2-ERA-7).
    eras: Arc<Mutex<KnownEras>>,
}

/// What connections have found out about the eras of a server.
#[derive(Clone, Copy, Debug, Default)]
struct KnownEras {
    /// The one that it was found in.
    found: Option<Era>,
    /// Whether it refused a handshake and was found in the modern one.
    only_modern: bool,
}

#[derive(Clone)]
enum TargetKind {
    Child(ChildOptions),
    Http(HttpClientOptions),
    Front(Arc<McpServer>),
    Other(
        Arc<str>,
        Arc<dyn Fn() -> Result<Link, LinkError> + Send + Sync>,
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

    /// A server at a URL.
    pub fn http(options: HttpClientOptions) -> Self {
        Self::new(TargetKind::Http(options))
    }

    /// A server in this process.
    pub fn in_process(front: Arc<McpServer>) -> Self {
        Self::new(TargetKind::Front(front))
    }

    /// Anything else that makes connections; `endpoint` names it in references.
    pub fn other(
        endpoint: impl Into<Arc<str>>,
        connect: impl Fn() -> Result<Link, LinkError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(TargetKind::Other(endpoint.into(), Arc::new(connect)))
    }

    /// The name of the place, the same in every life of this program: a URL, or a command with its arguments.
    pub fn endpoint(&self) -> String {
        match &self.how {
            TargetKind::Child(options) => {
                let parts = std::iter::once(&options.program).chain(&options.args);
                let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
                parts.join(" ")
            }
            TargetKind::Http(options) => options.url.clone(),
            TargetKind::Front(_) => "in-process".into(),
            TargetKind::Other(endpoint, _) => endpoint.to_string(),
        }
    }

    /// The same place in a session of its own, if connections have sessions.
    pub(crate) fn in_session(&self, session: Session) -> Option<Self> {
        match &self.how {
            TargetKind::Http(options) => {
                let mut options = options.clone();
                options.session = Some(session);
                Some(Self {
                    how: TargetKind::Http(options),
                    eras: self.eras.clone(),
                })
            }
            TargetKind::Child(_) | TargetKind::Front(_) | TargetKind::Other(..) => None,
        }
    }

    /// The session that a connection goes on in or opens, where servers have some.
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.how {
            TargetKind::Http(options) => options.session.as_ref(),
            TargetKind::Child(_) | TargetKind::Front(_) | TargetKind::Other(..) => None,
        }
    }

    /// The same place, with child processes written down in `register`.
    pub(crate) fn with_child_register(mut self, register: &Register) -> Self {
        if let TargetKind::Child(options) = &mut self.how {
            options.register = Some(register.clone());
        }
        self
    }

    /// The same place, whose messages may carry a payload of so many bytes.
    pub(crate) fn with_payload(mut self, payload: usize) -> Self {
        match &mut self.how {
            TargetKind::Child(options) => options.message_bytes = message_bytes(payload),
            TargetKind::Http(options) => options.message_bytes = message_bytes(payload),
            TargetKind::Front(_) | TargetKind::Other(..) => {}
        }
        self
    }

    /// Whether requests have headers on their way there.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self.how, TargetKind::Http(_))
    }

    /// The era of the server, if a connection has found out.
    pub(crate) fn known_era(&self) -> Option<Era> {
        self.eras.lock().found
    }

    pub(crate) fn remember_era(&self, era: Era) {
        self.eras.lock().found = Some(era);
    }

    /// Whether the server has refused a handshake and speaks the modern era.
    pub(crate) fn is_only_modern(&self) -> bool {
        self.eras.lock().only_modern
    }

    pub(crate) fn remember_only_modern(&self) {
        self.eras.lock().only_modern = true;
    }

    /// A fresh connection.
    pub(crate) fn link(&self) -> Result<Link, LinkError> {
        match &self.how {
            TargetKind::Child(options) => child::spawn(options),
            TargetKind::Http(options) => http_client::connect(options),
            TargetKind::Front(front) => Ok(duplex::to_front(front.clone())),
            TargetKind::Other(_, connect) => connect(),
        }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.endpoint())
    }
}
