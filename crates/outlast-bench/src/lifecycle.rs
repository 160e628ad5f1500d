//! Whole lives per second: created, run, ended, looked at. In memory beside the peer, on disk beside a
//! raw log.

use std::time::Duration;

use crate::load::{Pace, fill, pace};
use crate::rawlog::RawLog;
use crate::retained;
use crate::rmcp::Peer;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::subject::{Rung, Subject};
use crate::table::{Bar, Row, Table, Unit, whole};
use crate::{Done, Stage};

pub(crate) fn in_memory(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    beside_nothing(stage, table)?;
    beside_many(stage, table)
}

pub(crate) fn on_disk(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    for retained in [stage.scale.many, stage.scale.most] {
        durable(stage, retained, table)?;
    }
    Ok(())
}

/// The peer is new for every small batch, so that it has next to nothing to sweep. We are new less often: nothing here
/// walks over what is retained.
fn beside_nothing(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    for callers in CALLERS {
        let runtime = stage.runtime_for(callers);
        let fresh = || {
            // What the last batch left is dropped by the runtime, and dropping is not timed.
            std::thread::sleep(Duration::from_millis(1));
            let subject = runtime.block_on(Subject::memory());
            subject.expect("an empty store opens")
        };
        let (ours, peers) = ((callers * 8).max(2_048), (callers * 2).max(128));
        let turn = stage.scale.turn;
        let rounds = Rounds::<3, Pace>::run(stage.scale.rounds, |side| match side {
            0 => pace(runtime, callers, ours, turn, || Rung(fresh())),
            1 => pace(runtime, callers, peers, turn, Peer::new),
            _ => pace(runtime, callers, ours, turn, fresh),
        });
        table.row(row(
            format!("lives in memory, {callers} callers; beside an empty rmcp `TaskManager`"),
            [0, 1],
            &rounds,
            Bar::AtLeast(2.0),
        ));
        table.row(row(
            format!("the same, waited for by `wait`, {callers} callers; beside the same"),
            [2, 1],
            &rounds,
            Bar::None,
        ));
    }
    Ok(())
}

/// Both sides retain the same number of tasks.
fn beside_many(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
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
        let rounds = Rounds::<2, Pace>::run(3, |side| match side {
            0 => pace(
                stage.runtime_for(callers),
                callers,
                (callers * 8).max(1_024),
                turn,
                || Rung(ours.clone()),
            ),
            _ => pace(stage.runtime_for(callers), callers, callers, turn, || {
                peer.clone()
            }),
        });
        let retained = count(retained);
        table.row(row(
            format!(
                "lives in memory, {callers} callers, {retained} retained; beside rmcp with as many"
            ),
            [0, 1],
            &rounds,
            bar,
        ));
    }
    Ok(())
}

fn durable(stage: &Stage<'_>, retained: usize, table: &mut Table) -> Done<()> {
    // Lives are added here; other parts want as many tasks as they say.
    let path = stage.folder.join(format!("lives-{retained}.db"));
    std::fs::copy(retained::file(stage, retained)?, &path)?;
    let ours = Subject::sqlite(&path, Default::default());
    let ours = stage.runtime.block_on(ours)?.telling();
    let bytes = retained::bytes(stage)?;
    let log = stage.folder.join(format!("log-{retained}"));
    let log = RawLog::start(&log, bytes)?;
    for (callers, bar) in CALLERS.into_iter().zip([0.6, 0.3, 0.25]) {
        let batch = (callers * 20).max(200);
        let turn = stage.scale.turn;
        let rounds = Rounds::<2, Pace>::run(stage.scale.rounds, |side| match side {
            0 => pace(stage.runtime_for(callers), callers, batch, turn, || {
                ours.clone()
            }),
            _ => pace(stage.runtime_for(callers), callers, batch, turn, || {
                log.clone()
            }),
        });
        table.row(row(
            format!(
                "lives on SQLite, {callers} callers, {} retained; beside a raw log",
                count(retained)
            ),
            [0, 1],
            &rounds,
            Bar::AtLeast(bar),
        ));
    }
    Ok(())
}

/// Of two sides, the one beside the other.
fn row<const N: usize>(
    figure: String,
    [one, other]: [usize; 2],
    rounds: &Rounds<N, Pace>,
    bar: Bar,
) -> Row {
    let (paces, costs) = (
        rounds.seen(|pace| pace.per_second),
        rounds.seen(|pace| pace.processor),
    );
    let show = |side| format!("{} /s, {:.1} µs CPU", whole(paces.of(side)), costs.of(side));
    Row {
        figure,
        ours: show(one),
        other: show(other),
        value: paces.ratio(one, other),
        unit: Unit::Ratio,
        bar,
    }
}

const CALLERS: [usize; 3] = [1, 16, 256];
