//! The tasks that were created in a session and may be open. A session is kept while one of them is
//! open.

use outlast_engine::TaskId;
use parking_lot::Mutex;

/// The tasks that were created in a session, the newest last.
#[derive(Default)]
pub(super) struct CreatedTasks(Mutex<Vec<TaskId>>);

impl CreatedTasks {
    pub(super) fn add(&self, task: TaskId) {
        let mut tasks = self.0.lock();
        if tasks.len() == MAX_TASKS {
            tasks.remove(0);
        }
        tasks.push(task);
    }

    pub(super) fn remove(&self, task: TaskId) {
        self.0.lock().retain(|made| *made != task);
    }

    pub(super) fn all(&self) -> Vec<TaskId> {
        self.0.lock().clone()
    }
}

/// The maximum of tasks in the list; `add` drops the oldest. With the default `quota.owner_open` of
/// 32 a session never has so many open tasks. With a larger quota a session can end while a dropped
/// task is open.
const MAX_TASKS: usize = 64;
