//! A handler for interactive programs: input requests wait in a list until the user responds,
//! declines or closes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use outlast_engine::{InputKind, InputKinds, InputResponse};
use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{broadcast, oneshot};

use super::handler::{ClientHandler, ServerInputRequest, decline, dismiss, roots};

/// Input requests that wait for a user. Cheap to clone; all clones share one list.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    accepts: InputKinds,
    state: Mutex<State>,
    events: broadcast::Sender<InboxEvent>,
}

#[derive(Default)]
struct State {
    next: u64,
    items: BTreeMap<InboxItemId, (InboxItem, oneshot::Sender<InputResponse>)>,
    roots: Vec<(String, Option<String>)>,
}

/// The id of an item in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboxItemId(pub u64);

/// An input request that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxItem {
    /// Its id.
    pub id: InboxItemId,
    /// The input request, with its server and its task.
    pub request: ServerInputRequest,
    /// When it arrived.
    pub arrived: SystemTime,
}

/// An event of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// A sampling request has arrived, as a task or not (S1-8, S1-16).
    NewPendingSample(InboxItemId),
    /// An elicitation has arrived, as a task or not (S1-8, S1-16).
    NewPendingElicitation(InboxItemId),
    /// An input request no longer waits: it got its response here, or its server withdrew it.
    Removed(InboxItemId),
}

/// The item is not in the inbox: it got its response, or its server withdrew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input request {} no longer waits for a response", .0.0)]
pub struct NoSuchItem(pub InboxItemId);

impl Inbox {
    /// Creates an inbox that accepts these input kinds. `roots/list` is answered with the roots set
    /// by [`Inbox::share`].
    pub fn new(accepts: InputKinds) -> Self {
        Self(Arc::new(Inner {
            accepts,
            state: Mutex::default(),
            events: broadcast::channel(EVENT_CAPACITY).0,
        }))
    }

    /// The waiting items, oldest first.
    pub fn items(&self) -> Vec<InboxItem> {
        let state = self.0.state();
        state.items.values().map(|(item, _)| item.clone()).collect()
    }

    /// A waiting item.
    pub fn item(&self, id: InboxItemId) -> Option<InboxItem> {
        Some(self.0.state().items.get(&id)?.0.clone())
    }

    /// The events from now on.
    pub fn events(&self) -> broadcast::Receiver<InboxEvent> {
        self.0.events.subscribe()
    }

    /// Waits for the oldest item.
    pub async fn first(&self) -> InboxItem {
        loop {
            let mut events = self.events();
            if let Some(item) = self.items().into_iter().next() {
                return item;
            }
            // After a lag the list is read again, too.
            let _ = events.recv().await;
        }
    }

    /// Responds with the result of the request.
    pub fn respond(&self, id: InboxItemId, result: Raw) -> Result<(), NoSuchItem> {
        self.resolve(id, |_| InputResponse::Result(result))
    }

    /// Responds with an error.
    pub fn reject(
        &self,
        id: InboxItemId,
        error: &outlast_wire::envelope::ErrorObject,
    ) -> Result<(), NoSuchItem> {
        self.resolve(id, |_| InputResponse::Error(error.to_raw()))
    }

    /// Declines the request.
    pub fn decline(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.resolve(id, |request| decline(request.kind))
    }

    /// Closes the request without an answer. The server gets the matching response (S1-85).
    pub fn cancel(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.resolve(id, |request| dismiss(request.kind))
    }

    /// Sets the roots that servers may read, each with an optional name (V1-ROOT-4). URIs other
    /// than `file://` are ignored (V1-ROOT-2).
    pub fn share(&self, roots: impl IntoIterator<Item = (String, Option<String>)>) {
        let files = roots
            .into_iter()
            .filter(|(uri, _)| uri.starts_with("file://"));
        self.0.state().roots = files.collect();
    }

    fn resolve(
        &self,
        id: InboxItemId,
        response: impl FnOnce(&ServerInputRequest) -> InputResponse,
    ) -> Result<(), NoSuchItem> {
        let found = self.0.state().items.remove(&id);
        let (item, sender) = found.ok_or(NoSuchItem(id))?;
        let _ = self.0.events.send(InboxEvent::Removed(id));
        // The server withdrew the request at the same moment.
        sender
            .send(response(&item.request))
            .map_err(|_| NoSuchItem(id))
    }
}

#[async_trait]
impl ClientHandler for Inbox {
    fn accepts(&self) -> InputKinds {
        self.0.accepts
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        let kind = request.kind;
        if kind == InputKind::Roots {
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
        let response = receiver.await;
        drop(pending_item);
        response.unwrap_or_else(|_| dismiss(kind))
    }
}

impl Inner {
    fn add(
        &self,
        request: ServerInputRequest,
        sender: oneshot::Sender<InputResponse>,
    ) -> InboxItemId {
        let arrived = match request.kind {
            InputKind::Sample | InputKind::SampleWithTools => InboxEvent::NewPendingSample,
            // Roots never wait in the inbox.
            InputKind::ElicitForm | InputKind::ElicitUrl | InputKind::Roots => {
                InboxEvent::NewPendingElicitation
            }
        };
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
        let _ = self.events.send(arrived(id));
        id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Removes an item when the future of its request is dropped.
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

/// How many events a slow subscriber may lag behind.
const EVENT_CAPACITY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn input_request(kind: InputKind) -> ServerInputRequest {
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
    async fn an_input_request_waits_for_exactly_one_response() {
        let inbox = Inbox::new(InputKinds::all());
        let mut events = inbox.events();
        let handler = inbox.clone();
        let asked =
            tokio::spawn(async move { handler.handle(input_request(InputKind::ElicitForm)).await });
        let item = inbox.first().await;
        assert_eq!(
            events.recv().await,
            Ok(InboxEvent::NewPendingElicitation(item.id))
        );
        assert_eq!(item.request, input_request(InputKind::ElicitForm));
        inbox.decline(item.id).unwrap();
        assert_eq!(events.recv().await, Ok(InboxEvent::Removed(item.id)));
        assert_eq!(asked.await.unwrap(), decline(InputKind::ElicitForm));
        assert_eq!(inbox.cancel(item.id), Err(NoSuchItem(item.id)));
    }

    #[tokio::test]
    async fn a_withdrawn_input_request_leaves_the_inbox() {
        // S1-45, S0-74.
        let inbox = Inbox::new(InputKinds::all());
        let handler = inbox.clone();
        let asked =
            tokio::spawn(async move { handler.handle(input_request(InputKind::Sample)).await });
        let item = inbox.first().await;
        let mut events = inbox.events();
        asked.abort();
        assert_eq!(events.recv().await, Ok(InboxEvent::Removed(item.id)));
        assert!(inbox.items().is_empty());
    }

    #[tokio::test]
    async fn only_shared_roots_are_returned() {
        // V1-ROOT-2, V1-ROOT-4, S1-10.
        let inbox = Inbox::new(InputKinds::all());
        let InputResponse::Result(none) = inbox.handle(input_request(InputKind::Roots)).await
        else {
            panic!("roots are a result");
        };
        assert_eq!(none.as_str(), r#"{"roots":[]}"#);
        inbox.share([
            ("file:///work".into(), Some("work".into())),
            ("https://x".into(), None),
        ]);
        let InputResponse::Result(some) = inbox.handle(input_request(InputKind::Roots)).await
        else {
            panic!("roots are a result");
        };
        assert_eq!(
            some.as_str(),
            r#"{"roots":[{"name":"work","uri":"file:///work"}]}"#
        );
    }
}
