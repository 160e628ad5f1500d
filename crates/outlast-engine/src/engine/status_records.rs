//! Records that are written in the same transaction as a change of a task's status, such as
//! deliveries to a webhook.

use super::Inner;
use crate::store::{RecordWrite, Status};
use crate::task::Task;

/// Makes records about changes of the status of tasks.
pub trait StatusRecorder: Send + Sync {
    /// The records to store with `task`, which has just got its status. They are written if and
    /// only if this revision of the task is.
    fn records(&self, task: &Task) -> Vec<RecordWrite>;

    /// Records of [`Self::records`] are stored.
    fn stored(&self);
}

impl Inner {
    /// The records to write with `task`, whose status was `before`. A new task has none before.
    pub(crate) fn status_records(&self, task: &Task, before: Option<Status>) -> Vec<RecordWrite> {
        match &self.status_recorder {
            Some(recorder) if before != Some(Status::of_task(task)) => recorder.records(task),
            _ => Vec::new(),
        }
    }

    /// Notifies the recorder if records were stored.
    pub(crate) fn status_records_stored(&self, has_records: bool) {
        if let Some(recorder) = self.status_recorder.as_ref().filter(|_| has_records) {
            recorder.stored();
        }
    }
}
