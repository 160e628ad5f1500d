//! A benchmark consists of parts, each of which adds rows to one table.

use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::args::{Benchmark, Options};
use crate::machine::{self, MachineLoad};
use crate::table::Table;
use crate::{BenchResult, gateway, http, store};

/// The environment of all measurements.
pub(crate) struct Environment {
    /// The load generator has one thread, so that the server has at least the other core.
    pub(crate) runtime: Runtime,
    pub(crate) scale: Scale,
    pub(crate) folder: TempDir,
    pub(crate) options: Options,
}

/// The size of the measurements.
pub(crate) struct Scale {
    /// The number of retained tasks while requests are measured.
    pub(crate) many: usize,
    /// The number of retained tasks for memory and opening.
    pub(crate) most: usize,
    pub(crate) rounds: usize,
    /// How long each side runs in a round.
    pub(crate) turn: Duration,
}

/// A name, and the function that measures the part.
type Part = (
    &'static str,
    fn(&Environment, &mut Table) -> BenchResult<()>,
);

/// Runs the selected parts and prints the table, with the load of the machine.
pub(crate) fn run(benchmark: Benchmark, options: Options) -> BenchResult<()> {
    let parts: &[Part] = match benchmark {
        Benchmark::Http => &[
            ("v1", http::v1),
            ("v2", http::v2),
            ("retained", http::retained),
        ],
        Benchmark::Gateway => &[
            ("calls", gateway::calls),
            ("url", gateway::calls_to_a_url),
            ("tasks", gateway::tasks),
        ],
        Benchmark::Store => &[
            ("lifecycles", store::lifecycles),
            ("retained", store::retained),
        ],
        Benchmark::Bars => &[
            ("v1", http::v1_bars),
            ("v2", http::v2_bars),
            ("retained", http::retained),
            ("store", store::retained),
        ],
    };
    machine::touch_memory();
    let environment = Environment {
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
        scale: Scale::new(options.quick),
        folder: tempfile::Builder::new()
            .prefix("outlast-bench")
            .tempdir_in(&options.folder)?,
        options,
    };
    let mut table = Table::default();
    for (name, part) in parts {
        if !environment.options.includes(name) {
            continue;
        }
        eprintln!("== {name} ==");
        let watch = MachineLoad::start();
        part(&environment, &mut table)?;
        table.note(format!("{name}: {}", watch.report()));
    }
    print!("{table}");
    if let Some(out) = &environment.options.out {
        std::fs::write(out, table.to_string())?;
    }
    Ok(())
}

impl Scale {
    fn new(quick: bool) -> Self {
        if quick {
            Self {
                many: 10_000,
                most: 100_000,
                rounds: 3,
                turn: Duration::from_millis(400),
            }
        } else {
            Self {
                many: 100_000,
                most: 1_000_000,
                rounds: 7,
                turn: Duration::from_millis(1_000),
            }
        }
    }
}
