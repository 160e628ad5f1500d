//! What the engine and its servers cost, beside the limits of the machine and beside peers, in one run.
//!
//! Every figure alternates between us and what it is compared with, round by round, and the median of
//! the rounds is told. Timings live here and in no test. The table goes to stdout, talk to stderr.

mod args;
mod awake;
mod child;
mod expiry;
mod gateway;
mod http;
mod lifecycle;
mod load;
mod lookup;
mod machine;
mod open;
mod parts;
mod rawlog;
mod retained;
mod rmcp;
mod rounds;
mod scale;
mod single;
mod subject;
mod table;

use std::process::ExitCode;

use args::Args;
use parts::{Part, measure};
use scale::Scale;
use table::Table;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let done = Args::read(std::env::args().skip(1)).and_then(|args| match args {
        Args::Awake => awake::run(),
        Args::Engine(bench) => run(&bench),
        Args::HttpV1(bench) => http::v1(&bench),
        Args::HttpV2(bench) => http::v2(&bench),
        Args::Gateway(bench) => gateway::run(&bench),
        Args::Serve(server) => http::serve::run(server),
        Args::Child(job) => child::run(job),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("outlast-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What goes wrong in a benchmark ends it; the text says what it was.
type Done<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn run(args: &args::Bench) -> Done<()> {
    let scale = Scale::new(args.quick);
    machine::warm_up(scale.memory)?;
    let folder = args.scratch()?;
    let (runtime, lone) = (runtime(WORKERS)?, runtime(1)?);
    let parts: [Part<Stage<'_>>; 7] = [
        ("memory", lifecycle::in_memory),
        ("disk", lifecycle::on_disk),
        ("lookup", lookup::rows),
        ("expiry", expiry::rows),
        ("single", single::rows),
        ("retained", retained::rows),
        ("open", open::rows),
    ];
    let stage = Stage {
        runtime: &runtime,
        lone: &lone,
        scale: &scale,
        folder: folder.path(),
    };
    measure(args, &stage, Table::default(), &parts)
}

/// What every figure is measured on.
pub(crate) struct Stage<'a> {
    pub(crate) runtime: &'a Runtime,
    /// Has one thread, for one caller: nothing changes threads, and nobody waits by going round.
    pub(crate) lone: &'a Runtime,
    pub(crate) scale: &'a Scale,
    pub(crate) folder: &'a std::path::Path,
}

impl Stage<'_> {
    /// The runtime for so many callers.
    pub(crate) fn runtime_for(&self, callers: usize) -> &Runtime {
        match callers {
            1 => self.lone,
            _ => self.runtime,
        }
    }
}

pub(crate) fn runtime(workers: usize) -> Done<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?)
}

/// Threads that run futures, for us and for the peer.
pub(crate) const WORKERS: usize = 2;
