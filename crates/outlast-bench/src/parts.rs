//! A benchmark is made of parts, each of which adds rows to one table.

use crate::Done;
use crate::args::Bench;
use crate::machine::Watch;
use crate::table::Table;

/// A name, and what measures that part on a stage.
pub(crate) type Part<S> = (&'static str, fn(&S, &mut Table) -> Done<()>);

/// Measures the parts that are wanted and shows the table, with how busy the machine was meanwhile.
pub(crate) fn measure<S>(args: &Bench, stage: &S, mut table: Table, parts: &[Part<S>]) -> Done<()> {
    for (name, part) in parts {
        if !args.wants(name) {
            continue;
        }
        eprintln!("== {name} ==");
        let watch = Watch::start();
        part(stage, &mut table)?;
        table.note(format!("{name}: {}", watch.report()));
    }
    args.publish(&table)
}
