//! The cases that are run: a few by default, all of them by `cargo xtask soak gateway`.

use outlast_testkit::mcp::caller::ClientKind;
use outlast_testkit::mcp::endpoint::{TRANSPORTS, Transport};

use crate::cell::{Cell, ServerKind};
use crate::scenario::{self, Scenario};
use crate::states::{CALL_STATES, CallState, Case};

async fn run(cases: Vec<Case>) -> Vec<(Case, Option<String>)> {
    let scenario = |case: Case| -> (Case, Scenario) { (case, Box::pin(case.run())) };
    scenario::run_all(
        cases.into_iter().map(scenario).collect(),
        CONCURRENT_GATEWAYS,
    )
    .await
}

fn fail_if_wrong(results: &[(Case, Option<String>)]) {
    let wrong = results.iter().filter_map(|(case, wrong)| {
        let why = wrong.as_ref()?;
        let class = if case.may_repeat { "reads" } else { "once" };
        Some(format!(
            "{} ({class}): {}: {why}",
            case.state.word(),
            case.cell
        ))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_keeps_its_guarantees_in_the_riskiest_cases() {
    // BR-SEC-3, P1, P2, P4, P5.
    let cell = |client, server, server_transport| Cell {
        client,
        server,
        client_transport: Transport::Http,
        server_transport,
    };
    let case = |cell, state| Case {
        cell,
        state,
        may_repeat: false,
    };
    let found_again = cell(ClientKind::V1, ServerKind::V2, Transport::Http);
    let lost = cell(ClientKind::V2, ServerKind::PlainLegacy, Transport::Pipe);
    let cases = vec![
        case(found_again, CallState::Asked),
        case(
            cell(ClientKind::V1, ServerKind::V1, Transport::Http),
            CallState::Asked,
        ),
        case(found_again, CallState::Answered),
        case(lost, CallState::Finished),
        case(lost, CallState::Working),
        Case {
            may_repeat: true,
            ..case(lost, CallState::Working)
        },
    ];
    fail_if_wrong(&run(cases).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask soak gateway` plays every state of every cell"]
async fn a_killed_gateway_keeps_its_guarantees_in_every_case() {
    let mut cases = Vec::new();
    for cell in Cell::all() {
        // The transport of the client makes no difference to a kill, because everything is in the
        // store.
        if cell.client_transport == Transport::Pipe {
            continue;
        }
        for state in CALL_STATES {
            cases.extend([false, true].map(|may_repeat| Case {
                cell,
                state,
                may_repeat,
            }));
        }
    }
    let results = run(cases).await;
    println!(
        "| killed while the call is | once, server on a pipe | once, at a URL | read-only, on a pipe | read-only, at a URL |"
    );
    println!("|---|---|---|---|---|");
    for state in CALL_STATES {
        let mut shown = Vec::new();
        for may_repeat in [false, true] {
            for server_transport in TRANSPORTS {
                let here = |(case, _): &&(Case, Option<String>)| {
                    (case.state, case.may_repeat, case.cell.server_transport)
                        == (state, may_repeat, server_transport)
                };
                let here = || results.iter().filter(here);
                let right = here().filter(|(_, wrong)| wrong.is_none()).count();
                shown.push(format!("{right} of {}", here().count()));
            }
        }
        println!("| {} | {} |", state.word(), shown.join(" | "));
    }
    println!("\nthe gateway was killed {} times", results.len());
    fail_if_wrong(&results);
}

/// The number of gateways that run at the same time.
const CONCURRENT_GATEWAYS: usize = 6;
