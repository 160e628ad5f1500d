//! Several engines on one store: a node that was declared dead and still writes.

use outlast_engine::{Ending, Store};
use shuttle::future::spawn;

use crate::harness::{ada, answer_first, call, create, explore, is_whole, repeatable, waiter};
use crate::tools::done;

#[test]
fn of_two_survivors_one_takes_over_and_the_old_node_is_fenced() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let id = create(&old, repeatable("step")).await;
        let (one, two) = (stage.engine().await, stage.engine().await);
        let waiters = [waiter(&old, id), waiter(&one, id), waiter(&two, id)];
        // As if its lease had expired. The node does not know it.
        stage.store.leave(old.node()).await.unwrap();
        let mut seen = Vec::new();
        for waiter in waiters {
            let settled = waiter.await.unwrap().unwrap();
            assert!(is_whole(&settled), "{settled:?}");
            seen.push(settled);
        }
        assert!(seen.iter().all(|settled| *settled == seen[0]));
        assert_eq!(seen[0].summary.ending, Ending::Result);
        stage.curtain([old, one, two]).await;
    });
}

#[test]
fn what_may_not_run_again_ends_once_although_its_node_still_speaks() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let id = create(&old, call("talk")).await;
        let (one, two) = (stage.engine().await, stage.engine().await);
        let waiters = [waiter(&old, id), waiter(&two, id)];
        stage.store.leave(old.node()).await.unwrap();
        let mut seen = Vec::new();
        for waiter in waiters {
            seen.push(waiter.await.unwrap().unwrap());
        }
        assert_eq!(seen[0], seen[1]);
        stage.curtain([old, one, two]).await;
        assert_eq!(stage.tools.starts(), 1);
    });
}

#[test]
fn a_cancel_on_one_node_stops_the_work_on_another_also_while_it_is_taken_over() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let id = create(&old, repeatable("linger")).await;
        let one = stage.engine().await;
        let cancel = spawn({
            let one = one.clone();
            async move { one.cancel_now(&ada(), id).await }
        });
        stage.store.leave(old.node()).await.unwrap();
        let _ = cancel.await.unwrap().unwrap();
        stage.curtain([old, one]).await;
    });
}

#[test]
fn a_plain_call_goes_on_while_its_node_is_given_up() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let mut running = old.start(call("step")).unwrap();
        stage.store.leave(old.node()).await.unwrap();
        assert_eq!(running.outcome().await, done());
        drop(running);
        stage.curtain([old]).await;
    });
}

#[test]
fn an_answer_reaches_the_work_also_while_it_is_taken_over() {
    explore(|stage| async move {
        let old = stage.engine().await;
        let id = create(&old, call("attach-and-ask")).await;
        let (one, two) = (stage.engine().await, stage.engine().await);
        let answerer = spawn({
            let two = two.clone();
            async move { answer_first(&two, id).await }
        });
        stage.store.leave(old.node()).await.unwrap();
        answerer.await.unwrap();
        assert!(is_whole(&waiter(&two, id).await.unwrap().unwrap()));
        stage.curtain([old, one, two]).await;
    });
}
