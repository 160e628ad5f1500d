//! A host for people: questions wait in a list until somebody answers, declines or closes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use outlast_engine::{Accepts, Answer};
use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{broadcast, oneshot};

use super::handler::{ClientHandler, ServerInputRequest, decline, dismiss, roots};

/// Questions that wait for a person. Cheap to clone; all clones are one inbox.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    accepts: Accepts,
    state: Mutex<State>,
    events: broadcast::Sender<InboxEvent>,
}

#[derive(Default)]
struct State {
    next: u64,
    items: BTreeMap<InboxItemId, (InboxItem, oneshot::Sender<Answer>)>,
    roots: Vec<(String, Option<String>)>,
}

/// Which question of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboxItemId(pub u64);

/// A question that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxItem {
    /// Its place in the inbox.
    pub id: InboxItemId,
    /// The question, with the server that asks and the task it belongs to.
    pub request: ServerInputRequest,
    /// When it arrived.
    pub arrived: SystemTime,
}

/// News of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// A question has arrived (S1-8).
    Arrived(InboxItemId),
    /// A question does not wait any more: answered here, or taken back by its server.
    Removed(InboxItemId),
}

/// The question does not wait any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("question {} does not wait any more", .0.0)]
pub struct NoSuchItem(pub InboxItemId);

impl Inbox {
    /// An inbox that takes these kinds of questions. Roots are answered from [`Inbox::share`].
    pub fn new(accepts: Accepts) -> Self {
        Self(Arc::new(Inner {
            accepts,
            state: Mutex::default(),
            events: broadcast::channel(EVENT_CAPACITY).0,
        }))
    }

    /// What waits, oldest first.
    pub fn items(&self) -> Vec<InboxItem> {
        let state = self.0.state();
        state.items.values().map(|(item, _)| item.clone()).collect()
    }

    /// One that waits.
    pub fn item(&self, id: InboxItemId) -> Option<InboxItem> {
        Some(self.0.state().items.get(&id)?.0.clone())
    }

    /// News from now on.
    pub fn events(&self) -> broadcast::Receiver<InboxEvent> {
        self.0.events.subscribe()
    }

    /// The oldest question, once there is one.
    pub async fn first(&self) -> InboxItem {
        loop {
            let mut events = self.events();
            if let Some(item) = self.items().into_iter().next() {
                return item;
            }
            // Lagging behind is as good a reason to look as news.
            let _ = events.recv().await;
        }
    }

    /// Answers a question with the result of its request.
    pub fn respond(&self, id: InboxItemId, result: Raw) -> Result<(), NoSuchItem> {
        self.settle(id, |_| Answer::Result(result))
    }

    /// Answers a question with an error.
    pub fn reject(
        &self,
        id: InboxItemId,
        error: &outlast_wire::envelope::ErrorObject,
    ) -> Result<(), NoSuchItem> {
        self.settle(id, |_| Answer::Error(error.to_raw()))
    }

    /// Says no to a question.
    pub fn decline(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.settle(id, |request| decline(request.kind))
    }

    /// Closes a question without an answer of its own. Its server is told so (S1-85).
    pub fn cancel(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.settle(id, |request| dismiss(request.kind))
    }

    /// The folders that servers may know of, each with a name if it has one (V1-ROOT-4). Those that are no `file://`
    /// URI are left out (V1-ROOT-2).
    pub fn share(&self, roots: impl IntoIterator<Item = (String, Option<String>)>) {
        let files = roots
            .into_iter()
            .filter(|(uri, _)| uri.starts_with("file://"));
        self.0.state().roots = files.collect();
    }

    fn settle(
        &self,
        id: InboxItemId,
        answer: impl FnOnce(&ServerInputRequest) -> Answer,
    ) -> Result<(), NoSuchItem> {
        let found = self.0.state().items.remove(&id);
        let (item, sender) = found.ok_or(NoSuchItem(id))?;
        let _ = self.0.events.send(InboxEvent::Removed(id));
        // Taken back in this very moment.
        sender
            .send(answer(&item.request))
            .map_err(|_| NoSuchItem(id))
    }
}

#[async_trait]
impl ClientHandler for Inbox {
    fn accepts(&self) -> Accepts {
        self.0.accepts
    }

    async fn handle(&self, request: ServerInputRequest) -> Answer {
        let kind = request.kind;
        if kind == outlast_engine::AskKind::Roots {
            let shared = self.0.state().roots.clone();
            let shared = shared
                .iter()
                .map(|(uri, name)| (uri.as_str(), name.as_deref()));
            return roots(shared);
        }
        let (sender, receiver) = oneshot::channel();
        let pending_item = PendingItem {
            inbox: &self.0,
            id: self.0.add(request, sender),
        };
        let answer = receiver.await;
        drop(pending_item);
        answer.unwrap_or_else(|_| dismiss(kind))
    }
}

impl Inner {
    fn add(&self, request: ServerInputRequest, sender: oneshot::Sender<Answer>) -> InboxItemId {
        let id = {
            let mut state = self.state();
            state.next += 1;
            let id = InboxItemId(state.next);
            let item = InboxItem {
                id,
                request,
                arrived: SystemTime::now(),
            };
            state.items.insert(id, (item, sender));
            id
        };
        let _ = self.events.send(InboxEvent::Arrived(id));
        id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// That a question waits. Dropped with the future of whoever asked.
struct PendingItem<'a> {
    inbox: &'a Inner,
    id: InboxItemId,
}

impl Drop for PendingItem<'_> {
    fn drop(&mut self) {
        if self.inbox.state().items.remove(&self.id).is_some() {
            let _ = self.inbox.events.send(InboxEvent::Removed(self.id));
        }
    }
}

/// How much news a slow listener may be behind.
const EVENT_CAPACITY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::AskKind;

    fn input_request(kind: AskKind) -> ServerInputRequest {
        ServerInputRequest {
            request: None,
            kind,
            server: "s".into(),
            call: None,
            key: None,
            task: Some("t".into()),
            params: None,
        }
    }

    #[tokio::test]
    async fn a_question_waits_until_it_is_answered_and_only_once() {
        let inbox = Inbox::new(Accepts::all());
        let mut events = inbox.events();
        let handler = inbox.clone();
        let asked =
            tokio::spawn(async move { handler.handle(input_request(AskKind::ElicitForm)).await });
        let item = inbox.first().await;
        assert_eq!(events.recv().await, Ok(InboxEvent::Arrived(item.id)));
        assert_eq!(item.request, input_request(AskKind::ElicitForm));
        inbox.decline(item.id).unwrap();
        assert_eq!(events.recv().await, Ok(InboxEvent::Removed(item.id)));
        assert_eq!(asked.await.unwrap(), decline(AskKind::ElicitForm));
        assert_eq!(inbox.cancel(item.id), Err(NoSuchItem(item.id)));
    }

    #[tokio::test]
    async fn a_question_that_is_taken_back_leaves_the_inbox() {
        // S1-45, S0-74.
        let inbox = Inbox::new(Accepts::all());
        let handler = inbox.clone();
        let asked =
            tokio::spawn(async move { handler.handle(input_request(AskKind::Sample)).await });
        let item = inbox.first().await;
        let mut events = inbox.events();
        asked.abort();
        assert_eq!(events.recv().await, Ok(InboxEvent::Removed(item.id)));
        assert!(inbox.items().is_empty());
    }

    #[tokio::test]
    async fn roots_are_those_that_are_shared() {
        // V1-ROOT-2, V1-ROOT-4, S1-10.
        let inbox = Inbox::new(Accepts::all());
        let Answer::Result(none) = inbox.handle(input_request(AskKind::Roots)).await else {
            panic!("roots are a result");
        };
        assert_eq!(none.as_str(), r#"{"roots":[]}"#);
        inbox.share([
            ("file:///work".into(), Some("work".into())),
            ("https://x".into(), None),
        ]);
        let Answer::Result(some) = inbox.handle(input_request(AskKind::Roots)).await else {
            panic!("roots are a result");
        };
        assert_eq!(
            some.as_str(),
            r#"{"roots":[{"name":"work","uri":"file:///work"}]}"#
        );
    }
}
