//! What to do about an error of a connection.

use outlast::client::Error;
use outlast::transport::link::TransportError;

/// The next step for a person. `starts_process` is whether a command starts the server.
pub(super) fn next_step(error: &Error, starts_process: bool) -> &'static str {
    match error {
        Error::Transport(TransportError::Refused {
            status: 401 | 403, ..
        }) => "Add a header `Authorization: Bearer …` with a valid token.",
        Error::Transport(TransportError::Refused {
            status: 404 | 405, ..
        }) => "Check the path of the URL; an Outlast server answers at /mcp.",
        Error::Transport(TransportError::Refused {
            status: 429 | 503, ..
        }) => "The server is busy. Wait a moment, then reconnect.",
        Error::Transport(TransportError::Redirected(_)) => {
            "Add the URL to which the server redirects, if you trust it."
        }
        Error::Transport(TransportError::Unreachable(_)) if starts_process => {
            "Check the spelling of the command and that it is installed, then reconnect."
        }
        Error::Transport(TransportError::Unreachable(_)) => {
            "Check that a server listens at this URL, then reconnect."
        }
        Error::Transport(TransportError::Ended { .. }) => {
            "Read what the command printed, correct it, then reconnect."
        }
        Error::TimedOut(_) if starts_process => {
            "Check that the command starts an MCP server on its standard input and output."
        }
        Error::Unsupported(_) => "Choose another mode for this connection.",
        Error::Peer(_) | Error::Malformed(_) | Error::TimedOut(_) if starts_process => {
            "Check that the command starts an MCP server, or choose another mode."
        }
        Error::Peer(_) | Error::Malformed(_) | Error::TimedOut(_) => {
            "Check that the URL is that of an MCP server, or choose another mode."
        }
        _ => "Reconnect.",
    }
}
