//! The arguments of `outlast nodes`.

use clap::Parser;
use outlast::store::StoreUrl;

#[derive(Debug, Parser)]
pub(crate) struct Nodes {
    /// The database that the nodes share: `postgres://USER@HOST/DATABASE`.
    #[arg(long, value_name = "URL")]
    pub(crate) store: StoreUrl,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
