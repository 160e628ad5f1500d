//! `cargo xtask test`: everything CI runs.

use crate::part::{Part, run_all};
use crate::{cluster, conformance, coverage, dist, library, peers, programs, schemas, words};

pub(crate) fn run(only: &[String]) -> Result<(), String> {
    let mut parts = parts();
    if let Some(unknown) = only
        .iter()
        .find(|name| parts.iter().all(|part| part.name != *name))
    {
        let known: Vec<_> = parts.iter().map(|part| part.name).collect();
        return Err(format!(
            "no part is named {unknown}; there are: {}",
            known.join(", ")
        ));
    }
    parts.retain(|part| only.is_empty() || only.iter().any(|name| name == part.name));
    run_all(parts)
}

fn parts() -> Vec<Part> {
    vec![
        Part::cargo("format", &["fmt", "--all", "--check"], &[]),
        Part {
            name: "words",
            work: Box::new(|| words::run(&[])),
        },
        Part::cargo(
            "lints",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ],
            &[],
        ),
        Part::cargo(
            "docs",
            &["doc", "--workspace", "--no-deps", "--all-features"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        ),
        // Before the tests, because it writes a `Cargo.lock` next to its crate.
        Part {
            name: "library",
            work: Box::new(|| library::run(&[])),
        },
        Part {
            name: "tests",
            work: Box::new(programs::run),
        },
        Part::cargo(
            "races",
            &[
                "test",
                "--package",
                "outlast-engine",
                "--test",
                "races",
                "--target-dir",
                "target/races",
            ],
            &[
                ("RUSTFLAGS", "--cfg shuttle"),
                ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
            ],
        ),
        Part {
            name: "peers",
            work: Box::new(|| peers::run(&[])),
        },
        Part {
            name: "conformance",
            work: Box::new(|| conformance::run(&[])),
        },
        Part {
            name: "cluster",
            work: Box::new(cluster::run),
        },
        Part {
            name: "schemas",
            work: Box::new(|| schemas::run(&[])),
        },
        Part {
            name: "dist",
            work: Box::new(dist::run_short),
        },
        // Last, because it reads the records of the other parts.
        Part {
            name: "coverage",
            work: Box::new(|| coverage::run(&[])),
        },
    ]
}
