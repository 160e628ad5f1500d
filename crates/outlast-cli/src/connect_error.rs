//! Why a server could not be connected to. The message names the URL or the command, the cause, and
//! a next step.

use outlast::client;
use outlast::transport::link::TransportError;
use outlast::wire::codes;

use crate::target::StartedBy;
use crate::terminal::clean;

/// A failed connection.
#[derive(Debug)]
pub(crate) struct ConnectError {
    /// The URL, or the command with its arguments.
    pub(crate) endpoint: String,
    pub(crate) starts: StartedBy,
    pub(crate) fault: client::Error,
    /// The last lines that the command printed and that are not messages.
    pub(crate) printed: Vec<String>,
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoint = clean(&self.endpoint);
        let what = match self.starts {
            StartedBy::Other => endpoint,
            StartedBy::CommandLine | StartedBy::Configuration => {
                format!("the command `{endpoint}`")
            }
        };
        match &self.fault {
            client::Error::Peer(error) if error.code == codes::METHOD_NOT_FOUND => {
                write!(
                    f,
                    "{what} is not an MCP server: it does not know `initialize`"
                )?;
            }
            client::Error::Transport(TransportError::Unreachable(cause)) => {
                let verb = match self.starts {
                    StartedBy::Other => "connect to",
                    StartedBy::CommandLine | StartedBy::Configuration => "start",
                };
                write!(f, "cannot {verb} {what}: {}", clean(essence(cause)))?;
            }
            client::Error::Transport(TransportError::Ended { status, .. }) => {
                write!(
                    f,
                    "{what} is not an MCP server or did not start: it ended before it answered ({status})"
                )?;
            }
            client::Error::Transport(TransportError::Refused { status, detail, .. }) => {
                write!(f, "{what} answers with HTTP status {status}")?;
                let detail = clean(detail);
                // HTML is not readable on a terminal.
                if !detail.is_empty() && !detail.trim_start().starts_with('<') {
                    write!(f, ": {detail}")?;
                }
            }
            client::Error::TimedOut(limit) => {
                let seconds = limit.as_secs();
                match self.starts {
                    StartedBy::Other => write!(f, "{what} has not answered for {seconds} s")?,
                    StartedBy::CommandLine | StartedBy::Configuration => write!(
                        f,
                        "{what} is not an MCP server or is stuck: it has not answered for {seconds} s"
                    )?,
                }
            }
            fault => write!(f, "cannot connect to {what}: {}", clean(&fault.to_string()))?,
        }
        self.write_printed(f)?;
        write!(f, "\n  next: {}", self.next())
    }
}

impl ConnectError {
    /// Whether no server runs there, in either era.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(
            self.fault,
            client::Error::Transport(TransportError::Unreachable(_) | TransportError::Ended { .. })
        )
    }

    /// Quotes the output of the command, which often says why it is not a server.
    fn write_printed(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ran = !matches!(
            self.fault,
            client::Error::Transport(TransportError::Unreachable(_))
        );
        match &self.printed[..] {
            [] if ran && self.starts != StartedBy::Other => write!(f, "\n  it printed nothing"),
            [] => Ok(()),
            [line] => write!(f, "\n  it printed: {}", clean(line)),
            lines => {
                write!(f, "\n  the end of what it printed:")?;
                let mut lines = lines.iter();
                lines.try_for_each(|line| write!(f, "\n  | {}", clean(line)))
            }
        }
    }

    fn next(&self) -> &'static str {
        match (&self.fault, self.starts) {
            (
                client::Error::Transport(TransportError::Refused {
                    status: 401 | 403, ..
                }),
                _,
            ) => {
                "give a token with --token, with the environment variable OUTLAST_TOKEN, or with `headers` in the configuration file"
            }
            (client::Error::Transport(TransportError::Refused { status: 404, .. }), _) => {
                "check the path of the URL; an Outlast server answers at /mcp"
            }
            (client::Error::Transport(TransportError::Unreachable(cause)), StartedBy::Other)
                if cause.contains(INVALID_URL) =>
            {
                "write a URL such as http://127.0.0.1:8040/mcp"
            }
            (client::Error::Transport(TransportError::Unreachable(cause)), StartedBy::Other)
                if cause.contains(UNKNOWN_HOST) =>
            {
                "check the spelling of the host name, and that this machine can resolve names"
            }
            (client::Error::Transport(TransportError::Unreachable(_)), StartedBy::Other) => {
                "check that a server listens there"
            }
            (client::Error::Transport(TransportError::Unreachable(_)), _) => {
                "check the spelling of the command and that it is on the PATH"
            }
            (client::Error::Transport(TransportError::Ended { .. }), _) => {
                "run the command without outlast to see why it ends; --verbose shows what it writes"
            }
            (_, StartedBy::Other) => "check that the URL is that of an MCP server",
            _ => "check that the command starts an MCP server on its standard input and output",
        }
    }
}

/// How the cause of a failure begins if the URL is not one.
const INVALID_URL: &str = "the URL is not valid";

/// How the cause of a failure begins if the host has no address.
const UNKNOWN_HOST: &str = "the host name cannot be resolved";

/// Returns the cause of a connection error, without the command or the origin, which the text
/// before it names.
fn essence(cause: &str) -> &str {
    if let Some((_, why)) = cause.split_once(" did not start: ") {
        return why;
    }
    match cause.split_once(": ") {
        Some((origin, why)) if origin.contains("://") => why,
        _ => cause,
    }
}

/// The cause of an error, for a text that says already that the server cannot be reached.
pub(crate) fn cause(fault: &client::Error) -> String {
    match fault {
        client::Error::Transport(TransportError::Unreachable(cause)) => cause.clone(),
        fault => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(starts: StartedBy, endpoint: &str, fault: client::Error) -> String {
        after_printing(starts, endpoint, fault, &[])
    }

    fn after_printing(
        starts: StartedBy,
        endpoint: &str,
        fault: client::Error,
        printed: &[&str],
    ) -> String {
        ConnectError {
            endpoint: endpoint.to_owned(),
            starts,
            fault,
            printed: printed.iter().map(|line| (*line).to_owned()).collect(),
        }
        .to_string()
    }

    #[test]
    fn the_output_of_a_wrong_command_is_quoted() {
        let ended = || {
            client::Error::Transport(TransportError::Ended {
                status: "exit status: 0".into(),
                printed: String::new(),
            })
        };
        let next = "\n  next: run the command without outlast to see why it ends; --verbose shows what it writes";
        let ends = "the command `x` is not an MCP server or did not start: it ended before it answered (exit status: 0)";
        for (printed, quoted) in [
            (&[][..], "\n  it printed nothing"),
            (&["\u{1b}[2Jhello"][..], "\n  it printed: \u{fffd}[2Jhello"),
            (
                &["one", "two\u{202e}"][..],
                "\n  the end of what it printed:\n  | one\n  | two\u{fffd}",
            ),
        ] {
            let text = after_printing(StartedBy::CommandLine, "x", ended(), printed);
            assert_eq!(text, format!("{ends}{quoted}{next}"));
        }
    }

    #[test]
    fn the_text_names_url_or_command_and_a_next_step() {
        let refused = |status, detail: &str| {
            client::Error::Transport(TransportError::Refused {
                status,
                detail: detail.into(),
                retry_after: None,
                error: None,
            })
        };
        let url = "http://127.0.0.1:9/mcp";
        let unreachable =
            |why: &str| client::Error::Transport(TransportError::Unreachable(why.into()));
        let refusal = unreachable("http://127.0.0.1:9: Connection refused");
        let unknown = unreachable("http://nowhere: the host name cannot be resolved: not known");
        let page = "<html>\n<p>\u{1b}[31mHello";
        for (found, expected) in [
            (
                text(StartedBy::Other, url, refusal),
                "cannot connect to http://127.0.0.1:9/mcp: Connection refused\n  next: check that a server listens there",
            ),
            (
                text(StartedBy::Other, "http://nowhere/mcp", unknown),
                "cannot connect to http://nowhere/mcp: the host name cannot be resolved: not known\n  next: check the spelling of the host name, and that this machine can resolve names",
            ),
            (
                text(StartedBy::Other, url, refused(404, page)),
                "http://127.0.0.1:9/mcp answers with HTTP status 404\n  next: check the path of the URL; an Outlast server answers at /mcp",
            ),
            (
                text(
                    StartedBy::CommandLine,
                    "sleep 100",
                    client::Error::TimedOut(Duration::from_secs(60)),
                ),
                "the command `sleep 100` is not an MCP server or is stuck: it has not answered for 60 s\n  it printed nothing\n  next: check that the command starts an MCP server on its standard input and output",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
