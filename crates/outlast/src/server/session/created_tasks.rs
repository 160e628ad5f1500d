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

/// How many tasks are recorded. A session has more open tasks only if the limit per owner is
/// raised.
const MAX_TASKS: usize = 64;
