//! Input requests of tasks, and the streams on which they are sent: where the client waits for the
//! task, else on a general stream, else later.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_engine::{InputKey, TaskId};
use parking_lot::{Mutex, MutexGuard};

use super::streams::{SessionStreams, StreamId};

/// The open input requests of the tasks of one session.
#[derive(Default)]
pub(in crate::server) struct InputRequests(Mutex<State>);

#[derive(Default)]
struct State {
    /// Streams on which the client waits for the outcome of a task.
    waits: BTreeMap<TaskId, Vec<StreamId>>,
    requests: BTreeMap<(TaskId, InputKey), InputRequest>,
}

struct InputRequest {
    line: Arc<str>,
    /// The stream on which it was sent last.
    sent_on: Option<StreamId>,
}

/// Registers that the client waits for a task on a stream, until it is dropped.
pub(in crate::server) struct TaskWait<'a> {
    requests: &'a InputRequests,
    task: TaskId,
    stream: StreamId,
}

impl InputRequests {
    /// Registers that the client waits for the outcome of `task` on `stream`, until the returned
    /// value is dropped. Input requests of the task are sent there (BR-IN-2).
    pub(in crate::server) fn wait_on(
        &self,
        streams: &SessionStreams,
        task: TaskId,
        stream: StreamId,
    ) -> TaskWait<'_> {
        self.lock().waits.entry(task).or_default().push(stream);
        self.deliver(streams, |of| of == task);
        TaskWait {
            requests: self,
            task,
            stream,
        }
    }

    /// Sends an input request, unless it was sent before.
    pub(super) fn send(
        &self,
        streams: &SessionStreams,
        task: TaskId,
        key: InputKey,
        line: impl FnOnce() -> Option<String>,
    ) {
        {
            let mut state = self.lock();
            let id = (task, key);
            if state.requests.contains_key(&id) {
                return;
            }
            let Some(line) = line() else { return };
            let (line, sent_on) = (line.into(), None);
            state.requests.insert(id, InputRequest { line, sent_on });
        }
        self.deliver(streams, |of| of == task);
    }

    /// Removes the input requests of a task that are no longer open.
    pub(super) fn retain(&self, task: TaskId, open: impl Fn(&InputKey) -> bool) {
        let mut state = self.lock();
        state
            .requests
            .retain(|(of, key), _| *of != task || open(key));
    }

    /// Sends input requests that are on no live stream: on a stream where the client waits for the
    /// task, else on a general stream, else later (A1-4, BD-16). A stream that broke before the
    /// response does not count (BD-17).
    pub(super) fn deliver(&self, streams: &SessionStreams, of: impl Fn(TaskId) -> bool) {
        let mut state = self.lock();
        let general = streams.general();
        let State { waits, requests } = &mut *state;
        for ((task, _), request) in requests.iter_mut().filter(|((task, _), _)| of(*task)) {
            if request
                .sent_on
                .is_some_and(|stream| streams.is_live(stream))
            {
                continue;
            }
            if let Some(stream) = newest_live(streams, waits.get(task)).or(general) {
                request.sent_on = Some(stream);
                streams.send(stream, request.line.clone());
            }
        }
    }

    /// The newest live stream on which the client waits for a task.
    pub(super) fn waiting_stream(
        &self,
        streams: &SessionStreams,
        task: TaskId,
    ) -> Option<StreamId> {
        newest_live(streams, self.lock().waits.get(&task))
    }

    /// Whether the client waits for any task on a live stream.
    pub(super) fn has_live_wait(&self, streams: &SessionStreams) -> bool {
        let state = self.lock();
        let mut waits = state.waits.values().flatten();
        waits.any(|stream| streams.is_live(*stream))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Drop for TaskWait<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.lock();
        if let Some(streams) = state.waits.get_mut(&self.task) {
            streams.retain(|found| *found != self.stream);
            if streams.is_empty() {
                state.waits.remove(&self.task);
            }
        }
    }
}

fn newest_live(streams: &SessionStreams, waits: Option<&Vec<StreamId>>) -> Option<StreamId> {
    let mut newest = waits?.iter().rev().copied();
    newest.find(|stream| streams.is_live(*stream))
}
