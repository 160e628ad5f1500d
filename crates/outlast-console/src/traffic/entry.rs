//! One message of a connection.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlast::client::{ConnectionName, MessageDirection};
use outlast::wire::RawRef;
use outlast_wire::{meta, object};

/// A message of a connection.
#[derive(Clone, Debug)]
pub struct TrafficEntry {
    /// Its number. Numbers grow by one.
    pub number: u64,
    /// The connection.
    pub connection: ConnectionName,
    /// Its direction.
    pub direction: MessageDirection,
    /// When it passed.
    pub at: SystemTime,
    /// Its kind.
    pub kind: TrafficKind,
    /// Its method. A response has the method of its request.
    pub method: Option<Arc<str>>,
    /// Its request id, as JSON.
    pub id: Option<Arc<str>>,
    /// The protocol version of the connection, once it is known.
    pub version: Option<Arc<str>>,
    /// The task that it is about.
    pub task: Option<Arc<str>>,
    /// The tool that it calls.
    pub tool: Option<Arc<str>>,
    /// The number of the response of a request, or of the request of a response.
    pub pair: Option<u64>,
    /// The time from a request to its response.
    pub duration: Option<Duration>,
    /// Why a request has no response.
    pub failure: Option<Arc<str>>,
    /// The size of the message in bytes.
    pub bytes: usize,
    /// The message without secrets; `None` if it was too large to keep.
    pub text: Option<Arc<str>>,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// A request.
    Request,
    /// A notification.
    Notification,
    /// A response with a result.
    Result,
    /// A response with an error.
    Error,
    /// Not a JSON-RPC message.
    Invalid,
}

impl TrafficKind {
    /// The name for pages and filters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
            Self::Invalid => "invalid",
        }
    }
}

/// What is read of a message.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub(super) kind: Option<TrafficKind>,
    pub(super) method: Option<Arc<str>>,
    pub(super) id: Option<Arc<str>>,
    pub(super) task: Option<Arc<str>>,
    pub(super) tool: Option<Arc<str>>,
}

impl Envelope {
    pub(super) fn read(message: RawRef<'_>) -> Self {
        let names = ["method", "id", "params", "result", "error"];
        let Ok([method, id, params, result, error]) = object::pick(message, names) else {
            return Self::default();
        };
        let method = method.and_then(RawRef::text);
        let id = id.filter(|id| !id.is_null());
        let kind = match (&method, id, result, error) {
            (Some(_), Some(_), ..) => Some(TrafficKind::Request),
            (Some(_), None, ..) => Some(TrafficKind::Notification),
            (None, Some(_), Some(_), _) => Some(TrafficKind::Result),
            (None, _, None, Some(_)) => Some(TrafficKind::Error),
            _ => None,
        };
        let text = |found: Option<RawRef<'_>>| found.and_then(RawRef::text).map(Arc::<str>::from);
        let body = params.or(result);
        let at = |path: &[&str]| text(body.and_then(|body| object::find(body, path)));
        let task = at(&["taskId"])
            .or_else(|| at(&["task", "taskId"]))
            .or_else(|| body.and_then(meta::related_task).map(Arc::from));
        let tool = (method.as_deref() == Some("tools/call"))
            .then(|| at(&["name"]))
            .flatten();
        Self {
            kind,
            method: method.map(Arc::from),
            id: id.map(|id| id.as_str().into()),
            task,
            tool,
        }
    }
}
