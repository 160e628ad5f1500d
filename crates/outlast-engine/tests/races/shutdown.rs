//! Races between the shutdown of an engine, new work and the end of work.

use std::time::Duration;

use outlast_engine::engine::EngineError;
use shuttle::future::spawn;

use crate::harness::{ada, call, create, explore, is_whole, repeatable, waiter};

#[test]
fn a_task_of_a_leaving_node_is_finished_by_another() {
    explore(|harness| async move {
        let leaving = harness.engine().await;
        let staying = harness.engine().await;
        let creator = spawn({
            let leaving = leaving.clone();
            async move { leaving.create(repeatable("step")).await }
        });
        let closing = spawn(leaving.clone().shutdown(Duration::from_secs(1)));
        let created = creator.await.unwrap();
        closing.await.unwrap().unwrap();
        match created {
            Ok(created) => {
                let id = created.task().id;
                assert!(is_whole(&waiter(&staying, id).await.unwrap().unwrap()));
            }
            Err(error) => assert_eq!(error, EngineError::Closing),
        }
        harness.finish([staying]).await;
        assert_eq!((leaving.running(), leaving.subscribers()), (0, 0));
    });
}

#[test]
fn a_waiter_at_a_leaving_node_is_answered() {
    explore(|harness| async move {
        let leaving = harness.engine().await;
        let staying = harness.engine().await;
        let id = create(&leaving, call("step")).await;
        let here = waiter(&leaving, id);
        let there = waiter(&staying, id);
        let watcher = spawn({
            let leaving = leaving.clone();
            async move {
                let Ok(mut watch) = leaving.watch(&ada(), id).await else {
                    return;
                };
                while watch.next().await.is_some() {}
            }
        });
        leaving
            .clone()
            .shutdown(Duration::from_secs(1))
            .await
            .unwrap();
        match here.await.unwrap() {
            Ok(settled) => assert!(is_whole(&settled), "{settled:?}"),
            Err(error) => assert_eq!(error, EngineError::Closing),
        }
        assert!(is_whole(&there.await.unwrap().unwrap()));
        watcher.await.unwrap();
        harness.finish([staying]).await;
        assert_eq!((leaving.running(), leaving.subscribers()), (0, 0));
    });
}

#[test]
fn a_plain_call_is_answered_whenever_its_engine_ends() {
    explore(|harness| async move {
        let leaving = harness.engine().await;
        let caller = spawn({
            let leaving = leaving.clone();
            async move {
                if let Ok(mut running) = leaving.start(call("step")) {
                    while running.event().await.is_some() {}
                    running.outcome().await;
                }
            }
        });
        let closing = spawn(leaving.clone().shutdown(Duration::from_secs(1)));
        caller.await.unwrap();
        closing.await.unwrap().unwrap();
        assert_eq!((leaving.running(), leaving.subscribers()), (0, 0));
        harness.finish([]).await;
    });
}
