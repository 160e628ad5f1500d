//! The gateway: what it adds to a call and to a task, beside the same upstream called directly and beside gateways that we
//! did not write, and what a thousand tasks at once cost it.

mod pipe;
mod rows;
mod sides;
mod waves;

use std::path::PathBuf;

use tokio::runtime::Runtime;

use crate::Done;
use crate::args::Bench;
use crate::parts::{Part, measure};
use crate::scale::Scale;
use crate::table::Table;

/// What all rows are measured with.
struct Stage {
    runtime: Runtime,
    scale: Scale,
    folder: tempfile::TempDir,
    /// Our command line.
    outlast: PathBuf,
    /// The interpreter that has `mcp-proxy`.
    mcp_proxy: PathBuf,
    /// The script of `supergateway`.
    supergateway: PathBuf,
}

pub(crate) fn run(args: &Bench) -> Done<()> {
    let stage = Stage {
        // The generator gets one thread, so that the gateway has at least the other core.
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
        scale: Scale::new(args.quick),
        folder: args.scratch()?,
        outlast: args.program("outlast")?.into(),
        mcp_proxy: args.program("mcp-proxy")?.into(),
        supergateway: args.program("supergateway")?.into(),
    };
    let parts: [Part<Stage>; 5] = [
        ("call", rows::calls),
        ("modern", rows::modern_calls),
        ("url", rows::at_a_url),
        ("lives", rows::lives),
        ("waves", waves::rows),
    ];
    measure(args, &stage, Table::of_peers(), &parts)
}
