//! The state of the conversation between a host and its gateway that the next gateway needs if this
//! one ends.
//!
//! | message of the host | if the gateway is lost |
//! |---|---|
//! | `initialize`, `notifications/initialized` | sent again; the second result is dropped |
//! | log level, subscriptions to resources | sent again |
//! | an open request that may be executed twice, such as `tasks/*` | sent again with its id |
//! | an open request that was refused or not sent yet | sent again with its id |
//! | any other open request | an error response: its outcome is unknown |
//! | the response to an input request of a task | kept for the same request of the next gateway |
//!
//! An input request of a task stays open at the host. The next gateway sends it with the same id,
//! and the host does not receive it twice. Any other request of the gateway is cancelled at the
//! host.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use outlast::wire::Id;
use outlast::wire::{Raw, RawRef, codes};
use outlast_wire::envelope::{Limits, Message, Outcome, write};
use outlast_wire::v1::method::{INITIALIZE, INITIALIZED};
use outlast_wire::{log, meta, method, notice, object, v2};

/// A message and its newline.
pub(super) type MessageLine = Vec<u8>;

/// The state of one host's conversation.
#[derive(Default)]
pub(super) struct Conversation {
    /// The process id of the gateway.
    gateway: u32,
    initialize: Option<HostRequest>,
    initialized: Option<MessageLine>,
    /// The newest request for each setting of the session.
    settings: BTreeMap<String, HostRequest>,
    /// Requests of the host without a response, in their order.
    open: BTreeMap<u64, OpenRequest>,
    /// The number of the next entry of `open`.
    next_number: u64,
    /// Notifications and responses of the host that were not sent yet.
    unsent: Vec<MessageLine>,
    /// Requests of the gateway without a response of the host, and whether they belong to tasks.
    requests: HashMap<Id, bool>,
    /// The newest responses of the host to input requests of tasks.
    responses: VecDeque<(Id, MessageLine)>,
    /// Requests that were sent again although the host has their responses.
    repeated: HashSet<Id>,
}

#[derive(Clone)]
struct HostRequest {
    id: Id,
    line: MessageLine,
}

struct OpenRequest {
    request: HostRequest,
    method: String,
    /// Whether a gateway may have started to execute it.
    sent: bool,
}

/// What the relay does with a message of the gateway.
pub(super) enum FromGateway {
    /// Send it to the host.
    Pass,
    /// Drop it: the host has it, or will receive a later one.
    Drop,
    /// Send this response to the gateway. The host sent it before.
    Respond(MessageLine),
    /// The gateway closes this connection. Messages that the host sends from now on go to the next
    /// gateway.
    Closing,
}

impl Conversation {
    /// Records a message of the host. `connected`: the caller sends the message to the gateway now;
    /// otherwise it is kept for the next gateway.
    pub(super) fn take_from_host(&mut self, line: &[u8], connected: bool) {
        let message = parse(line);
        match &message {
            Some(Message::Request(request)) => {
                let kept = HostRequest {
                    id: request.id.clone(),
                    line: line.to_vec(),
                };
                if request.method == INITIALIZE {
                    self.initialize = Some(kept.clone());
                }
                self.set(&request.method, request.params, &kept);
                let open = OpenRequest {
                    request: kept,
                    method: request.method.to_string(),
                    sent: connected,
                };
                self.open.insert(self.next_number, open);
                self.next_number += 1;
                // It stays in `open` until its response. `remaining_messages` sends it from there,
                // not from `unsent`.
                return;
            }
            Some(Message::Notification(notification)) => match &*notification.method {
                INITIALIZED => {
                    self.initialized = Some(line.to_vec());
                    return;
                }
                notice::CANCELLED => {
                    // A cancelled request gets no response.
                    if let Some(id) = notification.params.and_then(notice::cancelled_request) {
                        self.close(&id);
                    }
                }
                _ => {}
            },
            Some(Message::Response(response)) => {
                let id = response.id.as_ref();
                match id.and_then(|id| self.requests.remove_entry(id)) {
                    Some((id, true)) => {
                        self.responses.push_back((id, line.to_vec()));
                        if self.responses.len() > MAX_STORED_RESPONSES {
                            self.responses.pop_front();
                        }
                    }
                    Some((_, false)) => {}
                    // The response to a request of a gateway that ended.
                    None if !connected => return,
                    None => {}
                }
            }
            None => {}
        }
        if !connected {
            self.unsent.push(line.to_vec());
        }
    }

    /// Records a request that changes a setting of the session.
    fn set(&mut self, method: &str, params: Option<RawRef<'_>>, request: &HostRequest) {
        let uri = || Some(object::find(params?, &["uri"])?.text()?.into_owned());
        match method {
            log::SET_LEVEL => {
                self.settings.insert(log::SET_LEVEL.into(), request.clone());
            }
            method::RESOURCES_SUBSCRIBE => {
                if let Some(uri) = uri() {
                    self.settings
                        .insert(format!("resource {uri}"), request.clone());
                }
            }
            method::RESOURCES_UNSUBSCRIBE => {
                if let Some(uri) = uri() {
                    self.settings.remove(&format!("resource {uri}"));
                }
            }
            _ => {}
        }
    }

    /// Records a message of the gateway.
    pub(super) fn take_from_gateway(&mut self, line: &[u8]) -> FromGateway {
        match parse(line) {
            Some(Message::Response(response)) => {
                let Some(id) = response.id else {
                    return FromGateway::Pass;
                };
                if self.repeated.remove(&id) {
                    return FromGateway::Drop;
                }
                if let Outcome::Error(error) = &response.outcome
                    && codes::is_shutting_down(error, self.gateway)
                    && let Some(open) = self.open.values_mut().find(|open| open.request.id == id)
                {
                    // The next gateway gets it.
                    open.sent = false;
                    return FromGateway::Drop;
                }
                self.close(&id);
                FromGateway::Pass
            }
            Some(Message::Request(request)) => {
                if self.requests.contains_key(&request.id) {
                    return FromGateway::Drop;
                }
                let response = self.responses.iter().find(|(id, _)| *id == request.id);
                if let Some((_, response)) = response {
                    return FromGateway::Respond(response.clone());
                }
                let of_task = request.params.and_then(meta::related_task).is_some();
                self.requests.insert(request.id, of_task);
                FromGateway::Pass
            }
            Some(Message::Notification(notification)) if notification.method == notice::CLOSING => {
                FromGateway::Closing
            }
            Some(Message::Notification(notification))
                if notification.method == notice::CANCELLED =>
            {
                if let Some(id) = notification.params.and_then(notice::cancelled_request) {
                    self.requests.remove(&id);
                }
                FromGateway::Pass
            }
            _ => FromGateway::Pass,
        }
    }

    /// Handles a lost connection. Returns the messages for the host.
    pub(super) fn lost(&mut self) -> Vec<String> {
        self.repeated.clear();
        let mut lines = Vec::new();
        self.open.retain(|_, open| {
            let again = !open.sent || is_repeatable(&open.method);
            if again {
                open.sent = false;
            } else {
                lines.push(lost_error(&open.request.id));
            }
            again
        });
        self.requests.retain(|id, of_task| {
            if !*of_task {
                let params = notice::cancelling(id, Some("the gateway was restarted"));
                let cancelled = write::notification(notice::CANCELLED, Some(params.borrow()));
                lines.push(cancelled + "\n");
            }
            *of_task
        });
        lines
    }

    /// Handles that no gateway can be reached. Returns the errors for the waiting requests.
    pub(super) fn fail(&mut self, why: &str) -> Vec<String> {
        self.unsent.clear();
        let open = std::mem::take(&mut self.open).into_values();
        open.map(|open| error(&open.request.id, why)).collect()
    }

    /// Whether the host still gets a response. A subscription is answered when the connection ends.
    pub(super) fn awaits_responses(&self) -> bool {
        let mut open = self.open.values();
        open.any(|open| open.method != v2::method::LISTEN)
    }

    /// Whether messages wait for a gateway.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || !self.unsent.is_empty()
    }

    /// Returns the host's `initialize` request, the first message on a new connection. The rest is
    /// sent after its response.
    pub(super) fn initialize_request(&mut self, gateway: u32) -> Option<(Id, MessageLine)> {
        self.gateway = gateway;
        let initialize = self.initialize.clone()?;
        let open = self.open.values_mut();
        let mut open = open.filter(|open| open.request.id == initialize.id);
        match open.next() {
            Some(open) => open.sent = true,
            None => {
                self.repeated.insert(initialize.id.clone());
            }
        }
        Some((initialize.id, initialize.line))
    }

    /// Returns the messages for a new connection after the `initialize` request.
    pub(super) fn remaining_messages(&mut self) -> Vec<MessageLine> {
        let mut lines: Vec<_> = self.initialized.iter().cloned().collect();
        for setting in self.settings.values() {
            let is_open = |open: &OpenRequest| open.request.id == setting.id;
            if !self.open.values().any(is_open) {
                self.repeated.insert(setting.id.clone());
                lines.push(setting.line.clone());
            }
        }
        lines.append(&mut self.unsent);
        for open in self.open.values_mut().filter(|open| !open.sent) {
            open.sent = true;
            lines.push(open.request.line.clone());
        }
        lines
    }

    /// Removes a request that has its response.
    fn close(&mut self, id: &Id) {
        self.open.retain(|_, open| open.request.id != *id);
    }
}

fn parse(line: &[u8]) -> Option<Message<'_>> {
    Message::parse(line.trim_ascii_end(), &Limits::default()).ok()
}

fn error(id: &Id, why: &str) -> String {
    let error = codes::internal(why).to_raw();
    write::error(Some(id), error.borrow()) + "\n"
}

/// The error for a request that was running when the gateway ended. Its `data` is that of the
/// engine's errors for an unknown outcome.
fn lost_error(id: &Id) -> String {
    let data = Raw::parse(r#"{"outcome":"unknown"}"#.into()).expect("a literal is JSON");
    let error = codes::internal(LOST_MESSAGE).with_data(data).to_raw();
    write::error(Some(id), error.borrow()) + "\n"
}

/// Whether a second execution of the request changes nothing more, so that it can be sent to the
/// next gateway.
fn is_repeatable(method: &str) -> bool {
    method.starts_with("tasks/") || method.ends_with("/list") || REPEATABLE.contains(&method)
}

const REPEATABLE: &[&str] = &[
    INITIALIZE,
    method::PING,
    v2::method::DISCOVER,
    v2::method::LISTEN,
    log::SET_LEVEL,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::RESOURCES_READ,
    method::RESOURCE_TEMPLATES_LIST,
    method::PROMPTS_GET,
    method::COMPLETE,
];

/// The error message for a request that was running when the gateway ended.
const LOST_MESSAGE: &str = "the gateway stopped while this request was running: its outcome is unknown, and it was not sent \
                    again. If it had become a task, `outlast tasks list` shows it";

/// How many responses to input requests of tasks are kept.
const MAX_STORED_RESPONSES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALIZE_REQUEST: &str =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;

    /// A conversation whose host has sent `initialize` to gateway 7.
    fn initialized_conversation() -> Conversation {
        let mut conversation = Conversation::default();
        assert!(conversation.initialize_request(7).is_none());
        conversation.take_from_host(INITIALIZE_REQUEST.as_bytes(), true);
        assert!(passes(
            &mut conversation,
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#
        ));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        conversation.take_from_host(initialized.as_bytes(), true);
        conversation
    }

    fn passes(conversation: &mut Conversation, line: &str) -> bool {
        matches!(
            conversation.take_from_gateway(line.as_bytes()),
            FromGateway::Pass
        )
    }

    fn request(id: u32, method: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"uri":"a:b"}}}}"#)
            .into()
    }

    /// Returns the messages for the next gateway after `initialize`, as text.
    fn rest(conversation: &mut Conversation) -> String {
        let (id, _) = conversation
            .initialize_request(8)
            .expect("an initialize request");
        let result = write::result(&id, Raw::empty_object().borrow());
        assert!(!passes(conversation, &result), "the host has the result");
        let lines = conversation.remaining_messages().into_iter();
        let lines = lines.map(|line| String::from_utf8(line).unwrap());
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn open_requests_are_sent_again_or_answered_with_an_error() {
        let mut conversation = initialized_conversation();
        conversation.take_from_host(&request(1, "tools/call"), true);
        conversation.take_from_host(&request(2, "tasks/result"), true);
        conversation.take_from_host(&request(3, "tools/call"), true);
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
        conversation.take_from_host(cancelled.as_bytes(), true);
        conversation.take_from_host(&request(4, "resources/subscribe"), true);
        assert!(passes(
            &mut conversation,
            r#"{"jsonrpc":"2.0","id":4,"result":{}}"#
        ));
        let lost = conversation.lost();
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert!(
            lost[0].contains("\"id\":1") && lost[0].contains("unknown"),
            "{lost:?}"
        );
        // Sent while no gateway is connected.
        conversation.take_from_host(&request(5, "tools/call"), false);
        let rest = rest(&mut conversation);
        for (part, times) in [
            ("notifications/initialized", 1),
            ("\"id\":1,", 0),
            ("\"id\":2,", 1),
            ("\"id\":4,", 1),
            ("\"id\":5,", 1),
        ] {
            assert_eq!(rest.matches(part).count(), times, "{part}: {rest}");
        }
        // The host has the response to its subscription. It receives the response to the open
        // request.
        assert!(!passes(
            &mut conversation,
            r#"{"jsonrpc":"2.0","id":4,"result":{}}"#
        ));
        assert!(passes(
            &mut conversation,
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#
        ));
    }

    #[test]
    fn a_subscription_is_no_reason_to_wait_for_responses() {
        let mut conversation = initialized_conversation();
        conversation.take_from_host(&request(1, v2::method::LISTEN), true);
        assert!(!conversation.awaits_responses());
        conversation.take_from_host(&request(2, "tools/call"), true);
        assert!(conversation.awaits_responses());
        let result = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        assert!(passes(&mut conversation, result));
        assert!(!conversation.awaits_responses());
    }

    #[test]
    fn a_request_refused_by_a_stopping_gateway_waits() {
        let mut conversation = initialized_conversation();
        conversation.take_from_host(&request(1, "tools/call"), true);
        let refusal = |pid| {
            let error = codes::shutting_down("it stops", pid).to_raw();
            write::error(Some(&Id::from(1)), error.borrow())
        };
        assert!(!passes(&mut conversation, &refusal(7)));
        assert!(conversation.lost().is_empty());
        assert!(rest(&mut conversation).contains("\"id\":1,"));
        // The gateway is now process 8, so the refusal of process 7 is passed to the host.
        assert!(passes(&mut conversation, &refusal(7)));
    }

    #[test]
    fn a_task_input_request_is_sent_once_others_cancelled() {
        let mut conversation = initialized_conversation();
        let input_request = |id: &str, meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{{{meta}}}}}"#
            )
        };
        let of_task = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
        for id in ["t.1", "t.2"] {
            assert!(passes(&mut conversation, &input_request(id, of_task)));
        }
        assert!(passes(&mut conversation, &input_request("other", "")));
        let response = r#"{"jsonrpc":"2.0","id":"t.1","result":{}}"#;
        conversation.take_from_host(response.as_bytes(), true);
        let lost = conversation.lost();
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert!(
            lost[0].contains("notifications/cancelled") && lost[0].contains("other"),
            "{lost:?}"
        );
        rest(&mut conversation);
        // The gateway sends both again: the host has answered the first and still has the second.
        let again = conversation.take_from_gateway(input_request("t.1", of_task).as_bytes());
        assert!(matches!(again, FromGateway::Respond(line) if line == response.as_bytes()));
        assert!(!passes(&mut conversation, &input_request("t.2", of_task)));
    }
}
