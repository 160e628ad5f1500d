//! How long a store with many tasks takes to open, beside reading its file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use crate::child::{Job, measured};
use crate::retained;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::table::{Bar, Row, Table, Unit};
use crate::{Done, Stage};

/// The file was written a moment ago: the system has most of it in its cache, as after a restart.
pub(crate) fn rows(stage: &Stage<'_>, table: &mut Table) -> Done<()> {
    let most = stage.scale.most;
    let path = retained::file(stage, most)?;
    let job = Job::Open(path.clone());
    measured(&job)?;
    let rounds = Rounds::<2>::run(3, |side| {
        let seconds = match side {
            0 => measured(&job).map(|numbers| numbers[1]),
            _ => read_all(&path),
        };
        seconds.expect("the file can be opened")
    });
    let (ours, limit) = (rounds.of(0), rounds.of(1));
    table.row(Row {
        figure: format!(
            "open with {} tasks until calls are taken; beside reading the file",
            count(most)
        ),
        ours: format!("{ours:.2} s"),
        other: format!("{limit:.2} s ({:.1} ×)", rounds.ratio(0, 1)),
        value: ours,
        unit: Unit::Seconds,
        bar: Bar::AtMost(3.0),
    });
    Ok(())
}

fn read_all(path: &Path) -> Done<f64> {
    let began = Instant::now();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(began.elapsed().as_secs_f64())
}
