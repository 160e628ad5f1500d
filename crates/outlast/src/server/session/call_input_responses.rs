//! Input responses to calls that are no tasks: the engine does not store those calls, so the session finds them.

use std::collections::{BTreeMap, HashMap};

use outlast_engine::{Answer, AskKey, TaskId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// Calls that are no tasks, by the id that their input requests carry.
#[derive(Default)]
pub(in crate::server) struct CallInputResponses(Mutex<HashMap<TaskId, Sender>>);

type Sender = mpsc::UnboundedSender<(AskKey, Answer)>;

/// Input responses to one call.
pub(in crate::server) struct InputResponseReceiver<'a> {
    calls: &'a CallInputResponses,
    call: TaskId,
    receiver: mpsc::UnboundedReceiver<(AskKey, Answer)>,
}

impl CallInputResponses {
    /// Registers a call for as long as the returned value lives.
    pub(in crate::server) fn register(&self, call: TaskId) -> InputResponseReceiver<'_> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().insert(call, sender);
        InputResponseReceiver {
            calls: self,
            call,
            receiver,
        }
    }

    /// Hands an input response to a call; gives it back if there is none of that id.
    pub(in crate::server) fn respond(
        &self,
        call: TaskId,
        key: AskKey,
        answer: Answer,
    ) -> Option<(AskKey, Answer)> {
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
    pub(in crate::server) async fn next(&mut self) -> Option<(AskKey, Answer)> {
        self.receiver.recv().await
    }

    /// Unregisters the call and returns the input responses that were not taken yet.
    pub(in crate::server) fn close(mut self) -> BTreeMap<AskKey, Answer> {
        // In this order, so that a response that comes now is either here or for the engine.
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
    fn a_response_that_comes_while_a_call_becomes_a_task_is_not_lost() {
        let (calls, call) = (CallInputResponses::default(), RandomIds.task());
        let key = || AskKey::new("k");
        let answer = || Answer::Result(Raw::parse("{}".into()).unwrap());
        let responses = calls.register(call);
        assert_eq!(calls.respond(call, key(), answer()), None);
        assert_eq!(responses.close(), BTreeMap::from([(key(), answer())]));
        // From now on it is the engine's.
        assert!(calls.respond(call, key(), answer()).is_some());
    }
}
