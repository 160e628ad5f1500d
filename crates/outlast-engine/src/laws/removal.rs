//! Removal: compare and set for each task, and exact ids of the removed tasks (P3).

use std::sync::Arc;

use crate::id::Revision;
use crate::laws::fixtures::*;
use crate::store::Store;
use crate::transition::Command;

/// A task that has changed in the meantime is not removed.
pub async fn remove_is_compare_and_set(store: &Arc<dyn Store>) {
    let first = stored(store, task(1)).await;
    let second = changed(store, &first, Command::Extend { ttl: 2 * TTL_MS }).await;
    let future = Revision(second.revision.0 + 1);
    for stale in [first.revision, future] {
        assert_eq!(removal(store, [(first.id, stale)]).await, []);
        assert_eq!(loaded(store, first.id).await, Some(second.clone()));
    }
    let over = ended(store, &second, result("1")).await;
    assert_eq!(removal(store, [(first.id, second.revision)]).await, []);
    assert_eq!(body(store, first.id).await, Some(raw("1")));
    removed(store, &over).await;
}

/// The returned ids are those of the tasks that were at the given revision, each once.
pub async fn remove_returns_the_removed_ids(store: &Arc<dyn Store>) {
    let tasks = stored_all(store, 0..4).await;
    let over = ended(store, &tasks[2], result("1")).await;
    let wanted = [
        (tasks[0].id, tasks[0].revision),
        (id(99), Revision(1)),
        (tasks[1].id, Revision(7)),
        (over.id, over.revision),
        (tasks[0].id, tasks[0].revision),
    ];
    let mut gone = removal(store, wanted).await;
    let mut expected = [tasks[0].id, over.id];
    gone.sort();
    expected.sort();
    assert_eq!(gone, expected);
    assert_eq!(
        listed(store, &ada(), 10).await,
        [tasks[3].id, tasks[1].id],
        "the others stay"
    );
    assert_eq!(removal(store, wanted).await, []);
    assert_eq!(removal(store, []).await, []);
}

/// A removed task is not found by any operation.
pub async fn removed_task_is_not_found(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let over = stored(store, task(2)).await;
    let over = ended(store, &over, result("1")).await;
    for task in [open, over] {
        removed(store, &task).await;
        assert_eq!(snapshot(store, task.id).await, None);
        assert_eq!(loaded(store, task.id).await, None);
        assert_eq!(body(store, task.id).await, None);
        assert!(!listed(store, &ada(), 10).await.contains(&task.id));
    }
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!(used, Default::default());
}

/// If many callers remove a task, one gets its id.
pub async fn of_many_removals_one_succeeds(store: &Arc<dyn Store>) {
    for n in 0..20 {
        let task = stored(store, task(n)).await;
        let racers = (0..4).map(|_| {
            let (store, task) = (store.clone(), task.clone());
            async move { removal(&store, [(task.id, task.revision)]).await }
        });
        let reply = at_once(racers).await.concat();
        assert_eq!(reply, [task.id]);
    }
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!(used, Default::default());
}

/// If a task is changed and removed at the same time, exactly one of the two succeeds, and the
/// counts agree.
pub async fn of_a_change_and_a_removal_one_wins(store: &Arc<dyn Store>) {
    let mut kept = 0;
    for n in 0..20 {
        let task = stored(store, task(n)).await;
        let change = change(&task, end(&task, result("1")), CREATED.plus(9));
        let (writer, remover) = (store.clone(), store.clone());
        let (wanted, change) = ((task.id, task.revision), Some(change));
        let racers = [(writer, change), (remover, None)].map(|(store, change)| async move {
            match change {
                Some(change) => store.replace(change).await.is_ok(),
                None => removal(&store, [wanted]).await.len() == 1,
            }
        });
        let reply = at_once(racers).await;
        assert_ne!(reply[0], reply[1], "exactly one wins");
        assert_eq!(loaded(store, task.id).await.is_some(), reply[0]);
        kept += u32::from(reply[0]);
    }
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!((used.owner_retained, used.owner_open), (kept, 0));
    assert_eq!((used.retained, used.open), (u64::from(kept), 0));
}
