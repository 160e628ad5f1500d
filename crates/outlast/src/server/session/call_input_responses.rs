//! Input responses to plain calls. The engine does not store those calls, so the session routes
//! their responses.

use std::collections::{BTreeMap, HashMap};

use outlast_engine::{InputKey, InputResponse, TaskId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// Plain calls, by the id in their input requests.
#[derive(Default)]
pub(in crate::server) struct CallInputResponses(Mutex<HashMap<TaskId, Sender>>);

type Sender = mpsc::UnboundedSender<(InputKey, InputResponse)>;

/// Input responses to one call.
pub(in crate::server) struct InputResponseReceiver<'a> {
    calls: &'a CallInputResponses,
    call: TaskId,
    receiver: mpsc::UnboundedReceiver<(InputKey, InputResponse)>,
}

impl CallInputResponses {
    /// Registers a call until the returned value is dropped.
    pub(in crate::server) fn register(&self, call: TaskId) -> InputResponseReceiver<'_> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().insert(call, sender);
        InputResponseReceiver {
            calls: self,
            call,
            receiver,
        }
    }

    /// Routes an input response to a call; returns it if no call has that id.
    pub(in crate::server) fn respond(
        &self,
        call: TaskId,
        key: InputKey,
        answer: InputResponse,
    ) -> Option<(InputKey, InputResponse)> {
        match self.lock().get(&call) {
            Some(sender) => {
                let _ = sender.send((key, answer));
                None
            }
            None => Some((key, answer)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Sender>> {
        self.0.lock()
    }
}

impl InputResponseReceiver<'_> {
    /// The next input response.
    pub(in crate::server) async fn next(&mut self) -> Option<(InputKey, InputResponse)> {
        self.receiver.recv().await
    }

    /// Unregisters the call and returns the unread input responses.
    pub(in crate::server) fn close(mut self) -> BTreeMap<InputKey, InputResponse> {
        // In this order: a response that arrives now is either read here or goes to the engine.
        self.calls.lock().remove(&self.call);
        let mut unread = BTreeMap::new();
        while let Ok((key, answer)) = self.receiver.try_recv() {
            unread.insert(key, answer);
        }
        unread
    }
}

impl Drop for InputResponseReceiver<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Ids, RandomIds};
    use outlast_wire::Raw;

    use super::*;

    #[test]
    fn no_response_is_lost_while_a_call_becomes_a_task() {
        let (calls, call) = (CallInputResponses::default(), RandomIds.task());
        let key = || InputKey::new("k");
        let answer = || InputResponse::Result(Raw::parse("{}".into()).unwrap());
        let responses = calls.register(call);
        assert_eq!(calls.respond(call, key(), answer()), None);
        assert_eq!(responses.close(), BTreeMap::from([(key(), answer())]));
        // From now on responses go to the engine.
        assert!(calls.respond(call, key(), answer()).is_some());
    }
}
