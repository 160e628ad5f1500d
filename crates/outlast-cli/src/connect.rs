//! Connects to the server that the command line names.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use outlast::client::{Client, ClientHandler, ClientOptions, ConnectionName, Hub, NoHandler};
use outlast::transport::http_client::HttpSession;

use crate::call::Spinner;
use crate::connect_error::ConnectError;
use crate::exit::Failure;
use crate::sessions::{self, DeclaredInput, Purpose};
use crate::target::NamedServer;
use crate::terminal_host::{DeferAnswers, TerminalHost};

/// A connection, and its session if the session can outlive it.
pub(crate) struct ServerConnection {
    pub(crate) client: Client,
    /// Follows the tasks of the connection, which has the name `name` in it.
    pub(crate) hub: Hub,
    pub(crate) name: ConnectionName,
    session: Option<OpenSession>,
}

/// The session of a connection at a URL.
struct OpenSession {
    url: String,
    session: HttpSession,
    declared: DeclaredInput,
    task: OnceLock<String>,
}

/// Connects. `host` handles the server's input requests. Resumes a stored session that matches
/// `purpose`.
pub(crate) async fn connect(
    server: NamedServer,
    host: &TerminalHost,
    purpose: Purpose<'_>,
) -> Result<ServerConnection, Failure> {
    let mut declared = DeclaredInput::by(host);
    let mut is_resumed = false;
    if let Some((url, session)) = &server.session
        && let Some(stored) = sessions::find(url, purpose, declared)
    {
        stored.resume(session);
        (declared, is_resumed) = (stored.declared, true);
    }
    let handler: Arc<dyn ClientHandler> = match (host.handler(), declared) {
        (_, DeclaredInput::Nothing) => Arc::new(NoHandler),
        (Some(handler), _) => handler,
        (None, _) => Arc::new(DeferAnswers),
    };
    let options = ClientOptions::default()
        .with_server_name(server.name.as_str())
        .with_era(server.era)
        .with_handler(handler)
        .with_receiver_tasks(host.receiver().filter(|_| declared == DeclaredInput::Tasks));
    let spinner = Spinner::on(format!("Connecting to {}", server.name));
    let endpoint = server.target.endpoint();
    // Boxed, because the future of every command contains it.
    let connecting = Box::pin(Client::connect(server.target, options));
    let client = report_silence(connecting, &endpoint, &spinner).await;
    let client = client.map_err(|fault| {
        Failure::ConnectError(Box::new(ConnectError {
            endpoint: endpoint.clone(),
            starts: server.starts,
            fault,
            printed: server.printed.lines(),
        }))
    })?;
    if is_resumed {
        // If the session is gone, this request fails and opens another.
        let _ = client.ping().await;
    }
    drop(spinner);
    let (hub, name) = (Hub::new(), ConnectionName::new(server.name, endpoint));
    hub.add(name.clone(), client.clone())?;
    Ok(ServerConnection {
        client,
        hub,
        name,
        session: server.session.map(|(url, session)| OpenSession {
            url,
            session,
            declared,
            task: OnceLock::new(),
        }),
    })
}

/// Waits for a connection. While the server does not respond, prints that at intervals.
async fn report_silence<T>(
    connecting: impl Future<Output = T>,
    endpoint: &str,
    spinner: &Spinner,
) -> T {
    let mut connecting = std::pin::pin!(connecting);
    let began = Instant::now();
    loop {
        tokio::select! {
            done = &mut connecting => return done,
            () = tokio::time::sleep(SILENCE_REPORT_INTERVAL) => {
                let seconds = began.elapsed().as_secs();
                spinner.say(format!(
                    "`{endpoint}` has not answered for {seconds} s; still waiting (Ctrl-C ends this)"
                ));
            }
        }
    }
}

impl ServerConnection {
    /// Stores the session for a later command, with the id of a task that continues in it.
    pub(crate) fn keep_session(&self, task: Option<&str>) {
        if let Some(session) = &self.session {
            session.session.keep();
            if let Some(task) = task {
                let _ = session.task.set(task.to_owned());
            }
        }
    }

    pub(crate) async fn close(self) {
        if let Some(session) = &self.session {
            let task = session.task.get().map(String::as_str);
            sessions::store(&session.url, &session.session, session.declared, task);
        }
        self.client.close().await;
    }
}

/// How often a server that does not respond is reported.
const SILENCE_REPORT_INTERVAL: Duration = Duration::from_secs(5);
