//! What the demo tells its user, a line at a time.

use outlast::engine::engine::{Event, Recovered, Settled};
use outlast::engine::store::Snapshot;
use outlast::engine::{Engine, TaskId};
use outlast::store::StoreUrl;
use outlast::wire::v1;

use super::OWNER;
use crate::exit::Failure;
use crate::place;

/// Talk goes to stderr.
pub(super) fn say(line: std::fmt::Arguments<'_>) {
    eprintln!("{line}");
}

pub(super) async fn welcome(
    url: &StoreUrl,
    engine: &Engine,
    recovered: Recovered,
) -> Result<(), Failure> {
    say(format_args!("Outlast demo, process {}", std::process::id()));
    say(format_args!("  store    {}", place::shown(url)));
    say(format_args!(
        "  kill it  kill -9 {}   then run the demo again",
        std::process::id()
    ));
    let finished = finished(engine).await?;
    let Recovered {
        reattached,
        rerun,
        cancelled,
        unknown,
    } = recovered;
    if finished > 0 {
        say(format_args!(
            "  found    {finished} finished tasks of earlier runs, still readable"
        ));
    }
    if recovered != Recovered::default() {
        say(format_args!(
            "  settled  tasks that were interrupted: {rerun} run again, {reattached} found again, \
             {cancelled} cancelled, {unknown} ended with \"outcome unknown\""
        ));
    }
    say(format_args!(""));
    Ok(())
}

pub(super) async fn farewell(url: &StoreUrl, engine: &Engine) -> Result<(), Failure> {
    let finished = finished(engine).await?;
    let store = place::shown(url);
    say(format_args!(
        "\n{finished} finished tasks are stored; look at them with\n"
    ));
    say(format_args!("  outlast tasks list --store {store}"));
    Ok(())
}

pub(super) fn event(tool: &str, id: TaskId, event: &Event) {
    match event {
        Event::Stored(task) if task.state.ending().is_none() => {
            let status = v1::status(task.phase());
            let asked = task
                .outstanding()
                .map(|_| "waits for an answer")
                .unwrap_or_default();
            say(format_args!(
                "{tool:<10} {id}  {status:<14} {}",
                task.message.as_deref().unwrap_or(asked)
            ));
        }
        Event::Progress(progress) => {
            let total = progress
                .total
                .map(|total| format!(" of {total}"))
                .unwrap_or_default();
            say(format_args!(
                "{tool:<10} {id}  working         {}{total}",
                progress.done
            ));
        }
        Event::Log(log) => {
            let (level, data) = (log.level, log.data.as_str());
            say(format_args!("{tool:<10} {id}  {level:<14} {data}"));
        }
        Event::Stored(_) | Event::Plain(_) => {}
    }
}

pub(super) fn outcome(tool: &str, id: TaskId, settled: &Settled) {
    let status = v1::status(settled.brief.phase());
    let body = settled.body.as_ref().map_or("", |body| body.as_str());
    say(format_args!("{tool:<10} {id}  {status:<14} {body}"));
}

async fn finished(engine: &Engine) -> Result<usize, Failure> {
    let mut finished = 0;
    let mut cursor = None;
    loop {
        let page = engine.page(&OWNER, cursor.as_deref(), 500).await?;
        finished += page
            .tasks
            .iter()
            .filter(|task| matches!(task, Snapshot::Ended(_)))
            .count();
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(finished),
        }
    }
}
