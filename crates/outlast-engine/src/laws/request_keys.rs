//! Request keys: a repeated create finds the task of the first (P10).

use std::sync::Arc;

use crate::id::TaskId;
use crate::laws::fixtures::*;
use crate::policy::Quota;
use crate::store::{Insert, InsertResult, Store};
use crate::task::Task;

/// A second create with the same key and owner returns the first task and writes nothing.
pub async fn repeated_create_names_the_first_task(store: &Arc<dyn Store>) {
    let first = stored(store, task_with_key(1, &ada(), "k")).await;
    assert_eq!(
        id_of_existing(store, task_with_key(2, &ada(), "k")).await,
        Some(first.id)
    );
    assert_eq!(snapshot(store, id(2)).await, None);
    assert_eq!(listed(store, &ada(), 10).await, [first.id]);
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!((used.owner_open, used.owner_retained), (1, 1));
    assert_eq!((used.open, used.retained), (1, 1));
    assert_eq!(loaded(store, first.id).await, Some(first));
}

/// A key is valid for one owner and compared exactly. A create without a key is always new.
pub async fn other_keys_and_other_owners_are_free(store: &Arc<dyn Store>) {
    let others = [
        task_with_key(1, &ada(), "k"),
        task_with_key(2, &bob(), "k"),
        task_with_key(3, &ada(), "K"),
        task_with_key(4, &ada(), "k "),
        task_with_key(5, &ada(), ""),
        task(6),
        task(7),
    ];
    for task in others {
        let id = task.id;
        assert_eq!(id_of_existing(store, task).await, None, "{id}");
    }
    assert_eq!(
        id_of_existing(store, task_with_key(9, &ada(), "")).await,
        Some(id(5))
    );
    assert_eq!(
        id_of_existing(store, task_with_key(9, &bob(), "k")).await,
        Some(id(2))
    );
}

/// A key is in use until its task is removed, also after the end.
pub async fn key_is_known_after_the_end(store: &Arc<dyn Store>) {
    let first = stored(store, task_with_key(1, &ada(), "k")).await;
    let first = ended(store, &first, result("1")).await;
    assert_eq!(
        id_of_existing(store, task_with_key(2, &ada(), "k")).await,
        Some(first.id)
    );
    assert_eq!(body(store, first.id).await, Some(raw("1")));
}

/// A key is free again after its task was removed.
pub async fn key_is_free_after_removal(store: &Arc<dyn Store>) {
    // The owner has another task all the time.
    let stays = stored(store, task_with_key(100, &ada(), "stays")).await;
    for n in 0..4 {
        assert_eq!(
            id_of_existing(store, task_with_key(n, &ada(), "k")).await,
            None
        );
        let mut task = loaded(store, id(n)).await.expect("it is there");
        if n % 2 == 0 {
            task = ended(store, &task, result("1")).await;
        }
        removed(store, &task).await;
    }
    let again = id_of_existing(store, task_with_key(101, &ada(), "stays")).await;
    assert_eq!(again, Some(stays.id));
}

/// A refused insert does not use its key.
pub async fn refused_insert_leaves_its_key_free(store: &Arc<dyn Store>) {
    for quota in full() {
        let refused = store.insert(Insert {
            quota,
            ..insertion(task_with_key(1, &ada(), "k"))
        });
        assert!(refused.await.is_err());
    }
    assert_eq!(
        id_of_existing(store, task_with_key(2, &ada(), "k")).await,
        None
    );
}

/// A repeated create finds its task even if the quota is exhausted.
pub async fn repeated_create_needs_no_room(store: &Arc<dyn Store>) {
    let first = stored(store, task_with_key(1, &ada(), "k")).await;
    for quota in full() {
        let again = store.insert(Insert {
            quota,
            ..insertion(task_with_key(2, &ada(), "k"))
        });
        let again = again.await;
        assert!(
            matches!(again, Ok(InsertResult::Existing(id)) if id == first.id),
            "{again:?}"
        );
    }
}

/// Of many creates with one key one creates a task, and all others can read it (P1, P10).
pub async fn of_many_creates_under_one_key_one_is_new(store: &Arc<dyn Store>) {
    for round in 0..20 {
        let racers = (0..8).map(|racer| {
            let store = store.clone();
            let task = task_with_key(round * 100 + racer, &ada(), &format!("k{round}"));
            async move {
                let new = task.id;
                match id_of_existing(&store, task).await {
                    None => (new, true),
                    Some(id) => {
                        assert!(
                            snapshot(&store, id).await.is_some(),
                            "a known task is visible"
                        );
                        (id, false)
                    }
                }
            }
        });
        let reply = at_once(racers).await;
        assert_eq!(reply.iter().filter(|(_, new)| *new).count(), 1, "{reply:?}");
        assert!(reply.iter().all(|(id, _)| *id == reply[0].0), "{reply:?}");
    }
    assert_eq!(listed(store, &ada(), 100).await.len(), 20);
}

/// Inserts a task. Returns the id of the task that has its key already.
async fn id_of_existing(store: &Arc<dyn Store>, task: Task) -> Option<TaskId> {
    match store.insert(insertion(task)).await {
        Ok(InsertResult::New(_)) => None,
        Ok(InsertResult::Existing(id)) => Some(id),
        Err(refused) => panic!("the quota suffices, but: {refused}"),
    }
}

/// The quotas that refuse every task.
fn full() -> [Quota; 4] {
    [
        Quota {
            owner_open: 0,
            ..LARGE_QUOTA
        },
        Quota {
            owner_retained: 0,
            ..LARGE_QUOTA
        },
        Quota {
            retained: 0,
            ..LARGE_QUOTA
        },
        Quota {
            open: 0,
            ..LARGE_QUOTA
        },
    ]
}
