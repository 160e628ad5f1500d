//! Why no connection to a server came about: the text names the URL or the command, the cause, and a next step.

use outlast::client;
use outlast::transport::link::LinkError;
use outlast::wire::codes;

use crate::target::Starts;
use crate::terminal::clean;

/// A server that could not be connected to.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// The URL, or the command with its arguments.
    pub(crate) endpoint: String,
    pub(crate) starts: Starts,
    pub(crate) fault: client::Error,
}

impl std::fmt::Display for Unconnected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoint = clean(&self.endpoint);
        let what = match self.starts {
            Starts::Elsewhere => endpoint,
            Starts::ByCommand | Starts::ByName => format!("the command `{endpoint}`"),
        };
        match &self.fault {
            client::Error::Peer(error) if error.code == codes::METHOD_NOT_FOUND => {
                write!(
                    f,
                    "{what} is not an MCP server: it does not know `initialize`"
                )?;
            }
            client::Error::Transport(LinkError::Unreachable(cause)) => {
                write!(f, "cannot connect to {what}: {}", clean(cause))?;
            }
            client::Error::Transport(LinkError::Ended { status, stderr }) => {
                write!(f, "{what} ended before it answered ({status})")?;
                if !stderr.is_empty() {
                    write!(f, "; it wrote: {}", clean(stderr))?;
                }
            }
            client::Error::Transport(LinkError::Refused { status, detail, .. }) => {
                write!(f, "{what} answers with HTTP status {status}")?;
                let detail = clean(detail);
                // A page of HTML explains nothing on a terminal.
                if !detail.is_empty() && !detail.trim_start().starts_with('<') {
                    write!(f, ": {detail}")?;
                }
            }
            client::Error::TimedOut(limit) => {
                write!(f, "{what} has not answered for {} s", limit.as_secs())?;
            }
            fault => write!(f, "cannot connect to {what}: {}", clean(&fault.to_string()))?,
        }
        write!(f, "\n  next: {}", self.next())
    }
}

impl Unconnected {
    fn next(&self) -> &'static str {
        match (&self.fault, self.starts) {
            (
                client::Error::Transport(LinkError::Refused {
                    status: 401 | 403, ..
                }),
                _,
            ) => {
                "give its token by --token, by the environment variable OUTLAST_TOKEN, or by `headers` in the configuration file"
            }
            (client::Error::Transport(LinkError::Refused { status: 404, .. }), _) => {
                "check the path of the URL; an Outlast server answers at /mcp"
            }
            (client::Error::Transport(LinkError::Unreachable(_)), Starts::Elsewhere) => {
                "check that a server listens there"
            }
            (client::Error::Transport(LinkError::Unreachable(_)), _) => {
                "check the spelling of the command and that it is on the PATH"
            }
            (client::Error::Transport(LinkError::Ended { .. }), _) => {
                "run the command by itself to see why it ends; --verbose shows what it writes"
            }
            (_, Starts::Elsewhere) => "check that the URL is that of an MCP server",
            _ => "check that the command starts an MCP server on its standard input and output",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(starts: Starts, endpoint: &str, fault: client::Error) -> String {
        Unconnected {
            endpoint: endpoint.to_owned(),
            starts,
            fault,
        }
        .to_string()
    }

    #[test]
    fn the_text_names_the_url_or_the_command_and_a_next_step() {
        let refused = |status, detail: &str| {
            client::Error::Transport(LinkError::Refused {
                status,
                detail: detail.into(),
                retry_after: None,
                error: None,
            })
        };
        let url = "http://127.0.0.1:9/mcp";
        let unreachable =
            client::Error::Transport(LinkError::Unreachable("Connection refused".into()));
        let page = "<html>\n<p>\u{1b}[31mHello";
        for (found, expected) in [
            (
                text(Starts::Elsewhere, url, unreachable),
                "cannot connect to http://127.0.0.1:9/mcp: Connection refused\n  next: check that a server listens there",
            ),
            (
                text(Starts::Elsewhere, url, refused(404, page)),
                "http://127.0.0.1:9/mcp answers with HTTP status 404\n  next: check the path of the URL; an Outlast server answers at /mcp",
            ),
            (
                text(
                    Starts::ByCommand,
                    "sleep 100",
                    client::Error::TimedOut(Duration::from_secs(60)),
                ),
                "the command `sleep 100` has not answered for 60 s\n  next: check that the command starts an MCP server on its standard input and output",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
