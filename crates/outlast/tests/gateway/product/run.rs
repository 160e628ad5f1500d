//! Runs events in cells concurrently, and reports the results.

use outlast_testkit::mcp::endpoint::{TRANSPORTS, Transport};

use super::scenarios::EVENTS;
use crate::cell::Cell;
use crate::scenario;

/// The result of a scenario: the index of its event, and its failure, if any.
struct ScenarioResult {
    event: usize,
    cell: Cell,
    failure: Option<String>,
}

async fn run_events(cells: &[Cell]) -> Vec<ScenarioResult> {
    // A name in the environment selects single scenarios.
    let only = std::env::var("OUTLAST_SCENARIOS").unwrap_or_default();
    let mut scenarios = Vec::new();
    for (event, event_case) in EVENTS.iter().enumerate() {
        for cell in cells.iter().copied() {
            let name = format!("{}: {cell}", event_case.name);
            if (event_case.is_possible)(cell) && name.contains(&only) {
                scenarios.push(((event, cell), (event_case.scenario)(cell)));
            }
        }
    }
    assert!(
        !scenarios.is_empty(),
        "no scenario has {only:?} in its name"
    );
    let results = scenario::run_all(scenarios, CONCURRENT_SCENARIOS).await;
    let results = results.into_iter();
    let mut results: Vec<_> = results
        .map(|((event, cell), failure)| ScenarioResult {
            event,
            cell,
            failure,
        })
        .collect();
    results.sort_by_key(|results| results.event);
    results
}

fn fail_if_any_failed(results: &[ScenarioResult]) {
    let failure: Vec<_> = results
        .iter()
        .filter_map(|results| {
            let why = results.failure.as_ref()?;
            Some(format!(
                "{}: {}: {why}",
                EVENTS[results.event].name, results.cell
            ))
        })
        .collect();
    assert!(failure.is_empty(), "{}", failure.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_succeeds_for_every_pair_of_settings() {
    // BR-CAN-3, BR-CAN-7, BR-CAN-8, BR-CAN-10, BR-TTL-3, BR-GEN-7,
    // BR-SEC-3.
    fail_if_any_failed(&run_events(&Cell::pairs()).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask soak gateway` runs all combinations"]
async fn every_event_succeeds_in_every_cell() {
    let results = run_events(&Cell::all()).await;
    let ways = TRANSPORTS.map(|client_transport| {
        TRANSPORTS.map(|server_transport| (client_transport, server_transport))
    });
    let ways = ways.as_flattened();
    let heads: Vec<_> = ways
        .iter()
        .map(|(client_transport, server_transport)| head(*client_transport, *server_transport))
        .collect();
    println!("| event | {} |", heads.join(" | "));
    println!("|---{}|", "|---".repeat(ways.len()));
    for (event, event_case) in EVENTS.iter().enumerate() {
        let shown = ways.iter().map(|(client_transport, server_transport)| {
            let here = |results: &&ScenarioResult| {
                let cell = results.cell;
                results.event == event
                    && (cell.client_transport, cell.server_transport)
                        == (*client_transport, *server_transport)
            };
            let here = || results.iter().filter(here);
            let right = here().filter(|results| results.failure.is_none()).count();
            format!("{right} of {}", here().count())
        });
        let shown: Vec<_> = shown.collect();
        println!("| {} | {} |", event_case.name, shown.join(" | "));
    }
    println!("\n{} scenarios ran", results.len());
    fail_if_any_failed(&results);
}

#[test]
fn the_default_run_covers_every_pair() {
    let pairs = Cell::pairs();
    for wanted in Cell::all() {
        let met = |alike: fn(&Cell, &Cell) -> bool| pairs.iter().any(|cell| alike(cell, &wanted));
        assert!(
            met(|a, b| (a.client, a.server) == (b.client, b.server))
                && met(|a, b| (a.client, a.client_transport) == (b.client, b.client_transport))
                && met(|a, b| (a.client, a.server_transport) == (b.client, b.server_transport))
                && met(|a, b| (a.server, a.client_transport) == (b.server, b.client_transport))
                && met(|a, b| (a.server, a.server_transport) == (b.server, b.server_transport))
                && met(|a, b| (a.client_transport, a.server_transport)
                    == (b.client_transport, b.server_transport)),
            "{wanted}"
        );
    }
}

/// The heading of a column.
fn head(client_transport: Transport, server_transport: Transport) -> String {
    let word = |way| match way {
        Transport::Pipe => "pipe",
        Transport::Http => "HTTP",
    };
    format!(
        "client on {}, server on {}",
        word(client_transport),
        word(server_transport)
    )
}

/// How many scenarios run concurrently. Most of them wait.
const CONCURRENT_SCENARIOS: usize = 24;
