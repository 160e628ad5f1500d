//! Compare and set: a write succeeds if it was computed from the stored revision, and otherwise
//! changes nothing.

use std::sync::Arc;

use crate::id::Revision;
use crate::laws::fixtures::*;
use crate::outcome::Outcome;
use crate::store::{InsertResult, Store, StoreError};
use crate::transition::Command;

/// A write that was computed from an older revision is refused and changes nothing (P2).
pub async fn stale_revision_is_refused(store: &Arc<dyn Store>) {
    let first = stored(store, task(1)).await;
    let late = change(&first, end(&first, result("1")), CREATED.plus(5));
    let second = changed(store, &first, status(&first, "drawing")).await;

    let refused = store.replace(late).await;
    assert_eq!(
        refused,
        Err(StoreError::Conflict {
            id: first.id,
            expected: first.revision,
        })
    );
    assert_eq!(open_snapshot(store, first.id).await, second);
    assert_eq!(loaded(store, first.id).await, Some(second));
    assert_eq!(body(store, first.id).await, None);
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!((used.owner_open, used.open), (1, 1));
}

/// A write that was computed from a revision that does not exist yet is refused.
pub async fn future_revision_is_refused(store: &Arc<dyn Store>) {
    let first = stored(store, task(1)).await;
    let mut early = change(&first, status(&first, "drawing"), CREATED.plus(5));
    early.expected = Revision(first.revision.0 + 1);
    assert!(is_conflict(&store.replace(early).await));
    assert_eq!(loaded(store, first.id).await, Some(first));
}

/// An ended task is protected in the same way (P2).
pub async fn stale_revision_is_refused_after_the_end(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let late = change(&open, end(&open, result("2")), CREATED.plus(5));
    let reply = ended(store, &open, result("1")).await;
    assert!(is_conflict(&store.replace(late).await));
    assert_eq!(loaded(store, open.id).await, Some(reply));
    assert_eq!(body(store, open.id).await, Some(raw("1")));
}

/// A task that was never stored cannot be changed.
pub async fn replace_of_an_unknown_task_is_a_conflict(store: &Arc<dyn Store>) {
    let never = task(1);
    let change = change(&never, status(&never, "drawing"), CREATED.plus(5));
    assert!(is_conflict(&store.replace(change).await));
    assert_eq!(loaded(store, never.id).await, None);
    assert_eq!(listed(store, &ada(), 10).await, []);
}

/// A late writer cannot restore a removed task.
pub async fn replace_of_a_removed_task_is_a_conflict(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let late = change(&task, end(&task, result("1")), CREATED.plus(5));
    removed(store, &task).await;
    assert!(is_conflict(&store.replace(late).await));
    assert_eq!(loaded(store, task.id).await, None);
    assert_eq!(body(store, task.id).await, None);
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!(used, Default::default());
}

/// An id is used once: a second task with the same id is refused, whatever its owner, and changes
/// nothing.
pub async fn existing_id_is_refused(store: &Arc<dyn Store>) {
    let first = stored(store, task(1)).await;
    let first = changed(store, &first, status(&first, "drawing")).await;
    for owner in [ada(), bob()] {
        let again = store.insert(insertion(task_of(1, &owner))).await;
        assert!(
            matches!(again, Err(StoreError::Exists(found)) if found == first.id),
            "{again:?}"
        );
    }
    assert_eq!(loaded(store, first.id).await, Some(first.clone()));
    assert_eq!(listed(store, &ada(), 10).await, [first.id]);
    assert_eq!(listed(store, &bob(), 10).await, []);
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!((used.owner_retained, used.retained), (1, 1));
}

/// An id stays in use after its task has ended.
pub async fn id_of_an_ended_task_is_refused(store: &Arc<dyn Store>) {
    let first = stored(store, task(1)).await;
    let first = ended(store, &first, result("1")).await;
    let again = store.insert(insertion(task(1))).await;
    assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
    assert_eq!(loaded(store, first.id).await, Some(first));
}

/// If many callers insert a task with the same id at the same time, one succeeds.
pub async fn of_many_inserts_of_one_id_one_wins(store: &Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let racers = (0..RACERS).map(|_| {
            let store = store.clone();
            async move { store.insert(insertion(task(round))).await }
        });
        let reply = at_once(racers).await;
        let new = reply
            .iter()
            .filter(|reply| matches!(reply, Ok(InsertResult::New(_))));
        assert_eq!(new.count(), 1, "{reply:?}");
    }
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!(u64::from(used.owner_retained), ROUNDS);
    assert_eq!(used.retained, ROUNDS);
    assert_eq!(listed(store, &ada(), 7).await.len() as u64, ROUNDS);
}

/// Of many writers with the same revision exactly one succeeds, and its write is visible.
pub async fn of_many_writers_one_wins(store: &Arc<dyn Store>) {
    let mut task = stored(store, task(1)).await;
    for round in 0..ROUNDS {
        let racers = (0..RACERS).map(|racer| {
            let (store, task) = (store.clone(), task.clone());
            let message = format!("round {round}, racer {racer}");
            async move {
                let change = change(&task, status(&task, &message), task.updated.plus(1));
                store.replace(change).await
            }
        });
        let reply = at_once(racers).await;
        let (won, lost): (Vec<_>, Vec<_>) = reply.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        assert!(lost.iter().all(is_conflict), "{lost:?}");
        let won = won.into_iter().flatten().next().expect("one won");
        task = won.shared();
        assert_eq!(loaded(store, task.id).await, Some(task.clone()));
    }
}

/// If a task is finished and cancelled at the same time, one outcome is stored, with its body (P2).
pub async fn of_racing_outcomes_one_wins(store: &Arc<dyn Store>) {
    for n in 0..ROUNDS {
        let task = stored(store, task(n)).await;
        let outcomes = [
            end(&task, result("1")),
            end(&task, result("2")),
            end(&task, Outcome::Cancelled),
            Command::CancelNow,
        ];
        let racers = outcomes.map(|outcome| {
            let (store, change) = (store.clone(), change(&task, outcome, CREATED.plus(9)));
            async move {
                let body = change.body.clone();
                store.replace(change).await.map(|reply| (reply, body))
            }
        });
        let mut won = at_once(racers).await.into_iter().flatten();
        let (reply, kept) = won.next().expect("one wins");
        assert_eq!(won.next(), None, "one outcome wins");
        assert_eq!(loaded(store, task.id).await, Some(reply.shared()));
        assert_eq!(body(store, task.id).await, kept);
    }
    let used = store.usage(&ada()).await.expect("the store is open");
    assert_eq!((used.open, used.retained), (0, ROUNDS));
}

const ROUNDS: u64 = 20;
const RACERS: u64 = 8;
