//! Durability by dying: at least 200 kills, each followed by a check of everything that was
//! acknowledged.
//!
//! `DEATH_SEED=n` replays the load and the moments of a run, as far as the scheduler allows.

use std::path::Path;
use std::time::Duration;

use outlast_testkit::death::{ChildProcess, Death, Journal, SeededRandom};

const DEATH_CHILD: &str = env!("CARGO_BIN_EXE_death_child");

#[test]
fn promises_hold_after_a_kill_at_a_random_moment() {
    let plan = |_: u64, random: &mut SeededRandom| {
        (
            Death::After(Duration::from_millis(15 + random.below(150))),
            None,
        )
    };
    // A child on a busy machine gets little done before it is killed.
    kill_children("random", 100, 10, 1_000, plan);
}

#[test]
fn promises_hold_when_death_comes_before_the_nth_commit() {
    kill_children("before-commit", 40, 8, 200, |n, _| {
        (
            Death::At {
                point: "before-commit",
                nth: n % 40 + 1,
            },
            None,
        )
    });
}

#[test]
fn promises_hold_when_death_comes_between_commit_and_visibility() {
    kill_children("after-commit", 40, 8, 200, |n, _| {
        (
            Death::At {
                point: "after-commit",
                nth: n % 40 + 1,
            },
            None,
        )
    });
}

#[test]
fn promises_hold_when_death_comes_between_visibility_and_acknowledgement() {
    kill_children("before-ack", 30, 6, 200, |n, _| {
        (
            Death::At {
                point: "before-ack",
                nth: n % 30 + 1,
            },
            None,
        )
    });
}

#[test]
fn promises_hold_when_death_comes_between_acknowledgement_and_notice() {
    kill_children("before-notify", 30, 6, 200, |n, _| {
        (
            Death::At {
                point: "before-notify",
                nth: n % 30 + 1,
            },
            None,
        )
    });
}

#[test]
fn promises_hold_on_a_disk_that_fails_and_recovers() {
    kill_children("trouble", 30, 5, 300, |n, random| {
        let at = 1 + random.below(30);
        let trouble = if n % 2 == 0 {
            format!("fsync@{at}")
        } else {
            format!("full@{at}")
        };
        (
            Death::After(Duration::from_millis(200 + random.below(300))),
            Some(trouble),
        )
    });
}

/// Starts and kills `count` children, `children_per_store` of them on each store. Checks at least
/// `min_facts` acknowledged facts.
fn kill_children(
    name: &str,
    count: u64,
    children_per_store: u64,
    min_facts: usize,
    plan: impl Fn(u64, &mut SeededRandom) -> (Death, Option<String>),
) {
    let seed = seed();
    println!("{name}: DEATH_SEED={seed}");
    let mut random = SeededRandom::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (mut facts, mut unplanned) = (0, 0);
    let mut folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::default();
    for n in 0..count {
        if n % children_per_store == 0 {
            facts += journal.facts();
            folder = tempfile::tempdir().expect("a folder");
            journal = Journal::default();
        }
        let path = folder.path().join("tasks.db");
        let (death, trouble) = plan(n, &mut random);
        let child = ChildProcess::start(
            Path::new(DEATH_CHILD),
            &path,
            random.next(),
            death,
            trouble.as_deref(),
            None,
        )
        .expect("the child starts");
        let ended = child.end().expect("the child can be watched");
        unplanned += u64::from(!ended.as_planned);
        let checked = journal
            .note(ended.acks)
            .and_then(|()| runtime.block_on(journal.check(&path)));
        if let Err(broken) = checked {
            let kept = folder.keep();
            panic!(
                "{name}, child {n}, {death:?}, {trouble:?}, DEATH_SEED={seed}: {broken:?}; the store is in {kept:?}"
            );
        }
    }
    facts += journal.facts();
    println!("{name}: {count} deaths, {facts} acknowledged facts checked");
    assert_eq!(unplanned, 0, "children that did not die as planned");
    assert!(
        facts >= min_facts,
        "{name}: only {facts} facts were checked"
    );
}

fn seed() -> u64 {
    match std::env::var("DEATH_SEED") {
        Ok(seed) => seed.parse().expect("DEATH_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .expect("a clock that was set");
            now.as_nanos() as u64
        }
    }
}
