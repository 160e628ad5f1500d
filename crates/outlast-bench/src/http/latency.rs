//! How long after the end of a task a client that waits for it in `tasks/result` has the answer.
//!
//! The tool writes the time of its end into its result; what lies between that and the answer at the client is
//! the engine, its store, the front, the socket.

use std::time::Instant;

use super::Stage;
use super::serve::{Server, now};
use super::target::Target;
use crate::Done;
use crate::rounds::{median, quantile};
use crate::table::{Bar, Row, Table, Unit, nanos};

pub(super) fn rows(stage: &Stage, table: &mut Table) -> Done<()> {
    let memory = stage.ours(&Server::Memory(0))?;
    let sqlite = Server::Sqlite(stage.folder.path().join("blocked.db"), 0);
    let sqlite = stage.ours(&sqlite)?;
    let limit = stage.ours(&Server::Limit)?;
    let trips = stage.runtime.block_on(round_trips(&limit))?;
    let trip = median(trips.iter().copied());
    let mut row = |what: &str, times: &[f64], bar| {
        let (half, late) = (median(times.iter().copied()), quantile(times, 0.99));
        table.row(Row {
            figure: format!(
                "answer to a blocked `tasks/result` after the end of the tool, {what}; beside a loopback round trip"
            ),
            ours: format!("median {}, p99 {}", nanos(half), nanos(late)),
            other: format!(
                "median {}, p99 {} ({:.1} ×)",
                nanos(trip),
                nanos(quantile(&trips, 0.99)),
                half / trip
            ),
            value: half / 1e6,
            unit: Unit::Milliseconds,
            bar,
        });
    };
    let times = stage.runtime.block_on(waits(&memory))?;
    row("memory", &times, Bar::AtMost(2.0));
    let times = stage.runtime.block_on(waits(&sqlite))?;
    row("SQLite, a synced commit included", &times, Bar::None);
    Ok(())
}

async fn waits(target: &Target) -> Done<Vec<f64>> {
    let mut speaker = target.speaker().await?;
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        speaker.create("timed").await?;
        let ended: u128 = speaker.result().await?.parse()?;
        times.push(now().saturating_sub(ended) as f64);
    }
    Ok(times)
}

async fn round_trips(target: &Target) -> Done<Vec<f64>> {
    let mut speaker = target.speaker().await?;
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        speaker.get().await?;
        times.push(began.elapsed().as_nanos() as f64);
    }
    Ok(times)
}

const TIMES: usize = 300;
