//! The child of the death tests: `death_child PATH SEED [die=POINT@N] [trouble=KIND@N] [ttl=MS]`.
//!
//! It runs until it is killed, or aborts when it reaches a named point for the n-th time. With
//! `trouble`, the disk fails at the n-th commit: `fsync` once, `full` for 20 commits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_store::SqliteOptions;
use outlast_store::sqlite::{DiskFailure, FailPoint, FailPoints};
use outlast_testkit::death;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().expect("a path"));
    let seed = args
        .next()
        .and_then(|seed| seed.parse().ok())
        .expect("a seed");
    let mut failures = Failures::default();
    let mut ttl = None;
    for arg in args {
        let (what, how) = arg.split_once('=').expect("what=how");
        match what {
            "die" => failures.die = Some(plan(how)),
            "trouble" => failures.trouble = Some(plan(how)),
            "ttl" => ttl = Some(how.parse().expect("a number")),
            other => panic!("unknown argument {other}"),
        }
    }
    let failures = Arc::new(failures);
    let before_notify = {
        let failures = failures.clone();
        Arc::new(move || failures.abort_at("before-notify"))
    };
    let options = SqliteOptions::default().with_fail_points(failures);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(death::work(&path, seed, ttl, options, before_notify));
}

/// `POINT@N`.
fn plan(text: &str) -> (String, u64) {
    let (point, nth) = text.split_once('@').expect("POINT@N");
    (point.to_owned(), nth.parse().expect("a number"))
}

#[derive(Debug, Default)]
struct Failures {
    die: Option<(String, u64)>,
    trouble: Option<(String, u64)>,
    passed: AtomicU64,
    commits: AtomicU64,
}

impl Failures {
    /// Aborts if this is the point, for the n-th time.
    fn abort_at(&self, name: &str) {
        if let Some((point, nth)) = &self.die
            && point == name
            && self.passed.fetch_add(1, Ordering::Relaxed) + 1 == *nth
        {
            // No destructor runs, and nothing is flushed.
            std::process::abort();
        }
    }
}

impl FailPoints for Failures {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        let name = match point {
            FailPoint::BeforeCommit => "before-commit",
            FailPoint::AfterCommit => "after-commit",
            FailPoint::BeforeAck => "before-ack",
            FailPoint::BeforeReopen => return None,
        };
        self.abort_at(name);
        match (&self.trouble, point) {
            (Some((kind, nth)), FailPoint::BeforeCommit) => {
                let commit = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
                match kind.as_str() {
                    "fsync" if commit == *nth => Some(DiskFailure::SyncError),
                    "full" if (*nth..nth + 20).contains(&commit) => Some(DiskFailure::Full),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
