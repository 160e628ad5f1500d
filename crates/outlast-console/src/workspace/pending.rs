//! Input requests of servers that wait for an answer, and why they left.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use outlast::client::{
    Answer, AnswerKind, ConnectionName, Departure, InboxItem, InboxItemId, Removal,
    ServerInputRequest,
};
use outlast::task::InputKind;
use outlast::wire::{ErrorObject, codes};

use super::Workspace;
use super::call::CallId;
use super::connection::WorkspaceConnection;
use super::error::WorkspaceError;

/// The id of an input request in a workspace, such as `2-7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingId {
    /// The number of the connection.
    pub(super) connection: u64,
    /// The item of its inbox.
    pub(super) item: InboxItemId,
}

/// An input request that waits, or has left.
#[derive(Clone, Debug)]
pub struct PendingItem {
    /// Its id.
    pub id: PendingId,
    /// The connection.
    pub connection: ConnectionName,
    /// The request.
    pub request: ServerInputRequest,
    /// When it arrived.
    pub arrived: SystemTime,
    /// The call that it belongs to, if it is known.
    pub call: Option<CallId>,
    /// Why it left, if it did, and when.
    pub left: Option<(Removal, SystemTime)>,
}

impl fmt::Display for PendingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.connection, self.item.0)
    }
}

impl FromStr for PendingId {
    type Err = WorkspaceError;

    fn from_str(text: &str) -> Result<Self, WorkspaceError> {
        let gone = || WorkspaceError::Gone("there is no such request".into());
        let (connection, item) = text.split_once('-').ok_or_else(gone)?;
        Ok(Self {
            connection: connection.parse().map_err(|_| gone())?,
            item: InboxItemId(item.parse().map_err(|_| gone())?),
        })
    }
}

impl PendingItem {
    /// Whether it asks for a response of a model.
    pub fn is_sampling(&self) -> bool {
        matches!(
            self.request.kind,
            InputKind::Sample | InputKind::SampleWithTools
        )
    }
}

/// Why an item left, for a person.
pub fn removal_text(removal: &Removal) -> String {
    match removal {
        Removal::Answered { kind, by } => {
            let what = match kind {
                AnswerKind::Responded => "answered",
                AnswerKind::Rejected => "refused",
                AnswerKind::Declined => "declined",
                _ => "closed",
            };
            match by {
                Some(by) => format!("{what} by {by}"),
                None => what.to_owned(),
            }
        }
        Removal::TaskCancelled => "its task was cancelled".into(),
        Removal::TaskExpired => "the TTL of its task ended".into(),
        Removal::Disconnected => "the connection to the server ended".into(),
        Removal::Ended => "the call that it belongs to has ended".into(),
        _ => "the server no longer waits for an answer".into(),
    }
}

/// As [`removal_text`], for the middle of a sentence.
fn removal_sentence(removal: &Removal) -> String {
    let text = removal_text(removal);
    match removal {
        Removal::Answered { .. } => format!("the request was already {text}"),
        _ => text,
    }
}

impl Workspace {
    /// The input requests that wait, oldest first.
    pub fn pending(&self) -> Vec<PendingItem> {
        let mut pending: Vec<_> = self
            .all_connections()
            .iter()
            .flat_map(|connection| {
                let items = connection.inbox.items().into_iter();
                items.map(|item| pending_item(connection, item, None))
            })
            .collect();
        pending.sort_by_key(|item| (item.arrived, item.id));
        pending
    }

    /// The input requests that left, newest first.
    pub fn departed(&self, count: usize) -> Vec<PendingItem> {
        let mut departed: Vec<_> = self
            .all_connections()
            .iter()
            .flat_map(|connection| {
                let departures = connection.inbox.departures().into_iter();
                departures.map(|departure| departed_item(connection, departure))
            })
            .collect();
        departed.sort_by_key(|item| std::cmp::Reverse(item.left.as_ref().map(|(_, at)| *at)));
        departed.truncate(count);
        departed
    }

    /// An input request that waits or has left.
    pub fn pending_item(&self, id: PendingId) -> Result<PendingItem, WorkspaceError> {
        let connection = self.numbered(id.connection)?;
        if let Some(item) = connection.inbox.item(id.item) {
            return Ok(pending_item(&connection, item, None));
        }
        let departure = connection.inbox.departure(id.item);
        let departure =
            departure.ok_or_else(|| WorkspaceError::Gone("this request no longer waits".into()))?;
        Ok(departed_item(&connection, departure))
    }

    /// Answers an input request. The first answer counts; the error of a later one says who was
    /// first. `by` names who answers.
    pub fn answer(
        &self,
        id: PendingId,
        answer: Answer,
        by: Option<Arc<str>>,
    ) -> Result<(), WorkspaceError> {
        let connection = self.numbered(id.connection)?;
        let answer = match (answer, connection.inbox.item(id.item)) {
            (Answer::Decline, Some(item)) if self.fails_when_declined(&item.request) => {
                let error = ErrorObject::new(codes::DECLINED_BY_USER, DECLINED_ELICITATION);
                Answer::Reject(error.to_raw())
            }
            (answer, _) => answer,
        };
        connection.inbox.answer(id.item, answer, by).map_err(|_| {
            let why = connection.inbox.departure(id.item).map_or_else(
                || "the request no longer waits".to_owned(),
                |departure| removal_sentence(&departure.removal),
            );
            WorkspaceError::Gone(format!("your answer was not sent: {why}"))
        })
    }

    /// S1-60: with the switch, the task of a declined elicitation fails.
    fn fails_when_declined(&self, request: &ServerInputRequest) -> bool {
        let is_elicitation = matches!(request.kind, InputKind::ElicitForm | InputKind::ElicitUrl);
        is_elicitation && request.hosted_task.is_some() && self.0.settings.decline_fails()
    }

    fn all_connections(&self) -> Vec<Arc<WorkspaceConnection>> {
        self.0.state.lock().connections.values().cloned().collect()
    }

    fn numbered(&self, number: u64) -> Result<Arc<WorkspaceConnection>, WorkspaceError> {
        let connections = self.all_connections();
        let found = connections
            .into_iter()
            .find(|connection| connection.number() == number);
        found.ok_or_else(|| WorkspaceError::Gone("its connection was removed".into()))
    }
}

fn pending_item(
    connection: &WorkspaceConnection,
    item: InboxItem,
    left: Option<(Removal, SystemTime)>,
) -> PendingItem {
    PendingItem {
        id: PendingId {
            connection: connection.number(),
            item: item.id,
        },
        connection: connection.name().clone(),
        call: item.request.call.as_deref().and_then(CallId::named),
        request: item.request,
        arrived: item.arrived,
        left,
    }
}

fn departed_item(connection: &WorkspaceConnection, departure: Departure) -> PendingItem {
    let left = Some((departure.removal, departure.at));
    pending_item(connection, departure.item, left)
}

const DECLINED_ELICITATION: &str = "User declined elicitation request";
