//! Deadlines: the times at which a task needs attention without a request (P3).

use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::id::{Revision, TaskId};
use crate::laws::fixtures::*;
use crate::store::{DueTasks, Store};
use crate::task::{Lifetime, TtlPolicy};
use crate::transition::Command;

/// An empty store has no deadlines.
pub async fn nothing_is_due_in_an_empty_store(store: &Arc<dyn Store>) {
    assert_eq!(due(store, Timestamp(u64::MAX)).await, DueTasks::default());
}

/// A task is due at its deadline and not a millisecond before.
pub async fn task_is_due_at_its_deadline(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let moment = CREATED.plus(TTL_MS);
    let early = due(store, Timestamp(moment.0 - 1)).await;
    assert_eq!((early.tasks, early.next), (vec![], Some(moment)));
    let exact = due(store, moment).await;
    assert_eq!(exact.tasks, [(task.id, task.revision)]);
    assert_eq!(exact.next, None);
}

/// Reading changes nothing: a due task stays due until it is handled.
pub async fn due_task_stays_due(store: &Arc<dyn Store>) {
    stored_all(store, 0..3).await;
    let first = due(store, CREATED.plus(TTL_MS)).await;
    let again = due(store, CREATED.plus(TTL_MS)).await;
    assert_eq!(sorted(first), sorted(again));
}

/// A due task is returned with its newest revision.
pub async fn due_names_the_newest_revision(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let task = changed(store, &task, status(&task, "drawing")).await;
    let found = due(store, task.expires()).await;
    assert_eq!(found.tasks, [(task.id, task.revision)]);
    let task = ended(store, &task, result("1")).await;
    let found = due(store, task.expires()).await;
    assert_eq!(found.tasks, [(task.id, task.revision)]);
}

/// Only due tasks are returned, with the earliest deadline of the others.
pub async fn next_deadline_is_the_earliest_of_the_remaining_tasks(store: &Arc<dyn Store>) {
    // Not in the order of their deadlines.
    for n in [4, 1, 3, 0, 2] {
        stored(store, with_ttl(n, (n + 1) * 100)).await;
    }
    for n in 0..5 {
        let found = due(store, CREATED.plus((n + 1) * 100)).await;
        let next = (n < 4).then(|| CREATED.plus((n + 2) * 100));
        assert_eq!(found.next, next);
        let expected: Vec<_> = (0..=n).map(|n| (id(n), Revision(1))).collect();
        assert_eq!(sorted(found).0, in_order(expected));
    }
    let found = due(store, CREATED.plus(250)).await;
    assert_eq!(
        (found.tasks.len(), found.next),
        (2, Some(CREATED.plus(300)))
    );
}

/// At most `limit` tasks are returned. The others are still due, and `next` shows it.
pub async fn due_is_limited(store: &Arc<dyn Store>) {
    let mut left: Vec<TaskId> = Vec::new();
    for n in 0..10 {
        left.push(stored(store, with_ttl(n, 100)).await.id);
    }
    stored(store, with_ttl(10, 500)).await;
    let now = CREATED.plus(100);
    for expected in [4, 4, 2] {
        let found = store.due(now, 4).await.expect("the store is open");
        assert_eq!(found.tasks.len(), expected);
        let gone = removal(store, found.tasks).await;
        left.retain(|id| !gone.contains(id));
        let next = if left.is_empty() { 500 } else { 100 };
        assert_eq!(found.next, Some(CREATED.plus(next)));
    }
    assert_eq!(left, []);
    let found = due(store, now).await;
    assert_eq!((found.tasks, found.next), (vec![], Some(CREATED.plus(500))));
}

/// A removed task is never due.
pub async fn removed_task_is_never_due(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let ended_task = stored(store, task(2)).await;
    let ended_task = ended(store, &ended_task, result("1")).await;
    removed(store, &open).await;
    removed(store, &ended_task).await;
    assert_eq!(due(store, Timestamp(u64::MAX)).await, DueTasks::default());
}

/// An extension changes the deadline, before the end and after, and so does a shorter TTL.
pub async fn extension_moves_the_deadline(store: &Arc<dyn Store>) {
    let mut task = stored(store, task(1)).await;
    for ttl in [2 * TTL_MS, TTL_MS / 2] {
        task = changed(store, &task, Command::Extend { ttl }).await;
        only_due_at(store, CREATED.plus(ttl)).await;
    }
    task = ended(store, &task, result("1")).await;
    for ttl in [3 * TTL_MS, TTL_MS] {
        task = changed(store, &task, Command::Extend { ttl }).await;
        only_due_at(store, CREATED.plus(ttl)).await;
    }
}

/// The deadline of a cancellation applies until the task ends.
pub async fn cancel_deadline_is_due(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let deadline = CREATED.plus(5_000);
    let task = changed(store, &task, Command::RequestCancel { deadline }).await;
    only_due_at(store, deadline).await;
    let task = ended(store, &task, result("1")).await;
    only_due_at(store, task.expires()).await;
}

/// The run limit applies while the task works, and is postponed while it awaits input.
pub async fn run_limit_is_due_while_the_task_works(store: &Arc<dyn Store>) {
    let lifetime = Lifetime::new(TTL_MS, TtlPolicy::KeepLive, Some(10_000));
    let task = stored(store, task_with_lifetime(1, lifetime)).await;
    only_due_at(store, CREATED.plus(10_000)).await;
    let waiting = changed(store, &task, request_input(&task, "name")).await;
    only_due_at(store, CREATED.plus(TTL_MS)).await;
    // It waits for one second.
    let works = changed(store, &waiting, provide_input("name")).await;
    only_due_at(store, CREATED.plus(11_000)).await;
    let ended_task = ended(store, &works, result("1")).await;
    only_due_at(store, ended_task.expires()).await;
    assert!(
        ended_task.expires() > CREATED.plus(TTL_MS),
        "kept after the end"
    );
}

fn with_ttl(n: u64, ttl: u64) -> crate::task::Task {
    task_with_lifetime(n, Lifetime::new(ttl, TtlPolicy::Strict, None))
}

async fn due(store: &Arc<dyn Store>, now: Timestamp) -> DueTasks {
    store.due(now, 1_000).await.expect("the store is open")
}

/// Checks that the only task of the store is due at `moment` and not before.
async fn only_due_at(store: &Arc<dyn Store>, moment: Timestamp) {
    let early = due(store, Timestamp(moment.0 - 1)).await;
    assert_eq!((early.tasks, early.next), (vec![], Some(moment)));
    let exact = due(store, moment).await;
    assert_eq!((exact.tasks.len(), exact.next), (1, None));
}

fn sorted(due: DueTasks) -> (Vec<(TaskId, Revision)>, Option<Timestamp>) {
    (in_order(due.tasks), due.next)
}

fn in_order(mut tasks: Vec<(TaskId, Revision)>) -> Vec<(TaskId, Revision)> {
    tasks.sort();
    tasks
}
