//! The last messages of all connections. A limit counts messages, another one bytes; the oldest are
//! dropped first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use outlast::client::{ConnectionName, MessageDirection, MessageObserver, ObservedMessage};
use outlast::transport::link::TransportError;
use outlast::wire::Id;
use outlast::wire::RawRef;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::entry::{Envelope, TrafficEntry, TrafficKind};
use super::filter::TrafficFilter;
use super::redact::redacted;

/// The last messages of all connections. Cheap to clone.
#[derive(Clone)]
pub struct TrafficLog(Arc<Shared>);

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficLimits {
    /// How many messages.
    pub messages: usize,
    /// How many bytes in total.
    pub bytes: usize,
    /// The largest message that is kept with its text.
    pub message_bytes: usize,
}

/// 4,000 messages, 16 MiB, 256 KiB for each message.
impl Default for TrafficLimits {
    fn default() -> Self {
        Self {
            messages: 4_000,
            bytes: 16 << 20,
            message_bytes: 256 << 10,
        }
    }
}

struct Shared {
    limits: TrafficLimits,
    state: Mutex<State>,
    /// Runs after a message was kept.
    on_message: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    entries: VecDeque<TrafficEntry>,
    bytes: usize,
    /// The number of the next message.
    next: u64,
    /// The requests without a response: their numbers and when they passed.
    open: HashMap<OpenKey, (u64, Instant)>,
}

/// Identifies a request: both sides of a connection number their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OpenKey {
    connection: ConnectionName,
    is_ours: bool,
    id: Arc<str>,
}

/// Records the messages of one connection.
pub struct TrafficObserver {
    log: TrafficLog,
    connection: ConnectionName,
}

impl TrafficLog {
    /// An empty log. `on_message` runs after each message.
    pub fn new(limits: TrafficLimits, on_message: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            limits,
            state: Mutex::default(),
            on_message: Box::new(on_message),
        }))
    }

    /// The observer of a connection.
    pub fn observer(&self, connection: ConnectionName) -> Arc<TrafficObserver> {
        Arc::new(TrafficObserver {
            log: self.clone(),
            connection,
        })
    }

    /// The messages that `filter` accepts, newest first: at most `count` of those before the
    /// message `before`.
    pub fn page(
        &self,
        filter: &TrafficFilter,
        before: Option<u64>,
        count: usize,
    ) -> Vec<TrafficEntry> {
        let state = self.0.state.lock();
        let entries = state.entries.iter().rev();
        entries
            .filter(|entry| before.is_none_or(|before| entry.number < before))
            .filter(|entry| filter.accepts(entry))
            .take(count)
            .cloned()
            .collect()
    }

    /// A message.
    pub fn entry(&self, number: u64) -> Option<TrafficEntry> {
        self.0.state.lock().get(number).cloned()
    }

    /// How many messages passed and how many of them are kept.
    pub fn counts(&self) -> (u64, usize) {
        let state = self.0.state.lock();
        (state.next, state.entries.len())
    }

    /// The methods that occur, sorted.
    pub fn methods(&self) -> Vec<Arc<str>> {
        let state = self.0.state.lock();
        let methods = state
            .entries
            .iter()
            .filter_map(|entry| entry.method.clone());
        let mut methods: Vec<_> = methods.collect();
        methods.sort();
        methods.dedup();
        methods
    }

    /// Forgets all messages.
    pub fn clear(&self) {
        let mut state = self.0.state.lock();
        let next = state.next;
        *state = State {
            next,
            ..State::default()
        };
    }
}

impl State {
    fn get(&self, number: u64) -> Option<&TrafficEntry> {
        let at = number.checked_sub(self.entries.front()?.number)?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut TrafficEntry> {
        let at = number.checked_sub(self.entries.front()?.number)?;
        self.entries.get_mut(usize::try_from(at).ok()?)
    }

    fn add(&mut self, mut entry: TrafficEntry, limits: TrafficLimits) {
        entry.number = self.next;
        self.next += 1;
        if let Some(id) = entry.id.clone() {
            let key = |is_ours| OpenKey {
                connection: entry.connection.clone(),
                is_ours,
                id: id.clone(),
            };
            let is_ours = entry.direction == MessageDirection::ToServer;
            match entry.kind {
                TrafficKind::Request => {
                    if self.open.len() < limits.messages {
                        self.open
                            .insert(key(is_ours), (entry.number, Instant::now()));
                    }
                }
                TrafficKind::Result | TrafficKind::Error => {
                    if let Some((request, since)) = self.open.remove(&key(!is_ours)) {
                        let duration = since.elapsed();
                        entry.pair = Some(request);
                        entry.duration = Some(duration);
                        let number = entry.number;
                        let task = entry.task.clone();
                        if let Some(request) = self.get_mut(request) {
                            request.pair = Some(number);
                            request.duration = Some(duration);
                            // The call that made a task belongs to the task.
                            if request.task.is_none() {
                                request.task = task;
                            }
                            entry.method = request.method.clone();
                            entry.tool = request.tool.clone();
                            entry.task = entry.task.or_else(|| request.task.clone());
                        }
                    }
                }
                TrafficKind::Notification | TrafficKind::Invalid => {}
            }
        }
        self.bytes += size(&entry);
        self.entries.push_back(entry);
        while self.entries.len() > limits.messages || self.bytes > limits.bytes {
            let Some(dropped) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= size(&dropped);
            if let (TrafficKind::Request, None, Some(id)) = (dropped.kind, dropped.pair, dropped.id)
            {
                self.open.remove(&OpenKey {
                    is_ours: dropped.direction == MessageDirection::ToServer,
                    connection: dropped.connection,
                    id,
                });
            }
        }
    }
}

/// The memory that a message uses, approximately.
fn size(entry: &TrafficEntry) -> usize {
    entry.text.as_ref().map_or(0, |text| text.len()) + ENTRY_BYTES
}

impl MessageObserver for TrafficObserver {
    fn message(&self, message: ObservedMessage<'_>) {
        let limits = self.log.0.limits;
        let text = std::str::from_utf8(message.text).ok();
        let raw = text.and_then(|text| RawRef::parse(text).ok());
        let envelope = raw.map(Envelope::read).unwrap_or_default();
        let kept = match raw {
            Some(raw) if raw.as_str().len() <= limits.message_bytes => Some(
                redacted(raw).map_or_else(|| Arc::from(raw.as_str()), |raw| raw.as_str().into()),
            ),
            Some(_) => None,
            // What is not JSON is not searched for secrets.
            None => Some("(not a JSON message)".into()),
        };
        let entry = TrafficEntry {
            number: 0,
            connection: self.connection.clone(),
            direction: message.direction,
            at: SystemTime::now(),
            kind: envelope.kind.unwrap_or(TrafficKind::Invalid),
            method: envelope.method,
            id: envelope.id,
            version: message.version.map(Arc::from),
            task: envelope.task,
            tool: envelope.tool,
            pair: None,
            duration: None,
            failure: None,
            bytes: message.text.len(),
            text: kept,
        };
        self.log.0.state.lock().add(entry, limits);
        (self.log.0.on_message)();
    }

    fn request_failed(&self, request: &Id, error: &TransportError) {
        let Ok(id) = serde_json::to_string(request) else {
            return;
        };
        let key = OpenKey {
            connection: self.connection.clone(),
            is_ours: true,
            id: id.into(),
        };
        {
            let mut state = self.log.0.state.lock();
            let Some((number, since)) = state.open.remove(&key) else {
                return;
            };
            if let Some(entry) = state.get_mut(number) {
                entry.duration = Some(since.elapsed());
                entry.failure = Some(error.to_string().into());
            }
        }
        (self.log.0.on_message)();
    }
}

/// The memory of a message without its text, approximately.
const ENTRY_BYTES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn log(limits: TrafficLimits) -> (TrafficLog, Arc<TrafficObserver>) {
        let log = TrafficLog::new(limits, || ());
        let observer = log.observer(ConnectionName::new("s", "test"));
        (log, observer)
    }

    fn send(observer: &TrafficObserver, direction: MessageDirection, text: &str) {
        observer.message(ObservedMessage::new(
            direction,
            text.as_bytes(),
            Some("2025-11-25"),
        ));
    }

    const OUT: MessageDirection = MessageDirection::ToServer;
    const IN: MessageDirection = MessageDirection::FromServer;

    #[test]
    fn a_response_belongs_to_the_request_of_the_other_side() {
        let (log, observer) = log(TrafficLimits::default());
        send(
            &observer,
            OUT,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","task":{}}}"#,
        );
        // The server numbers its own requests.
        send(
            &observer,
            IN,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
        );
        send(
            &observer,
            IN,
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t1"}}}"#,
        );
        send(
            &observer,
            OUT,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
        );
        let all = log.page(&TrafficFilter::default(), None, 10);
        let shown: Vec<_> = all
            .iter()
            .map(|entry| {
                (
                    entry.number,
                    entry.kind,
                    entry.method.as_deref(),
                    entry.pair,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (3, TrafficKind::Error, Some("roots/list"), Some(1)),
                (2, TrafficKind::Result, Some("tools/call"), Some(0)),
                (1, TrafficKind::Request, Some("roots/list"), Some(3)),
                (0, TrafficKind::Request, Some("tools/call"), Some(2)),
            ]
        );
        let call = log.entry(0).unwrap();
        assert_eq!(
            (call.tool.as_deref(), call.task.as_deref()),
            (Some("slow"), Some("t1"))
        );
        assert!(call.duration.is_some());
        let of_task = TrafficFilter {
            task: "t1".into(),
            ..TrafficFilter::default()
        };
        assert_eq!(log.page(&of_task, None, 10).len(), 2);
        let calls = TrafficFilter {
            method: "tools/".into(),
            server: "s".into(),
            ..TrafficFilter::default()
        };
        assert_eq!(log.page(&calls, Some(2), 10).len(), 1);
        assert_eq!(log.methods().len(), 2);
    }

    #[test]
    fn memory_is_bounded_by_count_and_bytes() {
        let limits = TrafficLimits {
            messages: 10,
            bytes: 5_000,
            message_bytes: 1_000,
        };
        let (log, observer) = log(limits);
        for id in 0..1_000 {
            send(&observer, OUT, &format!(r#"{{"id":{id},"method":"ping"}}"#));
        }
        assert_eq!(log.counts(), (1_000, 10));
        assert_eq!(log.0.state.lock().open.len(), 10);
        let large = format!(
            r#"{{"id":"x","method":"m","params":"{}"}}"#,
            "y".repeat(900)
        );
        for _ in 0..20 {
            send(&observer, OUT, &large);
        }
        assert!(log.0.state.lock().bytes <= 5_000);
        assert!(log.counts().1 < 6);
        let too_large = format!(
            r#"{{"id":"x","method":"m","params":"{}"}}"#,
            "y".repeat(2_000)
        );
        send(&observer, OUT, &too_large);
        let last = log.page(&TrafficFilter::default(), None, 1).remove(0);
        assert_eq!((last.text, last.method.as_deref()), (None, Some("m")));
        assert_eq!(last.bytes, too_large.len());
    }

    #[test]
    fn secrets_and_what_is_not_json_are_not_kept() {
        let (log, observer) = log(TrafficLimits::default());
        send(
            &observer,
            OUT,
            r#"{"id":1,"method":"tools/call","params":{"arguments":{"password":"hunter2"}}}"#,
        );
        send(&observer, IN, "Bearer hunter2 {");
        observer.message(ObservedMessage::new(IN, &[0xff], None));
        for entry in log.page(&TrafficFilter::default(), None, 10) {
            assert!(!entry.text.unwrap().contains("hunter2"));
        }
        log.clear();
        assert_eq!(log.counts(), (3, 0));
    }

    #[test]
    fn a_failed_request_says_why() {
        let (log, observer) = log(TrafficLimits::default());
        send(&observer, OUT, r#"{"id":7,"method":"ping"}"#);
        let id: Id = serde_json::from_str("7").unwrap();
        observer.request_failed(&id, &TransportError::Closed);
        let entry = log.entry(0).unwrap();
        assert!(entry.failure.unwrap().contains("closed"));
    }
}
