//! Races between expiry and other operations.

use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::store::Snapshot;
use shuttle::future::{spawn, yield_now};

use crate::harness::{ada, call, create, explore, is_whole, owner, waiter};

fn short(tool: &str) -> outlast_engine::engine::NewCall {
    let mut short = call(tool);
    short.ttl = Some(Duration::from_millis(1_000));
    short
}

#[test]
fn a_waiter_at_expiry_gets_outcome_or_error() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, short("step")).await;
        let waiters = [waiter(&engine, id), waiter(&engine, id)];
        let clock = harness.clock.clone();
        let time = spawn(async move { clock.advance(1_000) });
        for waiter in waiters {
            match waiter.await.unwrap() {
                Ok(settled) => assert!(is_whole(&settled), "{settled:?}"),
                Err(error) => assert!(
                    matches!(error, EngineError::Expired | EngineError::NotFound),
                    "{error}"
                ),
            }
        }
        time.await.unwrap();
        // P3: removed from the store.
        while harness.snapshot(id).await.is_some() {
            yield_now().await;
        }
        harness.finish([engine]).await;
    });
}

#[test]
fn a_task_extended_at_its_expiry_is_removed_or_runs() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, short("linger")).await;
        let extend = spawn({
            let engine = engine.clone();
            async move { engine.extend(&ada(), id, 3_000).await }
        });
        let clock = harness.clock.clone();
        let time = spawn(async move { clock.advance(1_000) });
        let extended = extend.await.unwrap();
        time.await.unwrap();
        match extended {
            Ok(_) => {
                // P1, P4: an acknowledged extension is stored, and the work has an executor.
                let Some(Snapshot::Open(_)) = harness.snapshot(id).await else {
                    panic!("it was extended");
                };
                for _ in 0..20 {
                    yield_now().await;
                }
                assert_eq!(engine.running(), 1);
                let _ = engine.cancel_now(&ada(), id).await.unwrap();
            }
            Err(error) => assert!(
                matches!(error, EngineError::Expired | EngineError::NotFound),
                "{error}"
            ),
        }
        harness.finish([engine]).await;
    });
}

#[test]
fn an_uncooperative_runner_is_aborted_once() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("linger")).await;
        let waiter = waiter(&engine, id);
        engine.request_cancel(&ada(), id).await.unwrap();
        harness
            .clock
            .advance(engine.policy().cancel_timeout.as_millis() as u64);
        assert!(is_whole(&waiter.await.unwrap().unwrap()));
        harness.finish([engine]).await;
    });
}

#[test]
fn a_task_that_expires_while_it_is_created_leaves_nothing() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let clock = harness.clock.clone();
        let time = spawn(async move { clock.advance(1_000) });
        let created = engine.create(short("linger")).await;
        time.await.unwrap();
        harness.clock.advance(1_000);
        assert!(created.is_ok());
        while engine.usage(&owner()).await.unwrap().retained > 0 {
            yield_now().await;
        }
        harness.finish([engine]).await;
    });
}
