//! Races between cancellation, completion and waiters.

use outlast_engine::Ending;
use outlast_engine::engine::EngineError;
use outlast_engine::transition::Refused;
use shuttle::future::spawn;

use crate::harness::{ada, call, create, explore, is_whole, waiter};

#[test]
fn of_cancel_and_completion_one_wins_for_every_waiter() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("step")).await;
        let waiters = [waiter(&engine, id), waiter(&engine, id)];
        let cancel = spawn({
            let engine = engine.clone();
            async move { engine.cancel_now(&ada(), id).await }
        });
        let cancelled = cancel.await.unwrap();
        for waiter in waiters {
            let settled = waiter.await.unwrap().unwrap();
            assert!(is_whole(&settled), "{settled:?}");
            match &cancelled {
                Ok(task) => {
                    assert_eq!(task.state.ending(), Some(Ending::Cancelled));
                    assert_eq!(settled.summary.ending, Ending::Cancelled);
                }
                Err(refused) => {
                    let ended = Refused::AlreadyEnded(Ending::Result);
                    assert_eq!(refused, &EngineError::Refused(ended));
                    assert_eq!(settled.summary.ending, Ending::Result);
                }
            }
        }
        harness.finish([engine]).await;
    });
}

#[test]
fn work_with_a_requested_cancellation_ends_once() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("listen")).await;
        let waiter = waiter(&engine, id);
        let ask = spawn({
            let engine = engine.clone();
            async move { engine.request_cancel(&ada(), id).await }
        });
        ask.await.unwrap().unwrap();
        let settled = waiter.await.unwrap().unwrap();
        assert!(is_whole(&settled), "{settled:?}");
        assert!(matches!(
            settled.summary.ending,
            Ending::Cancelled | Ending::Result
        ));
        harness.finish([engine]).await;
    });
}

#[test]
fn of_two_cancellations_one_succeeds() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("linger")).await;
        let cancels = [(); 2].map(|()| {
            let engine = engine.clone();
            spawn(async move { engine.cancel_now(&ada(), id).await.is_ok() })
        });
        let mut done = 0;
        for cancel in cancels {
            done += usize::from(cancel.await.unwrap());
        }
        assert_eq!(done, 1);
        harness.finish([engine]).await;
    });
}

#[test]
fn a_pending_status_is_not_stored_after_the_end() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("talk")).await;
        let settled = waiter(&engine, id).await.unwrap().unwrap();
        assert_eq!(settled.summary.ending, Ending::Result);
        harness.finish([engine]).await;
    });
}
