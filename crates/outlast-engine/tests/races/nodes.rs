//! Several engines on one store: a node that was declared dead and still writes.

use outlast_engine::{Ending, Store};
use shuttle::future::spawn;

use crate::harness::{ada, answer_first, call, create, explore, is_whole, repeatable, waiter};
use crate::tools::done;

#[test]
fn one_remaining_node_takes_over_and_fences_the_old() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let id = create(&old, repeatable("step")).await;
        let (one, two) = (harness.engine().await, harness.engine().await);
        let waiters = [waiter(&old, id), waiter(&one, id), waiter(&two, id)];
        // As if its lease had expired. The node does not know it.
        harness.store.leave(old.node()).await.unwrap();
        let mut seen = Vec::new();
        for waiter in waiters {
            let settled = waiter.await.unwrap().unwrap();
            assert!(is_whole(&settled), "{settled:?}");
            seen.push(settled);
        }
        assert!(seen.iter().all(|settled| *settled == seen[0]));
        assert_eq!(seen[0].summary.ending, Ending::Result);
        harness.finish([old, one, two]).await;
    });
}

#[test]
fn non_repeatable_work_ends_once_despite_its_old_node() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let id = create(&old, call("talk")).await;
        let (one, two) = (harness.engine().await, harness.engine().await);
        let waiters = [waiter(&old, id), waiter(&two, id)];
        harness.store.leave(old.node()).await.unwrap();
        let mut seen = Vec::new();
        for waiter in waiters {
            seen.push(waiter.await.unwrap().unwrap());
        }
        assert_eq!(seen[0], seen[1]);
        harness.finish([old, one, two]).await;
        assert_eq!(harness.tools.started_attempts(), 1);
    });
}

#[test]
fn a_cancel_reaches_the_work_during_a_takeover() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let id = create(&old, repeatable("linger")).await;
        let one = harness.engine().await;
        let cancel = spawn({
            let one = one.clone();
            async move { one.cancel_now(&ada(), id).await }
        });
        harness.store.leave(old.node()).await.unwrap();
        let _ = cancel.await.unwrap().unwrap();
        harness.finish([old, one]).await;
    });
}

#[test]
fn a_plain_call_continues_when_its_node_is_declared_lost() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let mut running = old.start(call("step")).unwrap();
        harness.store.leave(old.node()).await.unwrap();
        assert_eq!(running.outcome().await, done());
        drop(running);
        harness.finish([old]).await;
    });
}

#[test]
fn an_input_response_reaches_the_work_during_a_takeover() {
    explore(|harness| async move {
        let old = harness.engine().await;
        let id = create(&old, call("attach-and-ask")).await;
        let (one, two) = (harness.engine().await, harness.engine().await);
        let answerer = spawn({
            let two = two.clone();
            async move { answer_first(&two, id).await }
        });
        harness.store.leave(old.node()).await.unwrap();
        answerer.await.unwrap();
        assert!(is_whole(&waiter(&two, id).await.unwrap().unwrap()));
        harness.finish([old, one, two]).await;
    });
}
