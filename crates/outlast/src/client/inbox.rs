//! A host for people: questions wait in a list until somebody answers, declines or closes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use outlast_engine::{Accepts, Answer};
use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{broadcast, oneshot};

use super::handler::{Host, HostRequest, decline, dismiss, roots};

/// Questions that wait for a person. Cheap to clone; all clones are one inbox.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    accepts: Accepts,
    state: Mutex<State>,
    news: broadcast::Sender<InboxEvent>,
}

#[derive(Default)]
struct State {
    next: u64,
    items: BTreeMap<ItemId, (Item, oneshot::Sender<Answer>)>,
    roots: Vec<(String, Option<String>)>,
}

/// Which question of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u64);

/// A question that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its place in the inbox.
    pub id: ItemId,
    /// The question, with the server that asks and the task it belongs to.
    pub request: HostRequest,
    /// When it arrived.
    pub arrived: SystemTime,
}

/// News of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// A question has arrived (S1-8).
    Arrived(ItemId),
    /// A question does not wait any more: answered here, or taken back by its server.
    Gone(ItemId),
}

/// The question does not wait any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("question {} does not wait any more", .0.0)]
pub struct NotWaiting(pub ItemId);

impl Inbox {
    /// An inbox that takes these kinds of questions. Roots are answered from [`Inbox::share`].
    pub fn new(accepts: Accepts) -> Self {
        Self(Arc::new(Inner {
            accepts,
            state: Mutex::default(),
            news: broadcast::channel(NEWS).0,
        }))
    }

    /// What waits, oldest first.
    pub fn items(&self) -> Vec<Item> {
        let state = self.0.state();
        state.items.values().map(|(item, _)| item.clone()).collect()
    }

    /// One that waits.
    pub fn item(&self, id: ItemId) -> Option<Item> {
        Some(self.0.state().items.get(&id)?.0.clone())
    }

    /// News from now on.
    pub fn news(&self) -> broadcast::Receiver<InboxEvent> {
        self.0.news.subscribe()
    }

    /// The oldest question, once there is one.
    pub async fn first(&self) -> Item {
        loop {
            let mut news = self.news();
            if let Some(item) = self.items().into_iter().next() {
                return item;
            }
            // Lagging behind is as good a reason to look as news.
            let _ = news.recv().await;
        }
    }

    /// Answers a question with the result of its request.
    pub fn respond(&self, id: ItemId, result: Raw) -> Result<(), NotWaiting> {
        self.settle(id, |_| Answer::Result(result))
    }

    /// Answers a question with an error.
    pub fn reject(
        &self,
        id: ItemId,
        error: &outlast_wire::envelope::ErrorObject,
    ) -> Result<(), NotWaiting> {
        self.settle(id, |_| Answer::Error(error.to_raw()))
    }

    /// Says no to a question.
    pub fn decline(&self, id: ItemId) -> Result<(), NotWaiting> {
        self.settle(id, |request| decline(request.kind))
    }

    /// Closes a question without an answer of its own. Its server is told so (S1-85).
    pub fn cancel(&self, id: ItemId) -> Result<(), NotWaiting> {
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
        id: ItemId,
        answer: impl FnOnce(&HostRequest) -> Answer,
    ) -> Result<(), NotWaiting> {
        let found = self.0.state().items.remove(&id);
        let (item, tell) = found.ok_or(NotWaiting(id))?;
        let _ = self.0.news.send(InboxEvent::Gone(id));
        // Taken back in this very moment.
        tell.send(answer(&item.request)).map_err(|_| NotWaiting(id))
    }
}

#[async_trait]
impl Host for Inbox {
    fn accepts(&self) -> Accepts {
        self.0.accepts
    }

    async fn ask(&self, request: HostRequest) -> Answer {
        let kind = request.kind;
        if kind == outlast_engine::AskKind::Roots {
            let shared = self.0.state().roots.clone();
            let shared = shared
                .iter()
                .map(|(uri, name)| (uri.as_str(), name.as_deref()));
            return roots(shared);
        }
        let (tell, told) = oneshot::channel();
        let waits = Waits {
            inbox: &self.0,
            id: self.0.add(request, tell),
        };
        let answer = told.await;
        drop(waits);
        answer.unwrap_or_else(|_| dismiss(kind))
    }
}

impl Inner {
    fn add(&self, request: HostRequest, tell: oneshot::Sender<Answer>) -> ItemId {
        let id = {
            let mut state = self.state();
            state.next += 1;
            let id = ItemId(state.next);
            let item = Item {
                id,
                request,
                arrived: SystemTime::now(),
            };
            state.items.insert(id, (item, tell));
            id
        };
        let _ = self.news.send(InboxEvent::Arrived(id));
        id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// That a question waits. Dropped with the future of whoever asked.
struct Waits<'a> {
    inbox: &'a Inner,
    id: ItemId,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.inbox.state().items.remove(&self.id).is_some() {
            let _ = self.inbox.news.send(InboxEvent::Gone(self.id));
        }
    }
}

/// How much news a slow listener may be behind.
const NEWS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::AskKind;

    fn question(kind: AskKind) -> HostRequest {
        HostRequest {
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
        let mut news = inbox.news();
        let asker = inbox.clone();
        let asked = tokio::spawn(async move { asker.ask(question(AskKind::ElicitForm)).await });
        let item = inbox.first().await;
        assert_eq!(news.recv().await, Ok(InboxEvent::Arrived(item.id)));
        assert_eq!(item.request, question(AskKind::ElicitForm));
        inbox.decline(item.id).unwrap();
        assert_eq!(news.recv().await, Ok(InboxEvent::Gone(item.id)));
        assert_eq!(asked.await.unwrap(), decline(AskKind::ElicitForm));
        assert_eq!(inbox.cancel(item.id), Err(NotWaiting(item.id)));
    }

    #[tokio::test]
    async fn a_question_that_is_taken_back_leaves_the_inbox() {
        // S1-45, S0-74.
        let inbox = Inbox::new(Accepts::all());
        let asker = inbox.clone();
        let asked = tokio::spawn(async move { asker.ask(question(AskKind::Sample)).await });
        let item = inbox.first().await;
        let mut news = inbox.news();
        asked.abort();
        assert_eq!(news.recv().await, Ok(InboxEvent::Gone(item.id)));
        assert!(inbox.items().is_empty());
    }

    #[tokio::test]
    async fn roots_are_those_that_are_shared() {
        // V1-ROOT-2, V1-ROOT-4, S1-10.
        let inbox = Inbox::new(Accepts::all());
        let Answer::Result(none) = inbox.ask(question(AskKind::Roots)).await else {
            panic!("roots are a result");
        };
        assert_eq!(none.as_str(), r#"{"roots":[]}"#);
        inbox.share([
            ("file:///work".into(), Some("work".into())),
            ("https://x".into(), None),
        ]);
        let Answer::Result(some) = inbox.ask(question(AskKind::Roots)).await else {
            panic!("roots are a result");
        };
        assert_eq!(
            some.as_str(),
            r#"{"roots":[{"name":"work","uri":"file:///work"}]}"#
        );
    }
}
