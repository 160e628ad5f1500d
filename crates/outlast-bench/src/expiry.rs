//! What the expiry of a task costs, with few and with many others retained.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_engine::{Clock, MemoryStore, Store, SystemClock};
use outlast_store::Sqlite;
use outlast_wire::Timestamp;

use crate::load::fill;
use crate::retained;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::subject::{Subject, owner};
use crate::table::{Bar, Row, Table, Unit, nanos};
use crate::{Done, Stage};

pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let sizes = [stage.scale.few, stage.scale.most];
    let mut memory = Vec::new();
    for size in sizes {
        let expiring = Expiring::on(stage, Arc::new(MemoryStore::new()))?;
        fill(stage.runtime, &expiring.subject, size, 16);
        memory.push(expiring);
    }
    compare(stage, "memory", sizes, &memory, table);
    drop(memory);
    let mut sqlite = Vec::new();
    for size in sizes {
        let path = retained::file(stage, size)?;
        let store = Sqlite::open_blocking(&path, Default::default())?;
        sqlite.push(Expiring::on(stage, Arc::new(store))?);
    }
    compare(stage, "SQLite", sizes, &sqlite, table);
    Ok(())
}

fn compare(
    stage: &Stage<'_>,
    store: &str,
    [few, most]: [usize; 2],
    kept: &[Expiring],
    table: &mut Table,
) {
    let rounds = Rounds::<2>::run(stage.scale.rounds, |side| {
        kept[side].expire(stage).expect("the store answers")
    });
    table.row(Row {
        figure: format!(
            "expiry of one task on {store}, {} retained; beside {}",
            count(most),
            count(few)
        ),
        ours: nanos(rounds.of(1)),
        other: nanos(rounds.of(0)),
        value: rounds.ratio(1, 0),
        unit: Unit::Ratio,
        bar: Bar::AtMost(2.0),
    });
}

/// An engine whose clock can be put forward.
struct Expiring {
    subject: Subject,
    ahead: Arc<Ahead>,
}

impl Expiring {
    fn on(stage: &Stage<'_>, store: Arc<dyn Store>) -> Done<Self> {
        let ahead = Arc::new(Ahead::default());
        let subject = stage.runtime.block_on(Subject::on(store, ahead.clone()))?;
        Ok(Self { subject, ahead })
    }

    /// Makes tasks that live shorter than the others, lets them expire, and tells how long that took
    /// for each, in nanoseconds.
    fn expire(&self, stage: &Stage<'_>) -> Done<f64> {
        let engine = &self.subject.engine;
        let retained = || stage.runtime.block_on(engine.usage(&owner()));
        let before = retained()?.retained;
        let short = self.subject.clone().lasting(TTL);
        fill(stage.runtime, &short, TASKS, 64);
        // The loop sleeps until the next deadline that it knows: one that is earlier wakes it, and then it
        // finds that the clock was put forward.
        let alarm = self.subject.clone().lasting(1);
        stage.runtime.block_on(alarm.create());
        let began = Instant::now();
        self.ahead.0.fetch_add(TTL, Ordering::SeqCst);
        while retained()?.retained > before {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(began.elapsed().as_nanos() as f64 / TASKS as f64)
    }
}

/// The machine's clock, put forward.
#[derive(Default)]
struct Ahead(AtomicU64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.0.load(Ordering::SeqCst))
    }
}

/// How many expire at once.
const TASKS: usize = 20_000;

/// How long they live: a minute, longer than it takes to make them.
const TTL: u64 = 60_000;
