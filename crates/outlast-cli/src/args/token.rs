//! The arguments of `outlast token`.

use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

#[derive(Debug, Parser)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it. A running gateway admits it within a second.
    Add(TokenAdd),
    /// List the names and scopes of the tokens.
    List(TokenList),
    /// Remove a token. A running gateway refuses it within a second.
    Revoke(TokenRevoke),
}

#[derive(Debug, Parser)]
pub(crate) struct TokenAdd {
    /// The name of its owner: tasks of this token belong to that name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What the token may do: some of read, call, cancel, answer, operate
    /// [default: all but operate].
    #[arg(long, value_name = "SCOPES", conflicts_with_all = ["read_only", "operator"])]
    pub(crate) scopes: Option<String>,
    /// The token only reads: lists, tasks and results.
    #[arg(long, conflicts_with = "operator")]
    pub(crate) read_only: bool,
    /// The token has every scope, also for the tasks of other owners.
    #[arg(long)]
    pub(crate) operator: bool,
    #[command(flatten)]
    pub(crate) store: TokenStore,
}

#[derive(Debug, Parser)]
pub(crate) struct TokenList {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: TokenStore,
}

#[derive(Debug, Parser)]
pub(crate) struct TokenRevoke {
    /// The name of the token.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) store: TokenStore,
}

#[derive(Debug, Parser)]
pub(crate) struct TokenStore {
    /// The store of the gateway: `sqlite:PATH` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
}
