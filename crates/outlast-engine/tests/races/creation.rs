//! Races between creations, some with the same request key.

use std::time::Duration;

use outlast_engine::engine::CreatedTask;
use shuttle::future::spawn;

use crate::harness::{ada, call, explore, waiter};
use crate::tools::random_pause;

#[test]
fn one_request_key_creates_one_task_and_one_run() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let creators = [(); 2].map(|()| {
            let engine = engine.clone();
            let mut keyed = call("step");
            keyed.request_key = Some("k".into());
            spawn(async move { engine.create(keyed).await.unwrap() })
        });
        let (mut new, mut ids) = (0, Vec::new());
        for creator in creators {
            let created = creator.await.unwrap();
            new += usize::from(matches!(created, CreatedTask::New(_)));
            ids.push(created.task().id);
        }
        assert_eq!(new, 1);
        assert_eq!(ids[0], ids[1]);
        waiter(&engine, ids[0]).await.unwrap().unwrap();
        harness.finish([engine]).await;
        assert_eq!(harness.tools.started_attempts(), 1);
    });
}

#[test]
fn a_dropped_creation_leaves_a_task_that_ends_or_nothing() {
    for faults in [0, 2] {
        explore(move |harness| async move {
            *harness.store.faults.lock().unwrap() = faults;
            let engine = harness.engine().await;
            let creator = engine.clone();
            let leaving = spawn(async move {
                tokio::select! {
                    biased;
                    created = creator.create(call("step")) => drop(created),
                    () = random_pause() => {}
                }
            });
            leaving.await.unwrap();
            harness.finish([engine]).await;
        });
    }
}

#[test]
fn a_task_found_by_its_key_can_be_cancelled_immediately() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let actors = [(); 2].map(|()| {
            let engine = engine.clone();
            let mut keyed = call("linger");
            keyed.request_key = Some("k".into());
            spawn(async move {
                let id = engine.create(keyed).await.unwrap().task().id;
                let _ = engine.cancel_now(&ada(), id).await;
            })
        });
        for actor in actors {
            actor.await.unwrap();
        }
        // The work of an ended task does not continue.
        harness.finish([engine]).await;
    });
}

#[test]
fn an_expired_key_names_a_new_task_for_every_waiter() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let keyed = |tool| {
            let mut keyed = call(tool);
            keyed.request_key = Some("k".into());
            keyed.ttl = Some(Duration::from_millis(1_000));
            keyed
        };
        let id = engine.create(keyed("linger")).await.unwrap().task().id;
        let waiter_of_the_first = waiter(&engine, id);
        harness.clock.advance(1_000);
        let again = engine.create(keyed("linger")).await.unwrap();
        assert_ne!(again.task().id, id);
        assert!(waiter_of_the_first.await.unwrap().is_err());
        let _ = engine.cancel_now(&ada(), again.task().id).await.unwrap();
        harness.finish([engine]).await;
    });
}
