//! The text for a host's configuration file that connects the host to the gateway.

use outlast::gateway::RunningGateway;
use outlast::store::StoreUrl;
use serde_json::{Map, Value, json};

use super::token::{LocalToken, Tokens};
use crate::dirs;

/// Returns the text for both spellings of the file. The token is included only by the start that
/// creates it.
pub(super) fn snippet_text(running: &RunningGateway, tokens: &Tokens, store: &StoreUrl) -> String {
    let (token, note) = match &tokens.local {
        None => (None, String::new()),
        Some(LocalToken::New(token)) => (Some(token.as_str()), String::new()),
        Some(LocalToken::Known) => {
            let at = match dirs::gateway_store() {
                Ok(usual) if usual == *store => String::new(),
                _ => format!(" --store {}", dirs::store_argument(store)),
            };
            let note = format!("`outlast gateway token{at}` prints the TOKEN.\n\n");
            (Some("TOKEN"), note)
        }
    };
    let mut servers = Map::new();
    for served in running.endpoints() {
        let mut server = json!({ "type": "http", "url": running.url(&served) });
        if let Some(token) = token {
            server["headers"] = json!({ "Authorization": format!("Bearer {token}") });
        }
        servers.insert(served.upstream.name().to_string(), server);
    }
    let file = serde_json::to_string_pretty(&json!({ "mcpServers": Value::Object(servers) }));
    format!(
        "\nFor the configuration file of your host (in VS Code, write `servers` instead of `mcpServers`):\n\n{}\n\n{note}",
        file.unwrap_or_default()
    )
}
