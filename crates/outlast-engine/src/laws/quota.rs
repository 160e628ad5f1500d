//! Limits on the number of tasks, which are never exceeded, not even briefly (P8).

use std::sync::Arc;

use crate::laws::fixtures::*;
use crate::owner::Owner;
use crate::policy::Quota;
use crate::store::{Insert, InsertResult, Store, StoreError};
use crate::task::Task;

/// An owner with the maximum number of running tasks gets an error with the limit.
pub async fn running_tasks_of_an_owner_are_limited(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_open: 2,
        ..LARGE_QUOTA
    };
    assert!(accepted(store, task(1), quota).await);
    assert!(accepted(store, task(2), quota).await);
    let refused = insert(store, task(3), quota).await;
    let expected = StoreError::OwnerBusy {
        owner: ada(),
        limit: 2,
    };
    assert_eq!(refused, Err(expected));
    assert!(accepted(store, task_of(4, &bob()), quota).await);
}

/// An owner with the maximum number of stored tasks gets an error, also when they have ended.
pub async fn retained_tasks_of_an_owner_are_limited(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_retained: 2,
        ..LARGE_QUOTA
    };
    for n in 1..=2 {
        assert!(accepted(store, task(n), quota).await);
        let task = loaded(store, id(n)).await.expect("it is there");
        ended(store, &task, result("1")).await;
    }
    let refused = insert(store, task(3), quota).await;
    let expected = StoreError::OwnerFull {
        owner: ada(),
        limit: 2,
    };
    assert_eq!(refused, Err(expected));
    assert!(accepted(store, task_of(4, &bob()), quota).await);
}

/// A store with the maximum number of tasks refuses every owner.
pub async fn retained_tasks_are_limited(store: &Arc<dyn Store>) {
    let quota = Quota {
        retained: 2,
        ..LARGE_QUOTA
    };
    assert!(accepted(store, task(1), quota).await);
    assert!(accepted(store, task_of(2, &bob()), quota).await);
    let refused = insert(store, task_of(3, &Owner::principal("eve")), quota).await;
    assert_eq!(refused, Err(StoreError::Full { limit: 2 }));
}

/// If the maximum number of tasks for all owners is running, every owner is refused until a task
/// ends.
pub async fn running_tasks_are_limited_in_all(store: &Arc<dyn Store>) {
    let quota = Quota {
        open: 2,
        ..LARGE_QUOTA
    };
    assert!(accepted(store, task(1), quota).await);
    assert!(accepted(store, task_of(2, &bob()), quota).await);
    let refused = insert(store, task_of(3, &Owner::principal("eve")), quota).await;
    assert_eq!(refused, Err(StoreError::Busy { limit: 2 }));
    let first = loaded(store, id(1)).await.expect("it is there");
    ended(store, &first, result("1")).await;
    assert!(accepted(store, task_of(3, &Owner::principal("eve")), quota).await);
}

/// A quota of zero refuses the first task.
pub async fn a_quota_of_nothing_admits_nothing(store: &Arc<dyn Store>) {
    let none = [
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
    ];
    for quota in none {
        assert!(!accepted(store, task(1), quota).await, "{quota:?}");
    }
}

/// A refused task leaves nothing behind.
pub async fn refused_insert_changes_nothing(store: &Arc<dyn Store>) {
    let full = Quota {
        owner_open: 1,
        ..LARGE_QUOTA
    };
    assert!(accepted(store, task(1), full).await);
    let before = store.usage(&ada()).await;
    assert!(!accepted(store, task(2), full).await);
    assert_eq!(snapshot(store, id(2)).await, None);
    assert_eq!(listed(store, &ada(), 10).await, [id(1)]);
    assert_eq!(store.usage(&ada()).await, before);
    // It can be inserted once the quota suffices.
    assert!(accepted(store, task(2), LARGE_QUOTA).await);
}

/// The end of a task frees one running task of the quota, and nothing else.
pub async fn end_frees_running_quota(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_open: 1,
        owner_retained: 2,
        ..LARGE_QUOTA
    };
    assert!(accepted(store, task(1), quota).await);
    let first = loaded(store, id(1)).await.expect("it is there");
    ended(store, &first, result("1")).await;
    assert!(accepted(store, task(2), quota).await);
    let second = loaded(store, id(2)).await.expect("it is there");
    ended(store, &second, result("1")).await;
    assert!(!accepted(store, task(3), quota).await);
}

/// The removal of a task frees all its quota, whether it had ended or not.
pub async fn removal_frees_all_quota(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_open: 1,
        owner_retained: 1,
        open: 1,
        retained: 1,
    };
    for n in 0..6 {
        assert!(accepted(store, task(n), quota).await);
        assert!(!accepted(store, task(100 + n), quota).await);
        let mut task = loaded(store, id(n)).await.expect("it is there");
        if n % 2 == 0 {
            task = ended(store, &task, result("1")).await;
        }
        removed(store, &task).await;
    }
}

/// Concurrent inserts never exceed the running tasks of an owner (P8).
pub async fn running_limit_holds_under_concurrency(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_open: 5,
        ..LARGE_QUOTA
    };
    assert_eq!(admitted_at_once(store, quota).await, 5);
}

/// Concurrent inserts never exceed the running tasks of all owners (P8).
pub async fn total_running_limit_holds_under_concurrency(store: &Arc<dyn Store>) {
    let quota = Quota {
        open: 5,
        ..LARGE_QUOTA
    };
    assert_eq!(admitted_at_once(store, quota).await, 5);
}

/// Concurrent inserts never exceed the stored tasks of an owner (P8).
pub async fn owner_limit_holds_under_concurrency(store: &Arc<dyn Store>) {
    let quota = Quota {
        owner_retained: 5,
        ..LARGE_QUOTA
    };
    assert_eq!(admitted_at_once(store, quota).await, 5);
}

/// Concurrent inserts never exceed the stored tasks of the store (P8).
pub async fn total_limit_holds_under_concurrency(store: &Arc<dyn Store>) {
    let quota = Quota {
        retained: 5,
        ..LARGE_QUOTA
    };
    assert_eq!(admitted_at_once(store, quota).await, 5);
}

/// Inserts eight tasks from each of eight concurrent callers, and counts the successful ones.
async fn admitted_at_once(store: &Arc<dyn Store>, quota: Quota) -> u32 {
    let callers = (0..8).map(|caller| {
        let store = store.clone();
        async move {
            let mut count = 0;
            for n in 0..8 {
                count += u32::from(accepted(&store, task(caller * 100 + n), quota).await);
            }
            count
        }
    });
    let admitted = at_once(callers).await.into_iter().sum();
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!(used.owner_open, admitted);
    assert_eq!(used.owner_retained, admitted);
    assert_eq!(listed(store, &ada(), 100).await.len(), admitted as usize);
    admitted
}

async fn accepted(store: &Arc<dyn Store>, task: Task, quota: Quota) -> bool {
    insert(store, task, quota).await.is_ok()
}

async fn insert(store: &Arc<dyn Store>, task: Task, quota: Quota) -> Result<(), StoreError> {
    let insert = Insert {
        task: Arc::new(task),
        quota,
        records: Vec::new(),
    };
    match store.insert(insert).await? {
        InsertResult::New(_) => Ok(()),
        InsertResult::Existing(id) => panic!("there is no request key, but {id} exists"),
    }
}
