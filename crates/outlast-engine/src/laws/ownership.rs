//! Ownership: for other owners a task does not exist (P7).

use std::sync::Arc;

use crate::id::Scope;
use crate::laws::fixtures::*;
use crate::owner::Owner;
use crate::store::Store;

/// A task of another owner is not found, neither as a snapshot nor in full, before its end and
/// after.
pub async fn foreign_task_is_not_found(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let over = stored(store, task(2)).await;
    let over = ended(store, &over, result("1")).await;
    // Similar names are different names.
    for stranger in ["bob", "Ada", "ada ", "ad", "adaa", ""] {
        let stranger = of(&Owner::principal(stranger));
        for id in [open.id, over.id] {
            let found = store.get(&stranger, id).await;
            assert_eq!(found, Ok(None), "{stranger:?}");
            let found = store.load(&stranger, id).await;
            assert_eq!(found, Ok(None), "{stranger:?}");
            let found = store.body(&stranger, id).await;
            assert_eq!(found, Ok(None), "{stranger:?}");
        }
    }
}

/// A task is found by its owner, and by a caller that may access any task.
pub async fn own_task_is_found(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let over = stored(store, task(2)).await;
    let over = ended(store, &over, result("1")).await;
    for scope in [of(&ada()), Scope::AnyTask] {
        for task in [&open, &over] {
            let found = store.get(&scope, task.id).await;
            assert!(matches!(found, Ok(Some(_))), "{scope:?}");
            let found = store.load(&scope, task.id).await;
            let found = found
                .expect("the store is open")
                .map(|found| found.shared());
            assert_eq!(found.as_ref(), Some(task), "{scope:?}");
        }
        assert_eq!(store.body(&scope, over.id).await, Ok(Some(raw("1"))));
    }
}

/// The list and the counts of an owner include only its own tasks.
pub async fn list_shows_own_tasks_only(store: &Arc<dyn Store>) {
    let mine = stored(store, task_of(1, &ada())).await;
    let other = stored(store, task_of(2, &bob())).await;
    assert_eq!(listed(store, &ada(), 10).await, [mine.id]);
    assert_eq!(listed(store, &bob(), 10).await, [other.id]);
    let used = store.usage(&bob()).await.expect("the store is open");
    assert_eq!((used.owner_open, used.owner_retained), (1, 1));
    assert_eq!((used.open, used.retained), (2, 2));
    let used = store.usage(&Owner::principal("eve")).await;
    let used = used.expect("the store is open");
    assert_eq!((used.owner_open, used.owner_retained), (0, 0));
    assert_eq!((used.open, used.retained), (2, 2));
}
