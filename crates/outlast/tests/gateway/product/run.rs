//! Plays events in cells, many at a time, and says what came out.

use outlast_testkit::mcp::entrance::{WAYS, Way};

use super::scenes::EVENTS;
use crate::cell::Cell;
use crate::playing;

/// A scene that was played, by the place of its event, and what was wrong if anything was.
struct Played {
    event: usize,
    cell: Cell,
    wrong: Option<String>,
}

async fn play(cells: &[Cell]) -> Vec<Played> {
    // Whoever looks for a fault plays one scene again and again.
    let only = std::env::var("OUTLAST_SCENES").unwrap_or_default();
    let mut scenes = Vec::new();
    for (event, happens) in EVENTS.iter().enumerate() {
        for cell in cells.iter().copied() {
            let name = format!("{}: {cell}", happens.name);
            if (happens.can_happen)(cell) && name.contains(&only) {
                scenes.push(((event, cell), (happens.scene)(cell)));
            }
        }
    }
    assert!(!scenes.is_empty(), "no scene has {only:?} in its name");
    let played = playing::play(scenes, AT_ONCE).await;
    let played = played.into_iter();
    let mut played: Vec<_> = played
        .map(|((event, cell), wrong)| Played { event, cell, wrong })
        .collect();
    played.sort_by_key(|played| played.event);
    played
}

fn fail_if_wrong(played: &[Played]) {
    let wrong: Vec<_> = played
        .iter()
        .filter_map(|played| {
            let why = played.wrong.as_ref()?;
            Some(format!(
                "{}: {}: {why}",
                EVENTS[played.event].name, played.cell
            ))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_comes_out_right_in_cells_that_meet_every_pair_of_client_server_and_ways() {
    // Bridge §17; issue point "Proof". BR-CAN-3, BR-CAN-7, BR-CAN-8, BR-CAN-10, BR-TTL-3, BR-GEN-7, BR-SEC-3.
    fail_if_wrong(&play(&Cell::pairs()).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask soak gateway` plays the whole product"]
async fn every_event_comes_out_right_in_every_cell_on_every_way() {
    let played = play(&Cell::all()).await;
    let ways = WAYS.map(|front| WAYS.map(|back| (front, back)));
    let ways = ways.as_flattened();
    let heads: Vec<_> = ways
        .iter()
        .map(|(front, back)| head(*front, *back))
        .collect();
    println!("| event | {} |", heads.join(" | "));
    println!("|---{}|", "|---".repeat(ways.len()));
    for (event, happens) in EVENTS.iter().enumerate() {
        let shown = ways.iter().map(|(front, back)| {
            let here = |played: &&Played| {
                let cell = played.cell;
                played.event == event && (cell.front, cell.back) == (*front, *back)
            };
            let here = || played.iter().filter(here);
            let right = here().filter(|played| played.wrong.is_none()).count();
            format!("{right} of {}", here().count())
        });
        let shown: Vec<_> = shown.collect();
        println!("| {} | {} |", happens.name, shown.join(" | "));
    }
    println!("\n{} scenes were played", played.len());
    fail_if_wrong(&played);
}

#[test]
fn every_pair_of_client_server_and_ways_is_met_by_the_default_run() {
    let pairs = Cell::pairs();
    for wanted in Cell::all() {
        let met = |alike: fn(&Cell, &Cell) -> bool| pairs.iter().any(|cell| alike(cell, &wanted));
        assert!(
            met(|a, b| (a.client, a.server) == (b.client, b.server))
                && met(|a, b| (a.client, a.front) == (b.client, b.front))
                && met(|a, b| (a.client, a.back) == (b.client, b.back))
                && met(|a, b| (a.server, a.front) == (b.server, b.front))
                && met(|a, b| (a.server, a.back) == (b.server, b.back))
                && met(|a, b| (a.front, a.back) == (b.front, b.back)),
            "{wanted}"
        );
    }
}

/// The name of a column.
fn head(front: Way, back: Way) -> String {
    let word = |way| match way {
        Way::Pipe => "pipe",
        Way::Http => "HTTP",
    };
    format!("client on {}, server on {}", word(front), word(back))
}

/// How many scenes are played at a time: most of them wait.
const AT_ONCE: usize = 24;
