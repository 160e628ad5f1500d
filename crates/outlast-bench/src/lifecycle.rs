//! Whole lives per second: created, run, ended, looked at. In memory beside the peer, on disk beside a
//! raw log.

use crate::load::{fill, rate};
use crate::rawlog::RawLog;
use crate::retained;
use crate::rmcp::Peer;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::subject::Subject;
use crate::table::{Bar, Row, Table, Unit, per_second};
use crate::{Done, Stage};

pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    in_memory(stage, table)?;
    in_memory_beside_many(stage, table)?;
    for retained in [stage.scale.many, stage.scale.most] {
        durable(stage, retained, table)?;
    }
    Ok(())
}

/// Beside a manager that is new for every batch, so that it has next to nothing to sweep.
fn in_memory(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let ours = stage.runtime.block_on(Subject::memory())?;
    for callers in CALLERS {
        let batch = (callers * 2).max(128);
        let turn = stage.scale.turn;
        let rounds = Rounds::<2>::run(stage.scale.rounds, |side| match side {
            0 => rate(stage.runtime, callers, batch, turn, || ours.clone()),
            _ => rate(stage.runtime, callers, batch, turn, Peer::new),
        });
        table.row(Row {
            figure: format!(
                "lives in memory, {callers} callers; beside an empty rmcp `TaskManager`"
            ),
            ours: per_second(rounds.of(0)),
            other: per_second(rounds.of(1)),
            value: rounds.ratio(0, 1),
            unit: Unit::Ratio,
            bar: Bar::AtLeast(2.0),
        });
    }
    Ok(())
}

/// Both sides retain the same number of tasks.
fn in_memory_beside_many(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let retained = stage.scale.peer;
    let ours = stage.runtime.block_on(Subject::memory())?;
    fill(stage.runtime, &ours, retained, 16);
    let peer = Peer::new();
    eprintln!("rmcp takes on {} tasks", count(retained));
    stage.runtime.block_on(async {
        for _ in 0..retained {
            let (_, bell) = peer.spawn();
            bell.await.expect("it rings");
        }
    });
    let bar = match stage.scale.full {
        true => Bar::AtLeast(50.0),
        // Its sweep takes time in proportion to what it retains; the bar is for 100 k.
        false => Bar::None,
    };
    for callers in CALLERS {
        let turn = stage.scale.turn;
        let rounds = Rounds::<2>::run(3, |side| match side {
            0 => rate(stage.runtime, callers, callers * 16, turn, || ours.clone()),
            _ => rate(stage.runtime, callers, callers, turn, || peer.clone()),
        });
        let retained = count(retained);
        table.row(Row {
            figure: format!(
                "lives in memory, {callers} callers, {retained} retained; beside rmcp with as many"
            ),
            ours: per_second(rounds.of(0)),
            other: per_second(rounds.of(1)),
            value: rounds.ratio(0, 1),
            unit: Unit::Ratio,
            bar,
        });
    }
    Ok(())
}

fn durable(stage: &Stage<'_>, retained: usize, table: &mut Table) -> Done<()> {
    let path = retained::file(stage, retained)?;
    let ours = Subject::sqlite(&path, Default::default());
    let ours = stage.runtime.block_on(ours)?.telling();
    let bytes = retained::bytes(stage)?;
    let log = stage.folder.join(format!("log-{retained}"));
    let log = RawLog::start(&log, bytes)?;
    for (callers, bar) in CALLERS.into_iter().zip([0.6, 0.3, 0.25]) {
        let batch = (callers * 20).max(200);
        let turn = stage.scale.turn;
        let rounds = Rounds::<2>::run(stage.scale.rounds, |side| match side {
            0 => rate(stage.runtime, callers, batch, turn, || ours.clone()),
            _ => rate(stage.runtime, callers, batch, turn, || log.clone()),
        });
        table.row(Row {
            figure: format!(
                "lives on SQLite, {callers} callers, {} retained; beside a raw log",
                count(retained)
            ),
            ours: per_second(rounds.of(0)),
            other: per_second(rounds.of(1)),
            value: rounds.ratio(0, 1),
            unit: Unit::Ratio,
            bar: Bar::AtLeast(bar),
        });
    }
    Ok(())
}

pub(crate) const CALLERS: [usize; 3] = [1, 16, 256];
