//! An owner's list: newest first, in pages, and each task that stays stored is listed exactly once
//! (P9).

use std::sync::Arc;

use crate::id::TaskId;
use crate::laws::fixtures::*;
use crate::owner::Owner;
use crate::store::Store;
use crate::task::Task;
use crate::transition::Command;

/// The list starts with the task that was inserted last, whatever the clock says.
pub async fn list_is_newest_first(store: &Arc<dyn Store>) {
    let clock = [5, 5, 3, 9, 1, 1, 0, 7];
    let mut expected = Vec::new();
    for (n, at) in clock.into_iter().enumerate() {
        let task = Task::new(new_task(n as u64), CREATED.plus(at));
        expected.insert(0, stored(store, task).await.id);
    }
    assert_eq!(listed(store, &ada(), 100).await, expected);
    assert_eq!(listed(store, &ada(), 3).await, expected);
    assert_eq!(listed(store, &ada(), 1).await, expected);
}

/// An owner without tasks has an empty list.
pub async fn list_of_an_unknown_owner_is_empty(store: &Arc<dyn Store>) {
    stored(store, task(1)).await;
    let page = store.page(&Owner::principal("eve"), None, 10).await;
    let page = page.expect("the store is open");
    assert_eq!((page.tasks, page.next), (vec![], None));
}

/// Every page but the last is full, and only the last has no next.
pub async fn pages_are_full_until_the_last(store: &Arc<dyn Store>) {
    stored_all(store, 0..10).await;
    for (limit, sizes) in [
        (4, vec![4, 4, 2]),
        (5, vec![5, 5]),
        (10, vec![10]),
        (11, vec![10]),
    ] {
        let mut walk = PageReader::default();
        let mut found = Vec::new();
        while let Some(page) = walk.next(store, &ada(), limit).await {
            found.push(page.len());
        }
        assert_eq!(found, sizes, "pages of {limit}");
    }
}

/// A list contains the current state of each task.
pub async fn list_shows_the_current_state_of_tasks(store: &Arc<dyn Store>) {
    let open = stored(store, task(1)).await;
    let open = changed(store, &open, request_input(&open, "name")).await;
    let over = stored(store, task(2)).await;
    let over = ended(store, &over, result("1")).await;
    let page = store.page(&ada(), None, 10).await;
    let page = page.expect("the store is open");
    let get = |id| snapshot(store, id);
    let expected = [get(over.id).await, get(open.id).await];
    assert_eq!(
        page.tasks.iter().cloned().map(Some).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(page.tasks[0].revision(), over.revision);
    assert_eq!(page.tasks[1].revision(), open.revision);
}

/// Changes and ends do not reorder the list.
pub async fn changed_tasks_keep_their_position(store: &Arc<dyn Store>) {
    let tasks = stored_all(store, 0..6).await;
    let before = listed(store, &ada(), 100).await;
    changed(store, &tasks[0], status(&tasks[0], "drawing")).await;
    let over = ended(store, &tasks[2], result("1")).await;
    changed(store, &over, Command::Extend { ttl: 9 }).await;
    changed(store, &tasks[4], request_input(&tasks[4], "name")).await;
    assert_eq!(listed(store, &ada(), 100).await, before);
    assert_eq!(listed(store, &ada(), 2).await, before);
}

/// A listing continues although the last listed task was removed.
pub async fn listing_continues_after_a_removed_task(store: &Arc<dyn Store>) {
    let tasks = stored_all(store, 0..6).await;
    let mut walk = PageReader::default();
    let first = walk.next(store, &ada(), 2).await;
    assert_eq!(first, Some(vec![tasks[5].id, tasks[4].id]));
    removed(store, &tasks[4]).await;
    removed(store, &tasks[3]).await;
    let second = walk.next(store, &ada(), 2).await;
    assert_eq!(second, Some(vec![tasks[2].id, tasks[1].id]));
}

/// A task that is stored during the whole listing is listed exactly once, whatever is inserted,
/// ended and removed (P9).
pub async fn listing_returns_every_stored_task_once(store: &Arc<dyn Store>) {
    let old = stored_all(store, 0..60).await;
    let mut fresh = 1_000;
    let mut seen: Vec<TaskId> = Vec::new();
    let mut walk = PageReader::default();
    let mut step = 0;
    while let Some(page) = walk.next(store, &ada(), 4).await {
        seen.extend(page);
        // Every third task is removed, every third is ended, the others are unchanged.
        if let Some(goes) = old.get(step * 3) {
            removed(store, goes).await;
        }
        if let Some(ends) = old.get(step * 3 + 1) {
            ended(store, ends, result("1")).await;
        }
        stored_all(store, fresh..fresh + 3).await;
        fresh += 3;
        step += 1;
    }
    let stays = old.iter().enumerate().filter(|(n, _)| n % 3 != 0);
    for (n, task) in stays {
        let times = seen.iter().filter(|id| **id == task.id).count();
        assert_eq!(times, 1, "task {n} was seen {times} times");
    }
    only_once(&seen);
}

/// The same with concurrent writers on other threads (P9).
pub async fn listing_with_concurrent_writers_returns_every_task_once(store: &Arc<dyn Store>) {
    let stays = stored_all(store, 0..100).await;
    let writers = (1..4).map(|writer| ConcurrentRole::Writer(writer * 1_000));
    let everybody = writers.chain([ConcurrentRole::Walker, ConcurrentRole::Walker]);
    let walks = at_once(everybody.map(|one| one.run(store.clone()))).await;
    for seen in walks.into_iter().flatten() {
        for task in &stays {
            let times = seen.iter().filter(|id| **id == task.id).count();
            assert_eq!(times, 1, "a task was seen {times} times");
        }
        only_once(&seen);
    }
}

enum ConcurrentRole {
    Walker,
    Writer(u64),
}

impl ConcurrentRole {
    async fn run(self, store: Arc<dyn Store>) -> Option<Vec<TaskId>> {
        match self {
            Self::Walker => Some(listed(&store, &ada(), 5).await),
            Self::Writer(first) => {
                for n in first..first + 40 {
                    let task = stored(&store, task(n)).await;
                    let task = ended(&store, &task, result("1")).await;
                    removed(&store, &task).await;
                }
                None
            }
        }
    }
}

fn only_once(seen: &[TaskId]) {
    let mut sorted = seen.to_vec();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), seen.len(), "a walk shows no task twice");
}
