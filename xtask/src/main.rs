//! Project tasks: `cargo xtask help` lists them.

mod bench;
mod browser;
mod check;
mod cluster;
mod conformance;
mod coverage;
mod debian;
mod dist;
mod gateways;
mod library;
mod npm;
mod part;
mod peers;
mod programs;
mod python;
mod queue;
mod record;
mod restarts;
mod schemas;
mod servers;
mod soak;
mod test;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let chore = args.next().unwrap_or_else(|| "help".into());
    let args: Vec<String> = args.collect();
    let done = match chore.as_str() {
        "test" => test::run(&args),
        "bench" => bench::run(&args),
        "soak" => soak::run(&args),
        "schemas" => schemas::run(&args),
        "words" => words::run(&args),
        // A run of all peers is recorded for `coverage`.
        "peers" if args.is_empty() => test::run(&[chore]),
        "peers" => peers::run(&args),
        "coverage" => coverage::run(&args),
        "conformance" => conformance::run(&args),
        // Recorded for `coverage`.
        "cluster" => test::run(&[chore]),
        "dist" => dist::run(&args),
        "library" => library::run(&args),
        // Cargo starts test programs with it; see programs.rs.
        "observe" => return exit_code(programs::observe(&args)),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => Err(format!("no chore is named {other}\n\n{HELP}")),
    };
    exit_code(done.map(|()| ExitCode::SUCCESS))
}

fn exit_code(done: Result<ExitCode, String>) -> ExitCode {
    done.unwrap_or_else(|why| {
        eprintln!("xtask: {why}");
        ExitCode::FAILURE
    })
}

const HELP: &str = "\
cargo xtask test              everything CI runs: format, words, lints, docs, library, tests, races, peers, conformance, cluster, schemas, dist, coverage
cargo xtask test PART...      only these parts (format words lints docs library tests races peers conformance cluster schemas dist coverage)
cargo xtask soak --minutes N  10,000 images of a loss of power, then load with kills for N minutes; checks every promise (default 5)
cargo xtask soak images       the images alone
cargo xtask soak gateway      every kind of client, server and way with every event, and the gateway killed in every state of each
cargo xtask bench http        the cost of the HTTP server to V1 and V2 clients, beside a bare endpoint and rmcp (--quick, --out FILE)
cargo xtask bench gateway     what the gateway adds to a call and a task, beside two other gateways (--quick, --out FILE)
cargo xtask bench store       durable lifecycles beside a raw log; memory, disk and opening time of retained tasks (--quick, --out FILE)
cargo xtask bench forwarding  what a request costs that one node forwards to another (--quick)
cargo xtask bench bars        the rows of http and store that have a bar, as ratios in one run (--quick, --out FILE)
cargo xtask peers             real clients talk to the sample server, our client to real servers, both through the gateway
cargo xtask peers PART...     only these parts (clients inspector servers gateways restarts queue browser)
cargo xtask conformance       the official suite against our fixtures, held against a strict list
cargo xtask cluster           the official suite and real clients with three nodes on PostgreSQL behind nginx
cargo xtask coverage          compares docs/coverage.md with docs/checklist.md and with the tests that passed in the last run
cargo xtask dist              the packages for this machine in target/packages: archive, npm packages, wheel
cargo xtask dist --check      the same, installs them into an empty folder, and uses them through a kill and a return
cargo xtask library           the library as other crates use it: features, a crate outside the workspace, the packages, the public API
cargo xtask library CHECK...  only these checks (features outside packages api verify)
cargo xtask library --update-api   writes the public API into docs/public-api
cargo xtask words [PATH...]   refuses the words that CONTRIBUTING.md lists, in comments, messages and documents
cargo xtask schemas           checks the held JSON Schemas against the published packages
";
