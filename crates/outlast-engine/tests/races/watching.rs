//! Races of watchers with changes, and watchers that stop.

use outlast_engine::Revision;
use outlast_engine::engine::Event;
use outlast_engine::store::Snapshot;
use shuttle::future::spawn;

use crate::harness::{ada, call, create, explore};
use crate::tools::random_pause;

#[test]
fn a_watcher_sees_a_task_go_forward_to_its_end() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("talk")).await;
        let staying = spawn({
            let engine = engine.clone();
            async move {
                let mut watch = engine.watch(&ada(), id).await.unwrap();
                let (mut revision, mut ended) = match &watch.first {
                    Snapshot::Open(task) => (task.revision, false),
                    Snapshot::Ended(summary) => (summary.revision, true),
                };
                while let Some(event) = watch.next().await {
                    let Event::Stored(task) = event else { continue };
                    assert!(task.revision > revision, "it went back");
                    revision = task.revision;
                    ended |= task.state.ending().is_some();
                }
                assert!(ended, "the end was not seen");
            }
        });
        let leaving = spawn({
            let engine = engine.clone();
            async move {
                let Ok(mut watch) = engine.watch(&ada(), id).await else {
                    return;
                };
                tokio::select! {
                    biased;
                    () = random_pause() => {}
                    event = watch.next() => drop(event),
                }
            }
        });
        staying.await.unwrap();
        leaving.await.unwrap();
        harness.finish([engine]).await;
    });
}

#[test]
fn status_texts_are_stored_in_their_order() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("count")).await;
        let mut watch = engine.watch(&ada(), id).await.unwrap();
        // A change of the task makes its writers retry.
        let changing = spawn({
            let engine = engine.clone();
            async move {
                for ttl in [2_000, 3_000] {
                    let _ = engine.extend(&ada(), id, ttl).await;
                }
            }
        });
        let mut last = String::new();
        while let Some(event) = watch.next().await {
            let Event::Stored(task) = event else { continue };
            let message = task.message.as_deref().unwrap_or_default().to_owned();
            assert!(
                message >= last || task.state.ending().is_some(),
                "{message} after {last}"
            );
            last = message;
        }
        changing.await.unwrap();
        drop(watch);
        harness.finish([engine]).await;
    });
}

#[test]
fn the_last_event_of_a_watcher_is_the_newest() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("linger")).await;
        let mut watch = engine.watch(&ada(), id).await.unwrap();
        let changes = [2_000, 3_000].map(|ttl| {
            let engine = engine.clone();
            spawn(async move { engine.extend(&ada(), id, ttl).await.unwrap() })
        });
        for change in changes {
            let _ = change.await.unwrap();
        }
        let ended = engine.cancel_now(&ada(), id).await.unwrap().revision;
        let mut last = Revision(0);
        while let Some(event) = watch.next().await {
            let Event::Stored(task) = event else { continue };
            assert!(task.revision > last, "an older event came later");
            last = task.revision;
        }
        assert_eq!(last, ended);
        drop(watch);
        harness.finish([engine]).await;
    });
}
