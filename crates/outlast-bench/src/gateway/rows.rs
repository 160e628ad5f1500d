//! What calls and tasks cost through a gateway, side by side in the same rounds.
//!
//! What a gateway adds to the processor time is its own: the upstream is a process of its own and is not counted. What it
//! adds to the latency is the median time of a call through it, less that of the same call made directly.

use super::Stage;
use super::pipe::Pipe;
use super::sides::{Keeps, Owners, Side};
use crate::Done;
use crate::http::dialect::Generation;
use crate::http::serve::Server;
use crate::http::target::{Cost, Deed, Target};
use crate::rounds::Rounds;
use crate::table::{Bar, Row, Table, Unit, whole};

/// Plain calls of clients without tasks, beside the peers.
pub(super) fn calls(stage: &Stage, table: &mut Table) -> Done<()> {
    for sessions in SESSIONS {
        let [mcp_proxy, supergateway, ours] = [
            stage.mcp_proxy()?,
            stage.supergateway()?,
            stage.ours(Generation::Plain, Keeps::Sqlite, Owners::Token)?,
        ]
        .map(Side::Http);
        let direct = Side::Pipe(Pipe::start(sessions)?);
        let sides = [direct, mcp_proxy, supergateway, ours];
        let rounds = stage.rounds([Deed::Call; 4], sessions, sides)?;
        let (direct, peers, ours) = (0, [(1, "mcp-proxy"), (2, "supergateway")], 3);
        let at = of(sessions);
        let figures = [
            (
                format!("CPU added to a plain `tools/call`, {at}"),
                rounds.seen(|cost| cost.processor),
                0.2,
            ),
            (
                format!("median latency added to it, {at}"),
                rounds.seen(|cost| cost.latency).above(direct),
                0.5,
            ),
        ];
        for (figure, added, most) in figures {
            let show = |side| micros(added.of(side));
            let better = match added.of(peers[0].0) < added.of(peers[1].0) {
                true => peers[0].0,
                false => peers[1].0,
            };
            table.row(Row {
                figure,
                ours: show(ours),
                other: peers
                    .map(|(side, name)| format!("{name} {}", show(side)))
                    .join(", "),
                value: added.ratio(ours, better),
                unit: Unit::Ratio,
                bar: Bar::AtMost(most),
            });
        }
        let paces = rounds.seen(|cost| cost.per_second);
        let direct = rounds.seen(|cost| cost.latency).of(direct);
        let pace = |side| whole(paces.of(side));
        table.note(format!(
            "calls per second, {at}: mcp-proxy {}, supergateway {}, ours {}; a direct call takes {}",
            pace(1),
            pace(2),
            pace(3),
            micros(direct)
        ));
    }
    Ok(())
}

/// Plain calls of clients of the modern era, which say more of themselves, beside those of the legacy era.
pub(super) fn modern_calls(stage: &Stage, table: &mut Table) -> Done<()> {
    for sessions in SESSIONS {
        let sides = [
            Side::Pipe(Pipe::start(sessions)?),
            Side::Http(stage.ours(Generation::Plain, Keeps::Sqlite, Owners::Token)?),
            Side::Http(stage.ours(Generation::V2, Keeps::Sqlite, Owners::Token)?),
        ];
        let rounds = stage.rounds([Deed::Call; 3], sessions, sides)?;
        let at = of(sessions);
        let figure = format!(
            "added to a plain `tools/call` by a client of 2026-07-28, {at}; beside one of 2025-11-25"
        );
        table.row(added(figure, &rounds, 2, 1));
    }
    Ok(())
}

/// Plain calls where the upstream is at a URL; neither peer serves such a one over HTTP.
pub(super) fn at_a_url(stage: &Stage, table: &mut Table) -> Done<()> {
    for sessions in SESSIONS {
        let upstream = Target::start(&Server::Upstream, Generation::Plain)?;
        let ours = stage.ours_at(upstream.address())?;
        let sides = [upstream, ours].map(Side::Http);
        let rounds = stage.rounds([Deed::Call; 2], sessions, sides)?;
        let at = of(sessions);
        let figure = format!(
            "added to a plain `tools/call`, upstream at a URL, {at}; beside what it takes itself"
        );
        table.row(added(figure, &rounds, 1, 0));
    }
    Ok(())
}

/// Tasks from creation to result, beside plain calls.
pub(super) fn lives(stage: &Stage, table: &mut Table) -> Done<()> {
    for (generation, life) in [
        (Generation::V1, "V1 task (create, get, result)"),
        (Generation::V2, "V2 task (create, get)"),
    ] {
        for sessions in SESSIONS {
            let sides = [
                Side::Pipe(Pipe::start(sessions)?),
                Side::Http(stage.ours(generation, Keeps::Sqlite, Owners::Token)?),
                Side::Http(stage.ours(generation, Keeps::Memory, Owners::Token)?),
                Side::Http(stage.ours(generation, Keeps::Sqlite, Owners::Token)?),
            ];
            let deeds = [Deed::Call, Deed::Call, Deed::Live, Deed::Live];
            let rounds = stage.rounds(deeds, sessions, sides)?;
            for (side, store) in [(2, "memory"), (3, "SQLite")] {
                let at = of(sessions);
                let figure = format!("added by a {life}, {store}, {at}; beside a plain call");
                table.row(added(figure, &rounds, side, 1));
            }
        }
    }
    Ok(())
}

impl Stage {
    fn rounds<const N: usize>(
        &self,
        deeds: [Deed; N],
        sessions: usize,
        mut sides: [Side; N],
    ) -> Done<Rounds<N, Cost>> {
        for (side, deed) in sides.iter_mut().zip(deeds) {
            if let Side::Http(target) = side {
                self.runtime.block_on(target.connect(sessions, deed))?;
            }
        }
        Rounds::try_run(self.scale.rounds, |side| {
            sides[side].turn(&self.runtime, deeds[side], self.scale.turn)
        })
    }
}

/// What we add in one way, beside another or beside what the upstream itself takes, which is side 0; for information. The
/// quotient is that of the processor times.
fn added<const N: usize>(
    figure: String,
    rounds: &Rounds<N, Cost>,
    ours: usize,
    other: usize,
) -> Row {
    let costs = rounds.seen(|cost| cost.processor);
    let times = rounds.seen(|cost| cost.latency);
    let show = |side| {
        let time = match side {
            0 => times.of(side),
            _ => times.above(0).of(side),
        };
        let (cost, time) = (micros(costs.of(side)), micros(time));
        format!("{cost} CPU, {time} median latency")
    };
    Row {
        figure,
        ours: show(ours),
        other: show(other),
        value: costs.ratio(ours, other),
        unit: Unit::Ratio,
        bar: Bar::None,
    }
}

fn of(sessions: usize) -> String {
    match sessions {
        1 => "1 session".to_owned(),
        n => format!("{n} sessions"),
    }
}

fn micros(value: f64) -> String {
    match value {
        v if v < 1_000.0 => format!("{v:.0} µs"),
        v => format!("{} µs", whole(v)),
    }
}

const SESSIONS: [usize; 2] = [1, 16];
