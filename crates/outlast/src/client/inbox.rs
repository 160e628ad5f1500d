//! A handler for interactive programs: input requests wait in a list until the user responds,
//! declines or closes them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use outlast_engine::{InputKind, InputKinds, InputResponse};
use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{broadcast, oneshot};

use super::handler::{
    CONNECTION_ENDED, ClientHandler, ServerInputRequest, TASK_CANCELLED, TASK_EXPIRED, decline,
    dismiss, roots,
};

/// Input requests that wait for a user. Cheap to clone; all clones share one list.
///
/// ```no_run
/// use std::sync::Arc;
/// use outlast::client::{ClientOptions, Inbox};
/// use outlast::prelude::*;
/// use outlast::task::InputKinds;
///
/// # async fn run(target: Target) -> Result<(), Box<dyn std::error::Error>> {
/// let inbox = Inbox::new(InputKinds::all());
/// let options = ClientOptions::default().with_handler(Arc::new(inbox.clone()));
/// let client = Client::connect(target, options).await?;
/// let call = client.call_tool("publish", ()).await?;
/// // The first request waits until the user decides.
/// let item = inbox.first().await;
/// println!("{} asks: {:?}", item.request.server, item.request.params);
/// inbox.decline(item.id)?;
/// println!("{}", call.result().await?.text());
/// # Ok(()) }
/// ```
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
    /// The last items that left, oldest first.
    departures: VecDeque<Departure>,
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

/// An answer to an item.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The result of the request.
    Respond(Raw),
    /// An error object.
    Reject(Raw),
    /// The user declines.
    Decline,
    /// The user closes the request without an answer. The server gets the matching response
    /// (S1-85).
    Cancel,
}

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerKind {
    /// The request has a result.
    Responded,
    /// The request has an error.
    Rejected,
    /// The user declined.
    Declined,
    /// The user closed the request.
    Cancelled,
}

/// Why an item left the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It was answered here.
    Answered {
        /// The kind of the answer.
        kind: AnswerKind,
        /// Who answered, if the program passed a name.
        by: Option<Arc<str>>,
    },
    /// The task that the client hosts for it was cancelled.
    TaskCancelled,
    /// The TTL of the task that the client hosts for it ended.
    TaskExpired,
    /// The connection to the server ended.
    Disconnected,
    /// The server no longer waits for the response.
    Withdrawn,
    /// The program says that the work behind it has ended ([`Inbox::end`]).
    Ended,
}

/// An item that has left the inbox.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Departure {
    /// The item.
    pub item: InboxItem,
    /// Why it left.
    pub removal: Removal,
    /// When it left.
    pub at: SystemTime,
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

    /// An item that has left. The last ones are kept.
    pub fn departure(&self, id: InboxItemId) -> Option<Departure> {
        let state = self.0.state();
        let mut departures = state.departures.iter();
        departures.find(|left| left.item.id == id).cloned()
    }

    /// The last items that left, oldest first.
    pub fn departures(&self) -> Vec<Departure> {
        self.0.state().departures.iter().cloned().collect()
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

    /// Answers a request. The first answer is sent; a later one fails, and
    /// [`Inbox::departure`] says who was first. `by` names who answers.
    pub fn answer(
        &self,
        id: InboxItemId,
        answer: Answer,
        by: Option<Arc<str>>,
    ) -> Result<(), NoSuchItem> {
        let kind = answer.kind();
        let removal = Removal::Answered { kind, by };
        let (item, sender) = self.0.remove(id, removal).ok_or(NoSuchItem(id))?;
        let response = match answer {
            Answer::Respond(result) => InputResponse::Result(result),
            Answer::Reject(error) => InputResponse::Error(error),
            Answer::Decline => decline(item.request.kind),
            Answer::Cancel => dismiss(item.request.kind),
        };
        // The server withdrew the request at the same moment.
        sender.send(response).map_err(|_| NoSuchItem(id))
    }

    /// Responds with the result of the request.
    pub fn respond(&self, id: InboxItemId, result: Raw) -> Result<(), NoSuchItem> {
        self.answer(id, Answer::Respond(result), None)
    }

    /// Responds with an error.
    pub fn reject(
        &self,
        id: InboxItemId,
        error: &outlast_wire::envelope::ErrorObject,
    ) -> Result<(), NoSuchItem> {
        self.answer(id, Answer::Reject(error.to_raw()), None)
    }

    /// Declines the request.
    pub fn decline(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.answer(id, Answer::Decline, None)
    }

    /// Closes the request without an answer. The server gets the matching response (S1-85).
    pub fn cancel(&self, id: InboxItemId) -> Result<(), NoSuchItem> {
        self.answer(id, Answer::Cancel, None)
    }

    /// Closes the requests for which `is_over` is true, because the work behind them has ended.
    /// Some servers do not withdraw them.
    pub fn end(&self, is_over: impl Fn(&ServerInputRequest) -> bool) {
        let over: Vec<_> = {
            let state = self.0.state();
            let items = state.items.values().map(|(item, _)| item);
            items
                .filter(|item| is_over(&item.request))
                .map(|item| item.id)
                .collect()
        };
        for id in over {
            if let Some((item, sender)) = self.0.remove(id, Removal::Ended) {
                let _ = sender.send(dismiss(item.request.kind));
            }
        }
    }

    /// Sets the roots that servers may read, each with an optional name (V1-ROOT-4). URIs other
    /// than `file://` are ignored (V1-ROOT-2).
    pub fn share(&self, roots: impl IntoIterator<Item = (String, Option<String>)>) {
        let files = roots
            .into_iter()
            .filter(|(uri, _)| uri.starts_with("file://"));
        self.0.state().roots = files.collect();
    }
}

impl Answer {
    fn kind(&self) -> AnswerKind {
        match self {
            Self::Respond(_) => AnswerKind::Responded,
            Self::Reject(_) => AnswerKind::Rejected,
            Self::Decline => AnswerKind::Declined,
            Self::Cancel => AnswerKind::Cancelled,
        }
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

    fn task_aborted(&self, request: &ServerInputRequest, reason: &str) {
        self.0.withdraw(request, reason);
    }

    fn request_aborted(&self, request: &ServerInputRequest, reason: &str) {
        self.0.withdraw(request, reason);
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

    /// Removes an item and keeps why it left.
    fn remove(
        &self,
        id: InboxItemId,
        removal: Removal,
    ) -> Option<(InboxItem, oneshot::Sender<InputResponse>)> {
        let removed = {
            let mut state = self.state();
            let removed = state.items.remove(&id)?;
            if state.departures.len() >= MAX_DEPARTURES {
                state.departures.pop_front();
            }
            state.departures.push_back(Departure {
                item: removed.0.clone(),
                removal,
                at: SystemTime::now(),
            });
            removed
        };
        let _ = self.events.send(InboxEvent::Removed(id));
        Some(removed)
    }

    /// Removes the item of an aborted request.
    fn withdraw(&self, request: &ServerInputRequest, reason: &str) {
        let found = {
            let state = self.state();
            let mut items = state.items.iter();
            items
                .find(|(_, (item, _))| item.request == *request)
                .map(|(id, _)| *id)
        };
        let removal = match reason {
            TASK_CANCELLED => Removal::TaskCancelled,
            TASK_EXPIRED => Removal::TaskExpired,
            CONNECTION_ENDED => Removal::Disconnected,
            _ => Removal::Withdrawn,
        };
        if let Some(id) = found {
            self.remove(id, removal);
        }
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
        self.inbox.remove(self.id, Removal::Withdrawn);
    }
}

/// How many events a slow subscriber may lag behind.
const EVENT_CAPACITY: usize = 256;

/// How many items that left are kept.
const MAX_DEPARTURES: usize = 256;

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
            hosted_task: None,
            params: None,
        }
    }

    #[tokio::test]
    async fn an_input_request_waits_for_exactly_one_response() {
        let inbox = Inbox::new(InputKinds::all());
        let mut events = inbox.events();
        let handler = inbox.clone();
        let response =
            tokio::spawn(async move { handler.handle(input_request(InputKind::ElicitForm)).await });
        let item = inbox.first().await;
        assert_eq!(
            events.recv().await,
            Ok(InboxEvent::NewPendingElicitation(item.id))
        );
        assert_eq!(item.request, input_request(InputKind::ElicitForm));
        inbox.decline(item.id).unwrap();
        assert_eq!(events.recv().await, Ok(InboxEvent::Removed(item.id)));
        assert_eq!(response.await.unwrap(), decline(InputKind::ElicitForm));
        assert_eq!(inbox.cancel(item.id), Err(NoSuchItem(item.id)));
    }

    #[tokio::test]
    async fn the_second_answer_learns_who_was_first() {
        let inbox = Inbox::new(InputKinds::all());
        let handler = inbox.clone();
        let asked =
            tokio::spawn(async move { handler.handle(input_request(InputKind::ElicitForm)).await });
        let id = inbox.first().await.id;
        assert_eq!(inbox.departure(id), None);
        inbox
            .answer(id, Answer::Decline, Some("ada".into()))
            .unwrap();
        let late = inbox.answer(id, Answer::Cancel, Some("bob".into()));
        assert_eq!(late, Err(NoSuchItem(id)));
        let removal = Removal::Answered {
            kind: AnswerKind::Declined,
            by: Some("ada".into()),
        };
        assert_eq!(inbox.departure(id).map(|left| left.removal), Some(removal));
        assert_eq!(asked.await.unwrap(), decline(InputKind::ElicitForm));
    }

    #[tokio::test]
    async fn an_item_that_leaves_says_why() {
        // S1-45, S1-87.
        let inbox = Inbox::new(InputKinds::all());
        for (reason, removal) in [
            (TASK_CANCELLED, Removal::TaskCancelled),
            (TASK_EXPIRED, Removal::TaskExpired),
            (CONNECTION_ENDED, Removal::Disconnected),
            ("other", Removal::Withdrawn),
        ] {
            let handler = inbox.clone();
            let asked =
                tokio::spawn(async move { handler.handle(input_request(InputKind::Sample)).await });
            let item = inbox.first().await;
            inbox.task_aborted(&item.request, reason);
            assert_eq!(
                inbox.departure(item.id).map(|left| left.removal),
                Some(removal)
            );
            assert_eq!(asked.await.unwrap(), dismiss(InputKind::Sample));
        }
        assert_eq!(inbox.departures().len(), 4);
    }

    #[tokio::test]
    async fn a_withdrawn_input_request_leaves_the_inbox() {
        // S1-45, S1-87, S0-74.
        let inbox = Inbox::new(InputKinds::all());
        let handler = inbox.clone();
        let response =
            tokio::spawn(async move { handler.handle(input_request(InputKind::Sample)).await });
        let item = inbox.first().await;
        let mut events = inbox.events();
        response.abort();
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
