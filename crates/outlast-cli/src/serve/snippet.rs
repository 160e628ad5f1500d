//! What to write into a host's configuration file to come in.

use outlast::gateway::RunningGateway;
use serde_json::{Map, Value, json};

/// The words for both spellings of the file.
pub(super) fn all(running: &RunningGateway, token: Option<&str>) -> String {
    let mut servers = Map::new();
    for served in running.served() {
        let mut server = json!({ "type": "http", "url": running.url(served) });
        if let Some(token) = token {
            server["headers"] = json!({ "Authorization": format!("Bearer {token}") });
        }
        servers.insert(served.upstream.name().to_string(), server);
    }
    let file = serde_json::to_string_pretty(&json!({ "mcpServers": Value::Object(servers) }));
    format!(
        "\nFor a host's mcp.json (VS Code writes `servers` in place of `mcpServers`):\n\n{}\n\n",
        file.unwrap_or_default()
    )
}
