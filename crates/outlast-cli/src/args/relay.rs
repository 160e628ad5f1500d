//! What can be typed for a host's own configuration file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use outlast::store::StoreUrl;

use super::Logs;

#[derive(Debug, Parser)]
#[command(after_help = STDIO_HELP)]
pub(crate) struct Stdio {
    /// What the gateway does differently, as the `outlast` object of a configuration file.
    #[arg(long, value_name = "JSON")]
    pub(crate) settings: Option<String>,
    /// Where tasks live [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// What the gateway logs, if it is started here.
    #[command(flatten)]
    pub(crate) logs: Logs,
    /// Take the server from this file (`mcpServers`, or `servers` as VS Code writes it), with its settings.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["settings", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// Which server of the file [default: the only one].
    #[arg(value_name = "NAME", requires = "config")]
    pub(crate) name: Option<String>,
    /// The command that starts the server on its standard input and output.
    #[arg(last = true, value_name = "CMD", required_unless_present = "config")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Parser)]
pub(crate) struct Background {
    /// Where tasks live.
    #[arg(long, value_name = "URL")]
    pub(crate) store: StoreUrl,
    /// How long to stay when there is nothing to do, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    pub(crate) idle_ms: u64,
    #[command(flatten)]
    pub(crate) logs: Logs,
}

const STDIO_HELP: &str = "\
In a host's mcp.json, put `outlast stdio --` before the command of a server:

  { \"mcpServers\": { \"files\": { \"command\": \"outlast\", \"args\": [\"stdio\", \"--\", \"npx\", \"-y\", \"some-server\"] } } }

The gateway runs in the background, is shared by all windows, and ends when it has had nothing to do for a minute.";
