//! Races of a call that becomes a task with its end, with a caller that disconnects, and with other
//! callers.

use outlast_engine::engine::Promotion;
use shuttle::future::{spawn, yield_now};

use crate::harness::{Harness, ada, answer_first, call, explore, owner, waiter};
use crate::tools::{done, random_pause};

#[test]
fn a_call_ending_while_stored_gets_one_response() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let running = engine.start(call("step")).unwrap();
        let id = running.id();
        match running.promote().await.map_err(|(_, error)| error).unwrap() {
            Promotion::Stored(_) => {
                let settled = waiter(&engine, id).await.unwrap().unwrap();
                assert_eq!(settled.body.as_ref(), done().body());
            }
            Promotion::Finished(outcome) => {
                assert_eq!(outcome, done());
                assert_eq!(engine.usage(&owner()).await.unwrap().retained, 0);
            }
        }
        harness.finish([engine]).await;
        assert_eq!(harness.tools.started_attempts(), 1);
    });
}

#[test]
fn a_dropped_promotion_leaves_a_task_that_ends_or_nothing() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let running = engine.start(call("step")).unwrap();
        let leaving = spawn(async move {
            tokio::select! {
                biased;
                promoted = running.promote() => drop(promoted),
                () = random_pause() => {}
            }
        });
        leaving.await.unwrap();
        harness.finish([engine]).await;
    });
}

#[test]
fn a_dropped_plain_call_leaves_nothing() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let mut running = engine.start(call("talk")).unwrap();
        let leaving = spawn(async move {
            tokio::select! {
                biased;
                outcome = running.outcome() => assert_eq!(outcome, done()),
                () = random_pause() => {}
            }
        });
        leaving.await.unwrap();
        harness.finish([engine]).await;
        assert!(harness.store_is_empty().await);
    });
}

#[test]
fn a_call_found_while_it_is_stored_can_be_awaited() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let running = engine.start(call("step")).unwrap();
        let id = running.id();
        let finder = spawn({
            let engine = engine.clone();
            async move {
                random_pause().await;
                // Found in the list, or not stored.
                if engine.get(&ada(), id).await.is_ok() {
                    let _ = engine.wait(&ada(), id).await;
                }
            }
        });
        let _ = running.promote().await.map_err(|(_, error)| error).unwrap();
        finder.await.unwrap();
        harness.finish([engine]).await;
    });
}

#[test]
fn a_call_found_while_it_is_stored_can_be_changed() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let running = engine.start(call("step")).unwrap();
        let id = running.id();
        let finder = spawn({
            let engine = engine.clone();
            async move {
                random_pause().await;
                let _ = engine.extend(&ada(), id, 500).await;
            }
        });
        let _ = running.promote().await.map_err(|(_, error)| error).unwrap();
        finder.await.unwrap();
        harness.finish([engine]).await;
    });
}

#[test]
fn an_input_request_survives_the_promotion_of_its_call() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let running = engine.start(call("ask")).unwrap();
        let id = running.id();
        let promoted = running.promote().await.map_err(|(_, error)| error).unwrap();
        assert!(matches!(promoted, Promotion::Stored(_)));
        answer_first(&engine, id).await;
        let settled = waiter(&engine, id).await.unwrap().unwrap();
        assert!(settled.body.is_some());
        harness.finish([engine]).await;
    });
}

impl Harness {
    async fn store_is_empty(&self) -> bool {
        use outlast_engine::Store;
        yield_now().await;
        self.store.usage(&owner()).await.unwrap().retained == 0
    }
}
