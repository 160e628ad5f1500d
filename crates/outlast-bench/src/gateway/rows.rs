//! The cost of calls and tasks through a gateway, compared in the same rounds.
//!
//! The added processor time is that of the gateway process only, because the upstream is a separate
//! process. The added latency is the median time of a call through the gateway, minus that of the
//! same call made directly.

use super::pipe::Pipe;
use super::sides::{Side, Upstream};
use crate::BenchResult;
use crate::environment::Environment;
use crate::http::mcp_client::Generation;
use crate::http::serve::Server;
use crate::http::target::{ClientOperation, Cost, MeasuredServer};
use crate::rounds::Rounds;
use crate::table::{Row, Table, Unit, micros, with_thousands_separators};

/// Plain calls of clients without tasks, compared with the peers.
pub(crate) fn calls(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    for sessions in SESSIONS {
        let [mcp_proxy, supergateway, ours] = [
            environment.mcp_proxy()?,
            environment.supergateway()?,
            environment.ours(Upstream::Child, Generation::Plain)?,
        ]
        .map(Side::Http);
        let direct = Side::Pipe(Pipe::start(sessions)?);
        let sides = [direct, mcp_proxy, supergateway, ours];
        let rounds = environment.gateway_rounds([ClientOperation::Call; 4], sessions, sides)?;
        let (direct, peers, ours) = (0, [(1, "mcp-proxy"), (2, "supergateway")], 3);
        let at = session_count(sessions);
        let figures = [
            (
                format!("CPU added to a plain `tools/call`, {at}"),
                rounds.map(|cost| cost.processor),
                0.2,
            ),
            (
                format!("median latency added to it, {at}"),
                rounds.map(|cost| cost.latency).minus(direct),
                0.5,
            ),
        ];
        for (figure, added, most) in figures {
            let show = |side| micros(added.median_of(side));
            let better = if added.median_of(peers[0].0) < added.median_of(peers[1].0) {
                peers[0].0
            } else {
                peers[1].0
            };
            table.row(Row {
                figure,
                ours: show(ours),
                other: peers
                    .map(|(side, name)| format!("{name} {}", show(side)))
                    .join(", "),
                value: added.ratio(ours, better),
                unit: Unit::Ratio,
                bar: Some(most),
            });
        }
        let paces = rounds.map(|cost| cost.per_second);
        let direct = rounds.map(|cost| cost.latency).median_of(direct);
        let pace = |side| with_thousands_separators(paces.median_of(side));
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

/// Plain calls through our gateway to an rmcp server at a URL, compared with the same calls made
/// directly. The bars are absolute: no peer passes calls on to a URL.
pub(crate) fn calls_to_a_url(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    for (sessions, processor_bar, latency_bar) in [(1, 170.0, Some(300.0)), (16, 80.0, None)] {
        let direct = MeasuredServer::start(&Server::HttpUpstream, Generation::Plain)?;
        let ours = environment.ours(Upstream::Url(direct.url()), Generation::Plain)?;
        let sides = [direct, ours].map(Side::Http);
        let rounds = environment.gateway_rounds([ClientOperation::Call; 2], sessions, sides)?;
        let (direct, ours) = (0, 1);
        let at = session_count(sessions);
        let (processor, latency) = (
            rounds.map(|cost| cost.processor),
            rounds.map(|cost| cost.latency),
        );
        for (figure, added, other, bar) in [
            (
                format!("CPU added to a plain `tools/call` at a URL, {at}"),
                processor.median_of(ours),
                format!("rmcp takes {}", micros(processor.median_of(direct))),
                Some(processor_bar),
            ),
            (
                format!("median latency added to it, {at}"),
                latency.minus(direct).median_of(ours),
                format!("a direct call takes {}", micros(latency.median_of(direct))),
                latency_bar,
            ),
        ] {
            table.row(Row {
                figure,
                ours: micros(added),
                other,
                value: added,
                unit: Unit::Micros,
                bar,
            });
        }
    }
    Ok(())
}

/// Tasks from creation to result, compared with plain calls.
pub(crate) fn tasks(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    for (generation, lifecycle) in [
        (Generation::V1, "V1 task (create, get, result)"),
        (Generation::V2, "V2 task (create, get)"),
    ] {
        for sessions in SESSIONS {
            let sides = [
                Side::Pipe(Pipe::start(sessions)?),
                Side::Http(environment.ours(Upstream::Child, generation)?),
                Side::Http(environment.ours(Upstream::Child, generation)?),
            ];
            let operations = [
                ClientOperation::Call,
                ClientOperation::Call,
                ClientOperation::Lifecycle,
            ];
            let rounds = environment.gateway_rounds(operations, sessions, sides)?;
            let costs = rounds.map(|cost| cost.processor);
            let times = rounds.map(|cost| cost.latency).minus(0);
            let show = |side| {
                let (cost, time) = (micros(costs.median_of(side)), micros(times.median_of(side)));
                format!("{cost} CPU, {time} median latency")
            };
            table.row(Row {
                figure: format!(
                    "added by a {lifecycle}, SQLite, {}; beside a plain call",
                    session_count(sessions)
                ),
                ours: show(2),
                other: show(1),
                value: costs.ratio(2, 1),
                unit: Unit::Ratio,
                bar: None,
            });
        }
    }
    Ok(())
}

impl Environment {
    fn gateway_rounds<const N: usize>(
        &self,
        operations: [ClientOperation; N],
        sessions: usize,
        mut sides: [Side; N],
    ) -> BenchResult<Rounds<N, Cost>> {
        for (side, operation) in sides.iter_mut().zip(operations) {
            if let Side::Http(target) = side {
                self.runtime.block_on(target.connect(sessions, operation))?;
            }
        }
        Rounds::run(self.scale.rounds, |side| {
            sides[side].measure(&self.runtime, operations[side], self.scale.turn)
        })
    }
}

fn session_count(sessions: usize) -> String {
    match sessions {
        1 => "1 session".to_owned(),
        n => format!("{n} sessions"),
    }
}

const SESSIONS: [usize; 2] = [1, 16];
