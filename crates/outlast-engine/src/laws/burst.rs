//! Many mixed operations, after which the counts, lists and tasks agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::TaskId;
use crate::laws::fixtures::*;
use crate::owner::Owner;
use crate::store::{InsertResult, Store};
use crate::task::Task;

/// After a thousand mixed operations the counts, the lists and the tasks agree.
pub async fn counts_add_up_after_a_burst(store: &Arc<dyn Store>) {
    let expected = work(store.clone(), 0, 1_000).await;
    adds_up(store, &[expected]).await;
}

/// The same with four concurrent callers.
pub async fn counts_add_up_after_a_burst_of_many(store: &Arc<dyn Store>) {
    let callers = (0..4).map(|caller| work(store.clone(), caller, 250));
    let expected = at_once(callers).await;
    adds_up(store, &expected).await;
}

/// The tasks that a caller expects to be stored.
type ExpectedTasks = BTreeMap<TaskId, Arc<Task>>;

/// Performs `count` pseudo-random operations on tasks of this caller.
async fn work(store: Arc<dyn Store>, caller: u64, count: u64) -> ExpectedTasks {
    let mut expected = ExpectedTasks::new();
    for step in 0..count {
        let dice = mix_bits(caller << 32 | step);
        let pick = expected
            .values()
            .nth(dice as usize % expected.len().max(1))
            .cloned();
        match (dice >> 32) % 8 {
            0..=2 => {
                let owner = Owner::principal(format!("owner {}", dice % 3));
                let key = format!("key {}", dice % 500);
                let task = task_with_key(caller << 32 | step, &owner, &key);
                let reply = store
                    .insert(insertion(task))
                    .await
                    .expect("the quota suffices");
                if let InsertResult::New(task) = reply {
                    expected.insert(task.id, task.shared());
                }
            }
            3 | 4 => {
                let Some(task) = pick.filter(|task| task.state.ending().is_none()) else {
                    continue;
                };
                let message = format!("step {step}");
                let task = changed(&store, &task, status(&task, &message)).await;
                expected.insert(task.id, task);
            }
            5 | 6 => {
                let Some(task) = pick.filter(|task| task.state.ending().is_none()) else {
                    continue;
                };
                let task = ended(&store, &task, result("1")).await;
                expected.insert(task.id, task);
            }
            _ => {
                let Some(task) = pick else { continue };
                removed(&store, &task).await;
                expected.remove(&task.id);
            }
        }
    }
    expected
}

async fn adds_up(store: &Arc<dyn Store>, expected: &[ExpectedTasks]) {
    let tasks: Vec<_> = expected.iter().flat_map(BTreeMap::values).collect();
    let open = |task: &&&Arc<Task>| task.state.ending().is_none();
    for owner in (0..3).map(|n| Owner::principal(format!("owner {n}"))) {
        let own = || tasks.iter().filter(|task| task.owner == owner);
        let used = store.usage(&owner).await.expect("the store is open");
        assert_eq!(used.owner_retained as usize, own().count());
        assert_eq!(used.owner_open as usize, own().filter(open).count());
        assert_eq!(used.retained as usize, tasks.len());
        assert_eq!(used.open as usize, tasks.iter().filter(open).count());

        let mut listed = listed(store, &owner, 17).await;
        let mut expected: Vec<_> = own().map(|task| task.id).collect();
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected);
    }
    for task in tasks {
        assert_eq!(loaded(store, task.id).await.as_ref(), Some(task));
    }
}
