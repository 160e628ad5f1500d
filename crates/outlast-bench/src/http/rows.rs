//! The cost of operations, compared in the same rounds.

use super::mcp_client::Generation;
use super::serve::Server;
use super::target::{ClientOperation, Cost, MeasuredServer};
use crate::BenchResult;
use crate::environment::Environment;
use crate::rounds::Rounds;
use crate::table::{Bar, Row, Table, Unit, count, with_thousands_separators};

pub(crate) fn v1(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    all_rows(environment, Generation::V1, table)
}

pub(crate) fn v2(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    all_rows(environment, Generation::V2, table)
}

pub(crate) fn v1_bars(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    with_bars(environment, Generation::V1, table)
}

pub(crate) fn v2_bars(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    with_bars(environment, Generation::V2, table)
}

fn all_rows(
    environment: &Environment,
    generation: Generation,
    table: &mut Table,
) -> BenchResult<()> {
    for connections in [LIMITED_ROW_CONNECTIONS, 64] {
        lifecycles(environment, generation, connections, table)?;
        gets(environment, generation, connections, table)?;
        calls(environment, generation, connections, table)?;
    }
    Ok(())
}

fn with_bars(
    environment: &Environment,
    generation: Generation,
    table: &mut Table,
) -> BenchResult<()> {
    lifecycles(environment, generation, LIMITED_ROW_CONNECTIONS, table)?;
    gets(environment, generation, LIMITED_ROW_CONNECTIONS, table)
}

/// Tasks from creation to result. rmcp has V2 only, so its V2 lifecycle is compared with both of
/// ours.
fn lifecycles(
    environment: &Environment,
    generation: Generation,
    connections: usize,
    table: &mut Table,
) -> BenchResult<()> {
    let sides = [environment.sqlite(0)?, Server::Memory(0), Server::Rmcp(0)];
    let rounds = environment.rounds(generation, ClientOperation::Lifecycle, connections, sides)?;
    let (lifecycle, most) = match generation {
        Generation::V2 => (generation.lifecycle(), 0.4),
        _ => (generation.lifecycle(), 0.5),
    };
    let bar = Some(most).filter(|_| connections == LIMITED_ROW_CONNECTIONS);
    for (side, store, bar) in [(0, "SQLite", bar), (1, "memory", None)] {
        let figure = format!(
            "{lifecycle}, {store}, {connections} connections; beside rmcp's V2 lifecycle in memory"
        );
        table.row(row(figure, &rounds, (side, 2), bar));
    }
    Ok(())
}

/// `tasks/get` of a task that has ended.
fn gets(
    environment: &Environment,
    generation: Generation,
    connections: usize,
    table: &mut Table,
) -> BenchResult<()> {
    let bar = Some(1.5).filter(|_| connections == LIMITED_ROW_CONNECTIONS);
    beside_limit(
        environment,
        generation,
        connections,
        ClientOperation::Get,
        bar,
        table,
    )
}

/// Calls that do not become tasks.
fn calls(
    environment: &Environment,
    generation: Generation,
    connections: usize,
    table: &mut Table,
) -> BenchResult<()> {
    beside_limit(
        environment,
        generation,
        connections,
        ClientOperation::Call,
        None,
        table,
    )
}

fn beside_limit(
    environment: &Environment,
    generation: Generation,
    connections: usize,
    operation: ClientOperation,
    bar: Bar,
    table: &mut Table,
) -> BenchResult<()> {
    let sides = [environment.sqlite(0)?, Server::Limit, Server::Rmcp(0)];
    let rounds = environment.rounds(generation, operation, connections, sides)?;
    let what = match operation {
        ClientOperation::Get => "`tasks/get`",
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
pub(crate) fn retained(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    let many = environment.scale.many;
    for generation in [Generation::V1, Generation::V2] {
        for (operation, what) in [
            (
                ClientOperation::Lifecycle,
                generation.lifecycle().to_owned(),
            ),
            (
                ClientOperation::Get,
                format!("{} `tasks/get`", generation.name()),
            ),
        ] {
            let sides = [environment.sqlite(many)?, environment.sqlite(0)?];
            let rounds =
                environment.rounds(generation, operation, LIMITED_ROW_CONNECTIONS, sides)?;
            let figure = format!(
                "{what}, SQLite, {LIMITED_ROW_CONNECTIONS} connections, {} retained; beside none",
                count(many)
            );
            table.row(row(figure, &rounds, (0, 1), Some(1.2)));
        }
    }
    Ok(())
}

impl Environment {
    fn rounds<const N: usize>(
        &self,
        generation: Generation,
        operation: ClientOperation,
        connections: usize,
        sides: [Server; N],
    ) -> BenchResult<Rounds<N, Cost>> {
        let start = |server: &Server| {
            let generation = match server {
                Server::Rmcp(_) => Generation::V2,
                _ => generation,
            };
            MeasuredServer::start(server, generation)
        };
        let mut targets = sides.iter().map(start).collect::<BenchResult<Vec<_>>>()?;
        // After all have started: some need time to fill, and idle connections are closed.
        for target in &mut targets {
            self.runtime
                .block_on(target.connect(connections, operation))?;
        }
        Rounds::run(self.scale.rounds, |side| {
            targets[side].measure(&self.runtime, operation, self.scale.turn)
        })
    }

    /// Our server on a new file.
    fn sqlite(&self, retained: usize) -> BenchResult<Server> {
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
    let show = |side| {
        format!(
            "{:.1} µs CPU, {} /s",
            costs.median_of(side),
            with_thousands_separators(paces.median_of(side))
        )
    };
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
const LIMITED_ROW_CONNECTIONS: usize = 16;
