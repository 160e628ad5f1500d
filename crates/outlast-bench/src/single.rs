//! What one creation costs when nobody else writes: commits, and time beside one append to a raw log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use outlast_store::SqliteOptions;
use outlast_store::sqlite::{DiskFailure, FailPoint, FailPoints};

use crate::rawlog::RawLog;
use crate::retained;
use crate::rounds::Rounds;
use crate::subject::Subject;
use crate::table::{Bar, Row, Table, Unit, nanos};
use crate::{Done, Stage};

pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let commits = Arc::new(Commits::default());
    let options = SqliteOptions {
        fail_points: Some(commits.clone()),
        ..SqliteOptions::default()
    };
    let path = stage.folder.join("single.db");
    let subject = stage.runtime.block_on(Subject::sqlite(&path, options))?;
    let subject = subject.waiting();
    stage.runtime.block_on(subject.create());
    let before = commits.0.load(Ordering::SeqCst);
    stage.runtime.block_on(subject.create());
    let one = commits.0.load(Ordering::SeqCst) - before;
    table.row(Row {
        figure: "commits (one sync each) until a lone creation is acknowledged".to_owned(),
        ours: one.to_string(),
        other: "1".to_owned(),
        value: one as f64,
        unit: Unit::Commits,
        bar: Bar::AtMost(1.0),
    });
    let log = RawLog::start(&stage.folder.join("single.log"), retained::bytes(stage)?)?;
    let rounds = Rounds::<2>::run(stage.scale.rounds, |side| {
        stage.runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..TIMES {
                match side {
                    0 => drop(subject.create().await),
                    _ => log.append_created().await,
                }
            }
            began.elapsed().as_nanos() as f64 / f64::from(TIMES)
        })
    });
    table.row(Row {
        figure: "a lone creation, acknowledged; beside one append and fdatasync".to_owned(),
        ours: nanos(rounds.of(0)),
        other: nanos(rounds.of(1)),
        value: rounds.ratio(0, 1),
        unit: Unit::Ratio,
        bar: Bar::None,
    });
    Ok(())
}

/// Counts commits.
#[derive(Default)]
struct Commits(AtomicU64);

impl FailPoints for Commits {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        if point == FailPoint::AfterCommit {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        None
    }
}

const TIMES: u32 = 300;
