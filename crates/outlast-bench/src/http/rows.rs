//! The cost of operations, compared in the same rounds.

use super::dialect::Generation;
use super::serve::Server;
use super::target::{Cost, Operation, Target};
use crate::Done;
use crate::rounds::Rounds;
use crate::stage::Stage;
use crate::table::{Bar, Row, Table, Unit, count, whole};

pub(crate) fn v1(stage: &Stage, table: &mut Table) -> Done<()> {
    all(stage, Generation::V1, table)
}

pub(crate) fn v2(stage: &Stage, table: &mut Table) -> Done<()> {
    all(stage, Generation::V2, table)
}

pub(crate) fn v1_bars(stage: &Stage, table: &mut Table) -> Done<()> {
    with_bars(stage, Generation::V1, table)
}

pub(crate) fn v2_bars(stage: &Stage, table: &mut Table) -> Done<()> {
    with_bars(stage, Generation::V2, table)
}

fn all(stage: &Stage, generation: Generation, table: &mut Table) -> Done<()> {
    for connections in [AT_BARS, 64] {
        lifecycles(stage, generation, connections, table)?;
        gets(stage, generation, connections, table)?;
        calls(stage, generation, connections, table)?;
    }
    Ok(())
}

fn with_bars(stage: &Stage, generation: Generation, table: &mut Table) -> Done<()> {
    lifecycles(stage, generation, AT_BARS, table)?;
    gets(stage, generation, AT_BARS, table)
}

/// Tasks from creation to result. rmcp has V2 only, so its V2 lifecycle is compared with both of
/// ours.
fn lifecycles(
    stage: &Stage,
    generation: Generation,
    connections: usize,
    table: &mut Table,
) -> Done<()> {
    let sides = [stage.sqlite(0)?, Server::Memory(0), Server::Rmcp(0)];
    let rounds = stage.rounds(generation, Operation::Lifecycle, connections, sides)?;
    let (lifecycle, most) = match generation {
        Generation::V2 => (generation.lifecycle(), 0.4),
        _ => (generation.lifecycle(), 0.5),
    };
    let bar = Some(most).filter(|_| connections == AT_BARS);
    for (side, store, bar) in [(0, "SQLite", bar), (1, "memory", None)] {
        let figure = format!(
            "{lifecycle}, {store}, {connections} connections; beside rmcp's V2 lifecycle in memory"
        );
        table.row(row(figure, &rounds, (side, 2), bar));
    }
    Ok(())
}

/// `tasks/get` of a task that has ended.
fn gets(stage: &Stage, generation: Generation, connections: usize, table: &mut Table) -> Done<()> {
    let bar = Some(1.5).filter(|_| connections == AT_BARS);
    beside_limit(stage, generation, connections, Operation::Get, bar, table)
}

/// Calls that do not become tasks.
fn calls(stage: &Stage, generation: Generation, connections: usize, table: &mut Table) -> Done<()> {
    beside_limit(stage, generation, connections, Operation::Call, None, table)
}

fn beside_limit(
    stage: &Stage,
    generation: Generation,
    connections: usize,
    operation: Operation,
    bar: Bar,
    table: &mut Table,
) -> Done<()> {
    let sides = [stage.sqlite(0)?, Server::Limit, Server::Rmcp(0)];
    let rounds = stage.rounds(generation, operation, connections, sides)?;
    let what = match operation {
        Operation::Get => "`tasks/get`",
        _ => "plain `tools/call`",
    };
    for (other, name, bar) in [(1, "a bare endpoint", bar), (2, "rmcp", None)] {
        let figure = format!(
            "{} {what}, {connections} connections; beside {name}",
            generation.name()
        );
        table.row(row(figure, &rounds, (0, other), bar));
    }
    Ok(())
}

/// The same with many retained tasks, compared with none.
pub(crate) fn retained(stage: &Stage, table: &mut Table) -> Done<()> {
    let many = stage.scale.many;
    for generation in [Generation::V1, Generation::V2] {
        for (operation, what) in [
            (Operation::Lifecycle, generation.lifecycle().to_owned()),
            (Operation::Get, format!("{} `tasks/get`", generation.name())),
        ] {
            let sides = [stage.sqlite(many)?, stage.sqlite(0)?];
            let rounds = stage.rounds(generation, operation, AT_BARS, sides)?;
            let figure = format!(
                "{what}, SQLite, {AT_BARS} connections, {} retained; beside none",
                count(many)
            );
            table.row(row(figure, &rounds, (0, 1), Some(1.2)));
        }
    }
    Ok(())
}

impl Stage {
    fn rounds<const N: usize>(
        &self,
        generation: Generation,
        operation: Operation,
        connections: usize,
        sides: [Server; N],
    ) -> Done<Rounds<N, Cost>> {
        let start = |server: &Server| {
            let generation = match server {
                Server::Rmcp(_) => Generation::V2,
                _ => generation,
            };
            Target::start(server, generation)
        };
        let mut targets = sides.iter().map(start).collect::<Done<Vec<_>>>()?;
        // After all have started: some need time to fill, and idle connections are closed.
        for target in &mut targets {
            self.runtime
                .block_on(target.connect(connections, operation))?;
        }
        Rounds::run(self.scale.rounds, |side| {
            targets[side].turn(&self.runtime, operation, self.scale.turn)
        })
    }

    /// Our server on a new file.
    fn sqlite(&self, retained: usize) -> Done<Server> {
        let folder = tempfile::tempdir_in(self.folder.path())?.keep();
        Ok(Server::Sqlite(folder.join("tasks.db"), retained))
    }
}

impl Generation {
    fn name(self) -> &'static str {
        match self {
            Self::V1 | Self::Plain => "V1",
            Self::V2 => "V2",
        }
    }

    fn lifecycle(self) -> &'static str {
        match self {
            Self::V1 | Self::Plain => "V1 lifecycle (create, get, result)",
            Self::V2 => "V2 lifecycle (create, get)",
        }
    }
}

fn row<const N: usize>(
    figure: String,
    rounds: &Rounds<N, Cost>,
    (ours, other): (usize, usize),
    bar: Bar,
) -> Row {
    let paces = rounds.map(|cost| cost.per_second);
    let costs = rounds.map(|cost| cost.processor);
    let show = |side| format!("{:.1} µs CPU, {} /s", costs.of(side), whole(paces.of(side)));
    Row {
        figure,
        ours: show(ours),
        other: show(other),
        value: costs.ratio(ours, other),
        unit: Unit::Ratio,
        bar,
    }
}

/// The number of connections of rows that have a limit.
const AT_BARS: usize = 16;
