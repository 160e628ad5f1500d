//! The token of the gateway on this machine, for commands that call it.

use super::{control, socket};
use crate::dirs;
use crate::serve::stored_token;

/// Returns the local token if `url` is an endpoint of the gateway on the default store. The gateway
/// itself reports its addresses, so no other server receives the token.
pub(crate) fn of_url(url: &str) -> Option<String> {
    let port = loopback_port(url)?;
    let store = dirs::gateway_store().ok()?;
    let status = control::status(&socket::path(&store).ok()?).ok()??;
    let is_ours = |own: &String| loopback_port(own) == Some(port);
    if status.urls.iter().any(is_ours) {
        stored_token(&store).ok()?
    } else {
        None
    }
}

/// Returns the port of a URL on this machine.
fn loopback_port(url: &str) -> Option<u16> {
    let authority = url.strip_prefix("http://")?.split(['/', '?']).next()?;
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    match host {
        "localhost" | "127.0.0.1" | "[::1]" => port.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_taken() {
        assert_eq!(loopback_port("http://127.0.0.1:8040/mcp"), Some(8040));
        assert_eq!(
            loopback_port("http://localhost:8040/mcp/files?x"),
            Some(8040)
        );
        assert_eq!(loopback_port("http://[::1]:8040"), Some(8040));
        for other in [
            "http://example.org:8040/mcp",
            "http://127.0.0.1.example.org:8040/mcp",
            "http://127.0.0.1:8040@example.org/mcp",
            "https://127.0.0.1:8040/mcp",
        ] {
            assert_eq!(loopback_port(other), None, "{other}");
        }
    }
}
