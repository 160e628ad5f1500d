//! The cost of the HTTP server, the gateway and the store, each compared with a limit of the
//! machine and with a peer.
//!
//! Each row alternates between our side and the others, round by round, and reports the median of
//! the rounds. Timings are measured here and in no test. The table goes to stdout, progress to
//! stderr.

mod args;
mod environment;
mod gateway;
mod http;
mod machine;
mod rawlog;
mod rounds;
mod store;
mod table;

use std::process::ExitCode;

use args::BenchArgs;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let done = BenchArgs::read(std::env::args().skip(1)).and_then(|args| match args {
        BenchArgs::Bench(bench, options) => environment::run(bench, options),
        BenchArgs::Serve(server) => http::serve::run(server),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("outlast-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Any error ends a benchmark; its text says what failed.
type BenchResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A runtime with the same number of threads for every measured server.
pub(crate) fn runtime() -> BenchResult<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()?)
}

const WORKER_THREADS: usize = 2;
