//! What can be typed about the gateway on this machine.

use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

#[derive(Debug, Parser)]
#[command(after_help = GATEWAY_HELP)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    pub(crate) command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show the gateway that runs: its process, URLs, windows, calls and servers. Fails if none runs.
    Status(GatewayStatus),
    /// Stop the gateway: no new work, 10 s for what runs; the rest is settled at the next start.
    Stop(GatewayStore),
    /// Print the log of the gateway in the background.
    Logs(GatewayLogs),
    /// Print the token for clients of `outlast serve`.
    Token(GatewayStore),
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayStore {
    /// Where its tasks live [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayStatus {
    #[command(flatten)]
    pub(crate) at: GatewayStore,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayLogs {
    #[command(flatten)]
    pub(crate) at: GatewayStore,
    /// How many of the last lines to print.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,
    /// Print new lines until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

const GATEWAY_HELP: &str = "\
Each store has one gateway: `outlast serve`, or one in the background that `outlast stdio` starts if none runs. After
`stop`, `outlast stdio` starts another when its host sends the next message.";
