//! A store that fails writes as unavailable, before or after the commit. The caller cannot
//! distinguish the two.

use std::time::Duration;

use outlast_engine::engine::{EngineError, Promotion};
use outlast_engine::{Ending, Store};
use shuttle::future::{spawn, yield_now};

use crate::harness::{
    Harness, accept, ada, call, create, explore, is_whole, open_keys, owner, repeatable, waiter,
};
use crate::tools::done;

impl Harness {
    /// Makes up to `count` writes fail from now on.
    fn fail_writes(&self, count: usize) {
        *self.store.faults.lock().unwrap() = count;
    }
}

#[test]
fn an_outcome_reaches_waiters_despite_lost_replies() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("talk")).await;
        harness.fail_writes(3);
        let waiters = [waiter(&engine, id), waiter(&engine, id)];
        for waiter in waiters {
            let settled = waiter.await.unwrap().unwrap();
            assert_eq!(settled.body.as_ref(), done().body());
        }
        harness.finish([engine]).await;
    });
}

#[test]
fn a_cancellation_with_a_lost_reply_stops_the_work() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("linger")).await;
        harness.fail_writes(2);
        let waiter = waiter(&engine, id);
        loop {
            match engine.cancel_now(&ada(), id).await {
                Err(EngineError::Store(error)) if error.is_transient() => {}
                _ => break,
            }
        }
        assert_eq!(
            waiter.await.unwrap().unwrap().summary.ending,
            Ending::Cancelled
        );
        harness.finish([engine]).await;
    });
}

#[test]
fn an_input_response_with_a_lost_reply_reaches_the_work() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask")).await;
        let key = loop {
            let task = engine.load(&ada(), id).await.unwrap();
            if let [key, ..] = &open_keys(&task)[..] {
                break key.clone();
            }
            yield_now().await;
        };
        harness.fail_writes(2);
        while engine
            .provide_input(&ada(), id, accept(&key))
            .await
            .is_err()
        {}
        let settled = waiter(&engine, id).await.unwrap().unwrap();
        assert!(is_whole(&settled), "{settled:?}");
        harness.finish([engine]).await;
    });
}

#[test]
fn an_input_request_with_a_lost_reply_is_closed() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask-briefly")).await;
        harness.fail_writes(2);
        crate::input::until_no_input_is_awaited(&harness, id).await;
        while engine.request_cancel(&ada(), id).await.is_err() {}
        harness.finish([engine]).await;
    });
}

#[test]
fn a_creation_with_a_lost_reply_leaves_no_idle_task() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        harness.fail_writes(2);
        let created = engine.create(call("step")).await;
        if let Ok(created) = created {
            let settled = waiter(&engine, created.task().id).await.unwrap().unwrap();
            assert_eq!(settled.body.as_ref(), done().body());
        }
        harness.finish([engine]).await;
        assert!(harness.tools.started_attempts() <= 1);
    });
}

#[test]
fn a_keyed_creation_with_a_lost_reply_can_be_repeated() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        harness.fail_writes(2);
        let mut keyed = call("step");
        keyed.request_key = Some("k".into());
        let created = loop {
            if let Ok(created) = engine.create(keyed.clone()).await {
                break created;
            }
        };
        let settled = waiter(&engine, created.task().id).await.unwrap().unwrap();
        assert_eq!(settled.body.as_ref(), done().body());
        harness.finish([engine]).await;
        assert_eq!(harness.tools.started_attempts(), 1);
    });
}

#[test]
fn a_promotion_with_a_lost_reply_leaves_one_call() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        harness.fail_writes(3);
        let mut running = engine.start(call("step")).unwrap();
        let id = running.id();
        let promoted = loop {
            match running.promote().await {
                Ok(promoted) => break promoted,
                Err((back, _)) => running = *back,
            }
            yield_now().await;
        };
        match promoted {
            Promotion::Stored(_) => {
                let settled = waiter(&engine, id).await.unwrap().unwrap();
                assert_eq!(settled.body.as_ref(), done().body());
            }
            Promotion::Finished(outcome) => assert_eq!(outcome, done()),
        }
        harness.finish([engine]).await;
        let kept = harness.store.usage(&owner()).await.unwrap();
        assert_eq!(kept.open, 0);
    });
}

#[test]
fn a_takeover_with_a_lost_reply_is_completed() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let id = create(&old, repeatable("step")).await;
        let one = harness.engine().await;
        harness.fail_writes(2);
        harness.store.leave(old.node()).await.unwrap();
        let waiters = [waiter(&old, id), waiter(&one, id)];
        for waiter in waiters {
            assert!(is_whole(&waiter.await.unwrap().unwrap()));
        }
        harness.finish([old, one]).await;
    });
}

#[test]
fn a_removal_with_a_lost_reply_answers_every_waiter() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let mut short = call("linger");
        short.ttl = Some(Duration::from_millis(1_000));
        let id = create(&engine, short).await;
        harness.fail_writes(2);
        let waiter = waiter(&engine, id);
        let clock = harness.clock.clone();
        let time = spawn(async move { clock.advance(1_000) });
        assert!(waiter.await.unwrap().is_err());
        time.await.unwrap();
        while harness.snapshot(id).await.is_some() {
            yield_now().await;
        }
        harness.finish([engine]).await;
    });
}
