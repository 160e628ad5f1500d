//! The arguments of `outlast store`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

#[derive(Debug, Parser)]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy a store to one file with every acknowledged task. A gateway may use the store at the
    /// same time.
    Backup(Backup),
    /// Copy a stopped store to an empty database, so that several gateways can share its tasks. The
    /// copy is compared with the store before it is kept.
    Copy(Copy),
}

#[derive(Debug, Parser)]
pub(crate) struct Copy {
    /// The store to copy: `sqlite:PATH`. No process may use it.
    #[arg(value_name = "FROM")]
    pub(crate) from: StoreUrl,
    /// The database: `postgres://USER@HOST/DATABASE`. Its schema must be empty or absent.
    #[arg(value_name = "TO")]
    pub(crate) to: StoreUrl,
}

#[derive(Debug, Parser)]
pub(crate) struct Backup {
    /// The file to write.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The store: `sqlite:PATH` [default: the gateway's store, or that of `outlast demo` if the
    /// gateway has none].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Replace FILE if it exists.
    #[arg(long)]
    pub(crate) force: bool,
}
