//! What deeds cost the server, side by side in the same rounds.

use super::Stage;
use super::dialect::Generation;
use super::serve::{Keeps, Server};
use super::target::{Cost, Deed, Target};
use crate::Done;
use crate::awake::Awake;
use crate::rounds::Rounds;
use crate::scale::count;
use crate::table::{Bar, Row, Table, Unit, whole};

/// Lives from creation to outcome.
pub(super) fn lives(stage: &Stage, table: &mut Table) -> Done<()> {
    let bars = stage.generation.bars();
    for connections in CONNECTIONS {
        let sides = [
            Side::Memory(0),
            Side::Sqlite(0),
            Side::Rmcp(Keeps::All { from: 0 }),
            Side::Rmcp(Keeps::Nothing),
        ];
        let rounds = stage.rounds(Deed::Live, connections, sides)?;
        let (life, at) = (stage.generation.life(), of(connections));
        let durable = match connections {
            16 => Bar::AtMost(bars.sqlite),
            _ => Bar::None,
        };
        let mut tell = |store, sides, other, bar| {
            let figure = format!("{life}, {store}, {at}; beside rmcp's V2 life, {other}");
            table.row(row(figure, &rounds, sides, bar));
        };
        // The bars are set beside rmcp as it is. One that forgets exists here only: what its tasks cost without the walk
        // over all of them.
        let (same, easier) = ("tasks kept as here", "tasks forgotten at once");
        tell("memory", (0, 2), same, Bar::AtMost(bars.memory));
        tell("memory", (0, 3), easier, Bar::None);
        tell("SQLite", (1, 2), same, durable);
        tell("SQLite", (1, 3), easier, Bar::None);
    }
    Ok(())
}

/// Lives beside those on the TypeScript SDK, which has V1 only.
pub(super) fn beside_typescript(stage: &Stage, table: &mut Table) -> Done<()> {
    if stage.typescript.is_none() {
        table.note(
            "the TypeScript SDK was not measured: --program typescript=FILE names its server"
                .to_owned(),
        );
        return Ok(());
    }
    for connections in CONNECTIONS {
        let sides = [Side::Memory(0), Side::TypeScript];
        let rounds = stage.rounds(Deed::Live, connections, sides)?;
        let (life, at) = (stage.generation.life(), of(connections));
        table.row(row(
            format!("{life}, memory, {at}; beside the TypeScript SDK's"),
            &rounds,
            (0, 1),
            Bar::AtMost(0.1),
        ));
    }
    Ok(())
}

/// Looks at a task that has ended.
pub(super) fn gets(stage: &Stage, table: &mut Table) -> Done<()> {
    let bars = (Bar::AtMost(0.45), Bar::AtMost(1.5));
    short(stage, Deed::Get, "`tasks/get`", bars, table)
}

/// Looks at a task that still works.
pub(super) fn looks(stage: &Stage, table: &mut Table) -> Done<()> {
    let bars = (Bar::AtMost(0.45), Bar::AtMost(1.5));
    short(
        stage,
        Deed::Look,
        "`tasks/get` of a working task",
        bars,
        table,
    )
}

/// Calls that are no tasks.
pub(super) fn calls(stage: &Stage, table: &mut Table) -> Done<()> {
    let bars = (Bar::None, Bar::None);
    short(stage, Deed::Call, "plain `tools/call`", bars, table)
}

fn short(
    stage: &Stage,
    deed: Deed,
    what: &str,
    (beside_rmcp, beside_limit): (Bar, Bar),
    table: &mut Table,
) -> Done<()> {
    for connections in CONNECTIONS {
        let sides = [Side::Memory(0), Side::Rmcp(Keeps::Nothing), Side::Limit];
        let rounds = stage.rounds(deed, connections, sides)?;
        let at = of(connections);
        table.row(row(
            format!("{what}, {at}; beside rmcp"),
            &rounds,
            (0, 1),
            beside_rmcp,
        ));
        table.row(row(
            format!("{what}, {at}; beside a bare HTTP endpoint"),
            &rounds,
            (0, 2),
            beside_limit,
        ));
    }
    Ok(())
}

/// The same with many tasks retained, here and there.
pub(super) fn with_many_retained(stage: &Stage, table: &mut Table) -> Done<()> {
    let (bars, connections) = (stage.generation.bars(), 16);
    let many = stage.scale.peer;
    let (at, many_words) = (of(connections), count(many));
    for (deed, what) in [
        (Deed::Live, stage.generation.life()),
        (Deed::Get, "`tasks/get`"),
    ] {
        let sides = [
            Side::Memory(many),
            Side::Sqlite(many),
            Side::Rmcp(Keeps::All { from: many }),
            Side::Memory(0),
            Side::Sqlite(0),
        ];
        let rounds = stage.rounds(deed, connections, sides)?;
        let (memory, sqlite) = match deed {
            Deed::Live => (bars.memory, bars.sqlite),
            _ => (0.45, 0.45),
        };
        let mut tell = |store, sides, other, bar| {
            let figure = format!("{what}, {store}, {at}, {many_words} retained; beside {other}");
            table.row(row(figure, &rounds, sides, Bar::AtMost(bar)));
        };
        tell("memory", (0, 2), "rmcp with as many", memory);
        tell("SQLite", (1, 2), "rmcp with as many", sqlite);
        tell("memory", (0, 3), "none", 1.2);
        tell("SQLite", (1, 4), "none", 1.2);
    }
    Ok(())
}

/// Somebody who is measured; with so many tasks retained.
#[derive(Clone, Copy)]
enum Side {
    Memory(usize),
    Sqlite(usize),
    Rmcp(Keeps),
    TypeScript,
    Limit,
}

/// How many times the cost of rmcp's life ours may have.
struct Bars {
    memory: f64,
    sqlite: f64,
}

impl Stage {
    fn rounds<const N: usize>(
        &self,
        deed: Deed,
        connections: usize,
        sides: [Side; N],
    ) -> Done<Rounds<N, Cost>> {
        let targets: Done<Vec<_>> = sides.into_iter().map(|side| self.start(side)).collect();
        let mut targets = targets?;
        // Not before all are there: some take long to fill, and idle connections are closed.
        for target in &mut targets {
            self.runtime.block_on(target.connect(connections, deed))?;
        }
        // More clients than one keep the machine awake themselves.
        let _awake = (connections == 1).then(Awake::keep).transpose()?;
        Rounds::try_run(self.scale.rounds, |side| {
            targets[side].turn(&self.runtime, deed, self.scale.turn)
        })
    }

    fn start(&self, side: Side) -> Done<Target> {
        match side {
            Side::Memory(retained) => self.ours(&Server::Memory(retained)),
            Side::Sqlite(retained) => {
                let file = tempfile::Builder::new()
                    .suffix(".db")
                    .tempfile_in(self.folder.path())?;
                let (_, path) = file.keep()?;
                std::fs::remove_file(&path)?;
                self.ours(&Server::Sqlite(path, retained))
            }
            Side::Rmcp(keeps) => Target::start(&Server::Rmcp(keeps), Generation::V2),
            Side::Limit => self.ours(&Server::Limit),
            Side::TypeScript => {
                let script = self.typescript.as_ref();
                Target::node(script.ok_or("--program typescript=FILE is missing")?)
            }
        }
    }

    /// One that is spoken to in the generation at hand.
    pub(super) fn ours(&self, server: &Server) -> Done<Target> {
        Target::start(server, self.generation)
    }
}

impl Generation {
    fn life(self) -> &'static str {
        match self {
            Self::V1 | Self::Plain => "V1 life (create, get, result)",
            Self::V2 => "V2 life (create, get)",
        }
    }

    fn bars(self) -> Bars {
        match self {
            Self::V1 | Self::Plain => Bars {
                memory: 0.5,
                sqlite: 0.9,
            },
            Self::V2 => Bars {
                memory: 0.4,
                sqlite: 0.8,
            },
        }
    }
}

fn row<const N: usize>(
    figure: String,
    rounds: &Rounds<N, Cost>,
    (ours, other): (usize, usize),
    bar: Bar,
) -> Row {
    let (paces, costs) = (
        rounds.seen(|cost| cost.per_second),
        rounds.seen(|cost| cost.processor),
    );
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

fn of(connections: usize) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    }
}

const CONNECTIONS: [usize; 3] = [1, 16, 64];
