//! The arguments of `outlast stdio` and of the gateway in the background.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use clap_complete::engine::ArgValueCompleter;
use outlast::store::StoreUrl;

use super::Logs;
use crate::completions;

#[derive(Debug, Parser)]
#[command(after_help = STDIO_HELP)]
pub(crate) struct Stdio {
    /// Settings for this server: the `outlast` object of a server in a configuration file.
    #[arg(long, value_name = "JSON")]
    pub(crate) settings: Option<String>,
    /// The store: `sqlite:PATH` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// What the gateway logs, if this command starts it.
    #[command(flatten)]
    pub(crate) logs: Logs,
    /// Use a server of this configuration file (`mcpServers`, or `servers` of VS Code), with its
    /// settings.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["settings", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// The name of the server in the configuration file [default: the only one].
    #[arg(
        value_name = "NAME",
        requires = "config",
        add = ArgValueCompleter::new(completions::servers)
    )]
    pub(crate) name: Option<String>,
    /// The command that starts the server, which speaks MCP on its standard input and output.
    #[arg(last = true, value_name = "CMD", required_unless_present = "config")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Parser)]
pub(crate) struct Background {
    /// The store.
    #[arg(long, value_name = "URL")]
    pub(crate) store: StoreUrl,
    /// How long to run without work, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    pub(crate) idle_ms: u64,
    #[command(flatten)]
    pub(crate) logs: Logs,
}

const STDIO_HELP: &str = "\
In the configuration file of a host, put `outlast stdio --` before the command of a server:

  \"files\": { \"command\": \"outlast\", \"args\": [\"stdio\", \"--\", \"npx\", \"-y\", \"some-server\"] }

The gateway runs in the background. All windows share it. It ends after one minute without work.";
