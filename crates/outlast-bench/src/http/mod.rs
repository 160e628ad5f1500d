//! `http-v1` and `http-v2`: what our HTTP server costs, beside the least that one can cost and beside peers.
//!
//! Judged is the processor time of the server process for one deed, which a busy machine disturbs least. One
//! load generator speaks to all: keep-alive HTTP/1.1, one connection for each client, each client does one
//! deed after the other. Servers are processes of their own, new for every row of rounds.

pub(crate) mod client;
pub(crate) mod dialect;
mod latency;
mod rows;
pub(crate) mod serve;
pub(crate) mod target;

use std::path::PathBuf;

use dialect::Generation;
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
    /// How our server is spoken to.
    generation: Generation,
    /// The server on the TypeScript SDK, if it is there.
    typescript: Option<PathBuf>,
}

/// Measures the server as clients of V1 meet it.
pub(crate) fn v1(args: &Bench) -> Done<()> {
    let parts: [Part<Stage>; 7] = [
        ("lives", rows::lives),
        ("typescript", rows::beside_typescript),
        ("get", rows::gets),
        ("working", rows::looks),
        ("call", rows::calls),
        ("retained", rows::with_many_retained),
        ("blocked", latency::rows),
    ];
    run(args, Generation::V1, &parts)
}

/// Measures the server as clients of V2 meet it.
pub(crate) fn v2(args: &Bench) -> Done<()> {
    let parts: [Part<Stage>; 5] = [
        ("lives", rows::lives),
        ("get", rows::gets),
        ("working", rows::looks),
        ("call", rows::calls),
        ("retained", rows::with_many_retained),
    ];
    run(args, Generation::V2, &parts)
}

fn run(args: &Bench, generation: Generation, parts: &[Part<Stage>]) -> Done<()> {
    let stage = Stage {
        // The generator gets one thread, so that the server has at least the other core.
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
        scale: Scale::new(args.quick),
        folder: args.scratch()?,
        generation,
        typescript: args.program("typescript").ok().map(Into::into),
    };
    measure(args, &stage, Table::default(), parts)
}
