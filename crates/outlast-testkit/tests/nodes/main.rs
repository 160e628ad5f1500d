//! Three nodes on one database under load, while nodes are killed and paused, connections are cut, and
//! the database crashes. Then every acknowledgement is checked.
//!
//! `OUTLAST_NODES_SECONDS` sets how long it runs and `OUTLAST_NODES_SEED` repeats the events of a run.

mod check;
mod cluster;
mod spec;

use std::ops::Range;
use std::time::{Duration, Instant};

use outlast_testkit::death::SeededRandom;

use cluster::Cluster;

#[test]
fn nothing_is_lost_or_run_twice_while_nodes_and_database_fail() {
    let seconds = setting("OUTLAST_NODES_SECONDS").unwrap_or(60);
    let seed = setting("OUTLAST_NODES_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("OUTLAST_NODES_SEED={seed} repeats the events");
    let mut random = SeededRandom::new(seed);
    let mut cluster = Cluster::start(&mut random);
    cluster.wait_for_open_tasks();
    let end = Instant::now() + Duration::from_secs(seconds);
    // Each kind of event at least once: first the longest.
    cluster.pause(0, PAUSE);
    cluster.run_for(Duration::from_secs(3));
    cluster.kill(1);
    cluster.run_for(Duration::from_secs(4));
    cluster.crash_database();
    cluster.run_for(Duration::from_secs(4));
    cluster.cut_connections();
    let mut next_crash = Instant::now() + random_seconds(&mut random, CRASH_INTERVALS_SECONDS);
    while Instant::now() < end {
        let pause = 1_000 + random.below(5_000);
        cluster.run_for(Duration::from_millis(pause));
        cluster.count_open_tasks();
        if next_crash <= Instant::now() {
            cluster.crash_database();
            next_crash = Instant::now() + random_seconds(&mut random, CRASH_INTERVALS_SECONDS);
            continue;
        }
        match random.below(6) {
            0..3 => cluster.kill(random.below(3) as usize),
            3 => cluster.pause(
                random.below(3) as usize,
                PAUSE.min(random_seconds(&mut random, 5..30)),
            ),
            _ => cluster.cut_connections(),
        }
    }
    let finished = cluster.finish();
    let counts = check::all(&finished);
    println!("{}; {counts}", finished.events);
    assert!(counts.tasks > MIN_OPEN_TASKS, "{counts}");
    // Fewer are open for some seconds after events that end many of them.
    let open = finished.events.median_open_tasks();
    assert!(open >= MIN_OPEN_TASKS, "{open} tasks were open");
}

fn random_seconds(random: &mut SeededRandom, range: Range<u64>) -> Duration {
    let span = range.end - range.start;
    Duration::from_secs(range.start + random.below(span))
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is not a number")),
    )
}

/// How many tasks are open while nodes and database fail.
const MIN_OPEN_TASKS: usize = 1_000;

/// The time between two crashes of the database.
const CRASH_INTERVALS_SECONDS: Range<u64> = 5..41;

/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(30);
