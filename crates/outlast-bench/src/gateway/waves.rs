//! A thousand tasks at once, over and over: all of them end, and memory does not grow from wave to wave.

use std::time::Duration;

use tokio::task::JoinSet;

use super::Stage;
use super::sides::{Keeps, Owners};
use crate::Done;
use crate::http::dialect::{Generation, Speaker};
use crate::http::serve::GATED;
use crate::http::target::Target;
use crate::machine::resident_of;
use crate::table::{Bar, Row, Table, Unit, whole};

pub(super) fn rows(stage: &Stage, table: &mut Table) -> Done<()> {
    // Each owner may have 32 tasks that run.
    let gateway = stage.ours(Generation::V1, Keeps::Sqlite, Owners::Sessions)?;
    let waves = stage.runtime.block_on(waves(&gateway))?;
    let (Some(cold), Some(first), Some(last)) = (waves.first(), waves.get(FILLING), waves.last())
    else {
        return Err("there were too few waves".into());
    };
    let tasks = (OWNERS * GATED) as f64;
    let each = (cold.running as f64 - cold.before as f64) / tasks;
    table.row(Row {
        figure: format!(
            "memory of a running task, {} at once on one gateway, all ended",
            whole(tasks)
        ),
        ours: format!("{} B", whole(each)),
        other: String::new(),
        value: each,
        unit: Unit::Bytes,
        bar: Bar::None,
    });
    let shown = |wave: &Wave| format!("{} KiB", whole(wave.running as f64 / 1024.0));
    table.row(Row {
        figure: format!(
            "memory of the gateway in wave {WAVES} of them; beside wave {}, by which what is bounded is full",
            FILLING + 1
        ),
        ours: shown(last),
        other: shown(first),
        value: last.running as f64 / first.running as f64,
        unit: Unit::Ratio,
        bar: Bar::AtMost(1.1),
    });
    let ended = (WAVES - 1 - FILLING) as f64 * tasks;
    let left = (last.running as f64 - first.running as f64) / ended;
    table.row(Row {
        figure: "memory that a task leaves behind when it has ended, from then on".to_owned(),
        ours: format!("{} B", whole(left)),
        other: String::new(),
        value: left,
        unit: Unit::Bytes,
        bar: Bar::AtMost(1024.0),
    });
    let each: Vec<_> = waves.iter().step_by(10).map(shown).collect();
    let each = each.join(", ");
    table.note(format!("memory of the gateway in every tenth wave: {each}"));
    Ok(())
}

/// What the gateway holds, in bytes.
struct Wave {
    before: u64,
    /// While all tasks run.
    running: u64,
}

async fn waves(gateway: &Target) -> Done<Vec<Wave>> {
    let mut speakers = Vec::new();
    for _ in 0..OWNERS {
        let mut speaker = gateway.speaker().await?;
        // With this its upstream is there.
        speaker.call("plain").await?;
        speakers.push(speaker);
    }
    let mut waves = Vec::new();
    for _ in 0..WAVES {
        let before = resident_of(gateway.process())?;
        let created = all(speakers, create).await?;
        // All have arrived at the upstream soon, and none ends before it is released.
        tokio::time::sleep(SETTLING).await;
        let running = resident_of(gateway.process())?;
        speakers = all(created, finish).await?;
        waves.push(Wave { before, running });
    }
    Ok(waves)
}

/// Every speaker at the same time.
async fn all<A, B, F>(those: Vec<A>, work: fn(A) -> F) -> Done<Vec<B>>
where
    B: Send + 'static,
    F: Future<Output = Done<B>> + Send + 'static,
{
    let mut busy = JoinSet::new();
    for one in those {
        busy.spawn(work(one));
    }
    let mut done = Vec::new();
    while let Some(one) = busy.join_next().await {
        done.push(one??);
    }
    Ok(done)
}

async fn create(mut speaker: Speaker) -> Done<(Speaker, Vec<String>)> {
    let mut tasks = Vec::new();
    for _ in 0..GATED {
        speaker.create("gated").await?;
        tasks.push(speaker.task().to_owned());
    }
    Ok((speaker, tasks))
}

async fn finish((mut speaker, tasks): (Speaker, Vec<String>)) -> Done<Speaker> {
    speaker.call("release").await?;
    for task in tasks {
        speaker.turn_to(task);
        speaker.result().await?;
    }
    Ok(speaker)
}

const WAVES: usize = 90;

/// Waves in which sessions fill what they may keep for a client that comes back, and the store its caches.
const FILLING: usize = 69;

/// How many there are, each with a session, an upstream and a share of the tasks.
const OWNERS: usize = 40;

const SETTLING: Duration = Duration::from_millis(500);
