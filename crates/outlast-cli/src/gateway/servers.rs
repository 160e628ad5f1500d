//! Decides which relays share a server: those with the same command, directory, settings and
//! environment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use outlast::client::Target;
use outlast::gateway::{Settings, Upstream, UpstreamEndpoints};
use outlast::server::McpServer;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::ServerRequest;
use crate::exit::Failure;
use crate::serve;
use crate::target::child_of;

/// The servers that relays have named.
pub(super) struct Servers {
    upstreams: Arc<UpstreamEndpoints>,
    known: Mutex<BTreeMap<Identity, Arc<McpServer>>>,
}

/// Two requests with equal identities name the same server.
#[derive(PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
struct Identity {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    directory: PathBuf,
    settings: Option<String>,
}

impl Servers {
    pub(super) fn new(upstreams: Arc<UpstreamEndpoints>) -> Self {
        let known = Mutex::default();
        Self { upstreams, known }
    }

    /// Returns the MCP server in front of the server that `request` names.
    pub(super) async fn mcp_server(
        &self,
        request: ServerRequest,
    ) -> Result<Arc<McpServer>, Failure> {
        let Some((program, rest)) = request.command.split_first() else {
            return Err(Failure::Usage("the relay names no command".into()));
        };
        let identity = Identity::of(&request);
        let mut known = self.known.lock().await;
        if let Some(mcp_server) = known.get(&identity) {
            return Ok(mcp_server.clone());
        }
        let settings = match &request.settings {
            Some(text) => {
                let object = serde_json::from_str(text).map_err(std::io::Error::other)?;
                serve::read_settings(&object).map_err(Failure::Usage)?
            }
            None => Settings::default(),
        };
        let args = rest.iter().map(Into::into).collect();
        let mut options = child_of(program.into(), args, false);
        let env = request.env.iter();
        options.env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        options.inherit_env = false;
        options.directory = Some(request.directory.clone());
        let name = serve::server_name(&request.command, &request.directory);
        let name = format!("{name}-{}", identity.digest());
        let target = Target::child(options);
        let mcp_server = self.upstreams.add(Upstream::new(name, target, settings));
        known.insert(identity, mcp_server.clone());
        Ok(mcp_server)
    }
}

impl Identity {
    fn of(request: &ServerRequest) -> Self {
        let env = request.env.iter();
        let env = env.filter(|(name, _)| !is_harmless(name));
        Self {
            command: request.command.clone(),
            env: env.map(|(k, v)| (k.clone(), v.clone())).collect(),
            directory: request.directory.clone(),
            settings: request.settings.clone(),
        }
    }

    /// Distinguishes servers with the same command. It is the same after a restart, so that the
    /// tasks of a server find it again, and too short to reveal the environment.
    fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("strings are JSON");
        let digest = Sha256::digest(text);
        digest[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Whether a variable only identifies the window, terminal or shell that started a process.
fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
        || HARMLESS_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

const HARMLESS: &[&str] = &[
    "_",
    "SHLVL",
    // The directory is compared separately.
    "PWD",
    "OLDPWD",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "TTY",
    "GPG_TTY",
    "SSH_TTY",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "TERM_SESSION_ID",
    "ITERM_SESSION_ID",
    "WT_SESSION",
    "ZELLIJ_PANE_ID",
    "XDG_ACTIVATION_TOKEN",
    "DESKTOP_STARTUP_ID",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "OUTLAST_BACKGROUND_IDLE_MS",
];

/// Process ids, sockets and log folders of one window of an editor or terminal.
const HARMLESS_PREFIXES: &[&str] = &["VSCODE_", "KITTY_", "WEZTERM_", "ALACRITTY_"];

#[cfg(test)]
mod tests {
    use super::*;

    fn request(env: &[(&str, &str)]) -> ServerRequest {
        let env = env.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        ServerRequest {
            command: vec!["server".into()],
            env: env.collect(),
            directory: "/".into(),
            settings: None,
        }
    }

    #[test]
    fn harmless_variables_do_not_change_the_identity() {
        let one = Identity::of(&request(&[("KEY", "1"), ("_", "/bin/a"), ("SHLVL", "1")]));
        let same = Identity::of(&request(&[
            ("KEY", "1"),
            ("PWD", "/x"),
            ("VSCODE_PID", "7"),
        ]));
        let other = Identity::of(&request(&[("KEY", "2")]));
        assert!(one == same && one.digest() == same.digest());
        assert!(one != other && one.digest() != other.digest());
        assert_eq!(one.digest().len(), 8);
    }
}
