//! `outlast demo`: sample tools as durable tasks on an embedded store, in this process for now.

mod narrate;
mod serve;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::engine::{Event, NewCall};
use outlast::engine::store::Snapshot;
use outlast::engine::{Accepts, Answer, Engine, Owner, Scope, TaskId};
use outlast::front::RUNNER;
use outlast::wire::Raw;
use tracing::level_filters::LevelFilter;

use crate::args;
use crate::exit::Failure;
use crate::logs;
use crate::place;
use narrate::say;

/// Whose tasks the demo makes.
pub(crate) const OWNER: Owner = Owner::Local;

pub(crate) async fn run(args: args::Demo) -> Result<(), Failure> {
    logs::to_stderr(&args.logs, LevelFilter::WARN)?;
    let url = match args.store {
        Some(url) => url,
        None => place::demo_store()?,
    };
    let store = outlast::store::open_store(&url, Default::default()).await?;
    let tools = Arc::new(tools::samples(Duration::from_millis(args.step_ms)));
    let builder = Engine::builder(store.clone()).runner(RUNNER, tools.clone());
    let (engine, recovered) = builder.open().await?;
    narrate::welcome(&url, &engine, recovered).await?;
    if let Some(address) = args.http {
        let server = serve::over_http(&engine, tools, address).await?;
        let drained = engine.shutdown(DRAIN).await;
        server.shutdown().await;
        drained?;
        store.close().await?;
        return Ok(());
    }

    let rounds = async {
        for round in 1..=args.rounds {
            if args.rounds > 1 {
                say(format_args!("round {round} of {}", args.rounds));
            }
            run_samples(&engine, &tools).await?;
        }
        Ok::<_, Failure>(())
    };
    let done = tokio::select! {
        done = rounds => done,
        _ = tokio::signal::ctrl_c() => {
            say(format_args!("stopping: what runs has 10 s to finish, the rest is settled at the next start"));
            Ok(())
        }
    };
    engine.clone().shutdown(DRAIN).await?;
    done?;
    narrate::farewell(&url, &engine).await?;
    store.close().await?;
    Ok(())
}

/// Runs every sample once, all at the same time, and tells what happens.
async fn run_samples(engine: &Engine, tools: &outlast::Tools) -> Result<(), Failure> {
    let mut watched = tokio::task::JoinSet::new();
    for (tool, arguments) in tools::calls() {
        let params = serde_json::json!({ "name": tool, "arguments": arguments });
        let params = Raw::encode(&params).map_err(std::io::Error::other)?;
        let call = NewCall::new(OWNER, tools.origin(RUNNER, tool, params, Accepts::all()));
        let created = engine.create(call).await?;
        let id = created.task().id;
        say(format_args!(
            "{tool:<10} {id}  working         accepted and stored"
        ));
        watched.spawn(follow(engine.clone(), id, tool));
    }
    while let Some(followed) = watched.join_next().await {
        followed.map_err(std::io::Error::other)??;
    }
    Ok(())
}

/// Tells what happens to a task until it ends, and answers its questions as a person would.
async fn follow(engine: Engine, id: TaskId, tool: &'static str) -> Result<(), Failure> {
    let scope = Scope::Of(OWNER);
    let mut watch = engine.watch(&scope, id).await?;
    if let Snapshot::Open(task) = &watch.first {
        answer(&engine, task).await?;
    }
    while let Some(event) = watch.next().await {
        narrate::event(tool, id, &event);
        if let Event::Stored(task) = &event {
            answer(&engine, task).await?;
        }
    }
    let settled = engine.wait(&scope, id).await?;
    narrate::outcome(tool, id, &settled);
    Ok(())
}

async fn answer(engine: &Engine, task: &outlast::engine::Task) -> Result<(), Failure> {
    let Some(outstanding) = task.outstanding() else {
        return Ok(());
    };
    let yes =
        Raw::encode(&serde_json::json!({ "action": "accept", "content": { "confirm": true } }))
            .map_err(std::io::Error::other)?;
    let answers: BTreeMap<_, _> = outstanding
        .iter()
        .map(|(key, _)| (key.clone(), Answer::Result(yes.clone())))
        .collect();
    tokio::time::sleep(Duration::from_millis(800)).await;
    say(format_args!(
        "           {}  (the demo answers: yes)",
        task.id
    ));
    engine
        .answer(&Scope::Of(task.owner.clone()), task.id, answers)
        .await?;
    Ok(())
}

/// How long running calls may go on when the demo stops.
const DRAIN: Duration = Duration::from_secs(10);
