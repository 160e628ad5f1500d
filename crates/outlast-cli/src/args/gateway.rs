//! The arguments of `outlast gateway`.

use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

use super::whole_number;

#[derive(Debug, Parser)]
#[command(after_help = GATEWAY_HELP)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    pub(crate) command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show the running gateway: its process, URLs, connected hosts, calls and servers. Fails if no
    /// gateway runs.
    Status(GatewayStatus),
    /// Stop the gateway: no new work, 10 s for running calls. The next start recovers the rest.
    Stop(GatewayStore),
    /// Print the log of the gateway in the background.
    Logs(GatewayLogs),
    /// Print the token for clients of `outlast serve`.
    Token(GatewayStore),
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayStore {
    /// The store of the gateway: `sqlite:PATH` [default: a file in your data directory].
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
    /// How many lines to print, from the end of the log.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = whole_number::<usize>)]
    pub(crate) lines: usize,
    /// Keep printing new lines until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

const GATEWAY_HELP: &str = "\
Each store has one gateway: `outlast serve`, or a gateway in the background that `outlast stdio`
starts if none runs. After `stop`, `outlast stdio` starts another one when its host sends the next
message.";
