//! A store that fails writes as unavailable, before or after the commit. The caller cannot
//! distinguish the two.

use outlast_engine::engine::{EngineError, Promotion};
use outlast_engine::{Ending, Store};
use shuttle::future::{spawn, yield_now};

use crate::harness::{
    Stage, accept, ada, call, create, explore, is_whole, open_keys, owner, repeatable, waiter,
};
use crate::tools::done;

impl Stage {
    /// Makes up to `count` writes fail from now on.
    fn trouble(&self, count: usize) {
        *self.store.faults.lock().unwrap() = count;
    }
}

#[test]
fn an_outcome_reaches_waiters_despite_lost_replies() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        let id = create(&engine, call("talk")).await;
        stage.trouble(3);
        let waiters = [waiter(&engine, id), waiter(&engine, id)];
        for waiter in waiters {
            let settled = waiter.await.unwrap().unwrap();
            assert_eq!(settled.body.as_ref(), done().body());
        }
        stage.curtain([engine]).await;
    });
}

#[test]
fn a_cancellation_with_a_lost_reply_stops_the_work() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        let id = create(&engine, call("linger")).await;
        stage.trouble(2);
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
        stage.curtain([engine]).await;
    });
}

#[test]
fn an_input_response_with_a_lost_reply_reaches_the_work() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        let id = create(&engine, call("ask")).await;
        let key = loop {
            let task = engine.load(&ada(), id).await.unwrap();
            if let [key, ..] = &open_keys(&task)[..] {
                break key.clone();
            }
            yield_now().await;
        };
        stage.trouble(2);
        while engine
            .provide_input(&ada(), id, accept(&key))
            .await
            .is_err()
        {}
        let settled = waiter(&engine, id).await.unwrap().unwrap();
        assert!(is_whole(&settled), "{settled:?}");
        stage.curtain([engine]).await;
    });
}

#[test]
fn an_input_request_with_a_lost_reply_does_not_stay_open() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        let id = create(&engine, call("ask-briefly")).await;
        stage.trouble(2);
        crate::input::until_nothing_is_asked(&stage, id).await;
        while engine.request_cancel(&ada(), id).await.is_err() {}
        stage.curtain([engine]).await;
    });
}

#[test]
fn a_creation_with_a_lost_reply_leaves_a_running_task_or_none() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        stage.trouble(2);
        let created = engine.create(call("step")).await;
        if let Ok(created) = created {
            let settled = waiter(&engine, created.task().id).await.unwrap().unwrap();
            assert_eq!(settled.body.as_ref(), done().body());
        }
        stage.curtain([engine]).await;
        assert!(stage.tools.starts() <= 1);
    });
}

#[test]
fn a_keyed_creation_with_a_lost_reply_can_be_repeated() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        stage.trouble(2);
        let mut keyed = call("step");
        keyed.request_key = Some("k".into());
        let created = loop {
            if let Ok(created) = engine.create(keyed.clone()).await {
                break created;
            }
        };
        let settled = waiter(&engine, created.task().id).await.unwrap().unwrap();
        assert_eq!(settled.body.as_ref(), done().body());
        stage.curtain([engine]).await;
        assert_eq!(stage.tools.starts(), 1);
    });
}

#[test]
fn a_promotion_with_a_lost_reply_leaves_one_call() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        stage.trouble(3);
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
        stage.curtain([engine]).await;
        let kept = stage.store.usage(&owner()).await.unwrap();
        assert_eq!(kept.open, 0);
    });
}

#[test]
fn a_takeover_with_a_lost_reply_is_completed() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let id = create(&old, repeatable("step")).await;
        let one = stage.engine().await;
        stage.trouble(2);
        stage.store.leave(old.node()).await.unwrap();
        let waiters = [waiter(&old, id), waiter(&one, id)];
        for waiter in waiters {
            assert!(is_whole(&waiter.await.unwrap().unwrap()));
        }
        stage.curtain([old, one]).await;
    });
}

#[test]
fn a_removal_with_a_lost_reply_answers_every_waiter() {
    explore(|stage| async move {
        let engine = stage.engine().await;
        let mut short = call("linger");
        short.ttl_ms = Some(1_000);
        let id = create(&engine, short).await;
        stage.trouble(2);
        let waiter = waiter(&engine, id);
        let clock = stage.clock.clone();
        let time = spawn(async move { clock.advance(1_000) });
        assert!(waiter.await.unwrap().is_err());
        time.await.unwrap();
        while stage.snapshot(id).await.is_some() {
            yield_now().await;
        }
        stage.curtain([engine]).await;
    });
}
